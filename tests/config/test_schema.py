"""Configurations: TOML both ways, and one clear sentence for everything that is wrong."""

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.config import document, presets
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import InitialConfig, OptimizerConfig, ScheduleConfig, TrainConfig
from difflogic.engine.shape import Hyper
from difflogic.errors import ConfigError
from tests.jobs import random_network

SMALL = presets.checkerboard(small=True)
side = st.integers(3, 500)
whole = st.integers(1, 10**6)
amount = st.floats(0, 1e6)
names = st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="/\\"), min_size=1, max_size=100)
below_one = st.floats(0, 1, exclude_max=True)


@st.composite
def networks(draw: st.DrawFn, first: int | None = None, last: int | None = None) -> NetworkConfig:
    widths = draw(st.lists(whole, min_size=2, max_size=5))
    widths[0], widths[-1] = first or widths[0], last or widths[-1]
    scheme = st.sampled_from(["first_kernel", "unique", "random"])
    return NetworkConfig(tuple(widths), tuple(draw(scheme) for _ in widths[1:]))


@st.composite
def configs(draw: st.DrawFn) -> Config:
    channels, kernels = draw(st.integers(1, 200)), draw(st.integers(1, 64))
    perceive = draw(networks(first=9, last=draw(st.integers(1, 64))))
    update = draw(networks(first=channels + channels * perceive.widths[-1] * kernels, last=channels))
    return Config(
        name=draw(names),
        model=ModelConfig(channels, kernels, perceive, update, draw(st.booleans()), draw(st.booleans())),
        task=TaskConfig(
            "checkerboard", draw(side), draw(side), draw(whole), loss_channels=draw(st.integers(1, channels))
        ),
        train=draw(st.builds(TrainConfig, whole, whole, st.floats(0, 1, exclude_min=True), whole, whole)),
        optimizer=draw(st.builds(OptimizerConfig, amount, amount, below_one, below_one, amount, amount)),
        initial=InitialConfig(logit=draw(amount)),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


@given(configs())
def test_toml_round_trip_keeps_the_configuration(config: Config) -> None:
    assert Config.from_toml(config.to_toml()) == config


@given(configs())
def test_dict_round_trip_keeps_the_configuration(config: Config) -> None:
    assert Config.from_dict(config.to_dict()) == config


def test_file_round_trip_keeps_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("\ufeff" + SMALL.to_toml(), encoding="utf-8")  # as some editors begin a text
    assert Config.load(path) == SMALL


def test_defaults_may_be_left_out() -> None:
    data = SMALL.to_dict()
    data["train"] = {"epochs": 500, "batch": 2}
    del data["seed"], data["model"]["periodic"], data["task"]["loss_channels"]
    assert Config.from_dict(data) == SMALL


def test_whole_number_is_taken_for_a_float() -> None:
    assert repr(SMALL.with_(optimizer={"lr": 1}).optimizer.lr) == "1.0"


VALUES: list[tuple[str, str, Any, str]] = [
    ("train", "epochs", 0, "epochs must be an integer between 1 and 2147483648, got 0."),
    ("train", "epochs", -5, "epochs must be an integer between 1 and 2147483648, got -5."),
    ("train", "batch", 0, "batch must be an integer between 1 and 2147483648, got 0."),
    ("train", "eval_interval", 0, "eval_interval must be an integer between 1 and 2147483648, got 0."),
    ("train", "probes", 0, "probes must be an integer between 1 and 2147483648, got 0."),
    ("optimizer", "lr", -0.1, "lr must be a number between 0 and 1e+30, got -0.1."),
    ("optimizer", "lr", float("nan"), "lr must be a number between 0 and 1e+30, got nan."),
    ("optimizer", "weight_decay", float("inf"), "weight_decay must be a number between 0 and 1e+30, got inf."),
    ("optimizer", "epsilon", -1.0, "epsilon must be a number between 0 and 1e+30, got -1.0."),
    ("optimizer", "clip", -1.0, "clip must be a number between 0 and 1e+30, got -1.0."),
    ("optimizer", "clip_by", "layer", "clip_by must be one of element, norm, got 'layer'."),
    ("initial", "logit", float("inf"), "initial.logit must be a number between 0 and 1e+30, got inf."),
    ("optimizer", "beta1", 1.0, "beta1 must be a number in [0, 1), got 1.0."),
    ("optimizer", "beta2", -0.5, "beta2 must be a number in [0, 1), got -0.5."),
    ("optimizer", "beta2", float("nan"), "beta2 must be a number in [0, 1), got nan."),
    ("train", "fire_rate", 0.0, "fire_rate must be a number in (0, 1], got 0.0."),
    ("train", "fire_rate", 1.5, "fire_rate must be a number in (0, 1], got 1.5."),
    ("task", "target", "zebra", "target must be one of checkerboard, picture, rule, data, got 'zebra'."),
    ("task", "start", "ones", "start must be one of random, boards, seed, zeros, picture, got 'ones'."),
    ("task", "target", "rule", 'rule is missing: target "rule" needs it.'),
    ("task", "rule", "B3/S23", 'rule is given, but only target "rule" uses it.'),
    ("task", "start_picture", ["1"], 'start_picture is given, but only start "picture" uses it.'),
    ("task", "loss_steps", [5, 19], "The last of loss_steps must be steps, 20, got [5, 19]."),
    ("task", "loss_steps", [5, 5, 20], "loss_steps must be ascending CA steps between 1 and 20, got [5, 5, 20]."),
    ("task", "damage_steps", [0, 20], "damage_steps must be ascending CA steps between 0 and 19, got [0, 20]."),
    ("task", "damage_side", 3, "Damage needs both damage_side and damage_steps, got 3 and []."),
    ("task", "start", "boards", 'start "boards" supports at most 16 cells, got 256: use a smaller grid.'),
    ("pool", "size", 12, "pool.size must be batch times a power of two, got 12 for a batch of 2."),
    ("pool", "reset", -1, "pool.reset must be an integer between 0 and 2147483648, got -1."),
    ("task", "height", 2, "height must be an integer between 3 and 65536, or 1 on a line, got 2."),
    ("task", "width", -1, "width must be an integer between 3 and 65536, got -1."),
    ("task", "steps", 0, "steps must be an integer between 1 and 2147483648, got 0."),
    ("task", "loss_channels", 0, "loss_channels must be an integer between 1 and 1048576, got 0."),
    ("task", "loss_channels", 9, "loss_channels is 9, but a cell has 8 channels."),
    ("model", "channels", 0, "channels must be an integer between 1 and 1048576, got 0."),
    ("model", "kernels", 0, "kernels must be an integer between 1 and 1048576, got 0."),
    (
        "model",
        "kernels",
        15,
        "the update network reads the cell and every perception output: its widths must begin with 248, got 264.",
    ),
]
ONE = {"widths": [9, 8], "connections": ["unique"]}
TYPES: list[tuple[str, str, Any, str]] = [
    ("train", "epochs", True, "train.epochs must be an integer between 1 and 2147483648, got True."),
    ("train", "epochs", 5.0, "train.epochs must be an integer between 1 and 2147483648, got 5.0."),
    ("train", "epochs", "5", "train.epochs must be an integer between 1 and 2147483648, got '5'."),
    ("optimizer", "lr", True, "optimizer.lr must be a number between 0 and 1e+30, got True."),
    ("optimizer", "lr", "fast", "optimizer.lr must be a number between 0 and 1e+30, got 'fast'."),
    ("model", "periodic", 1, "model.periodic must be true or false, got 1."),
    ("model", "perceive", 9, "model.perceive must be a table, got 9."),
    ("model", "perceive", {"widths": 9, "connections": []}, "model.perceive.widths must be a list, got 9."),
    ("model", "perceive", ONE | {"widths": [9, True]}, "each of model.perceive.widths must be an integer, got True."),
    ("model", "perceive", ONE | {"depth": 1}, "Unknown field model.perceive.depth: expected widths, connections."),
]


def test_missing_field_is_named_by_its_path() -> None:
    data = SMALL.to_dict()
    data["model"]["perceive"] = {"widths": [9, 8]}
    with pytest.raises(ConfigError, match=r"^Missing fields: model\.perceive\.connections\. `difflogic init` writes"):
        Config.from_dict(data)


HELD: list[tuple[dict[str, Any], str]] = [
    ({"model": {"held": [8]}}, "held must be ascending channels between 0 and 7, got [8]."),
    (
        {"model": {"held": [0, 1, 2, 3, 4, 5, 6, 7]}},
        "each layer of the update network must have more gates than there are fixed channels",
    ),
    ({"model": {"held": [1]}, "search": {"begin": 5}}, "A search requires fresh initial states, without damage"),
]


@pytest.mark.parametrize(("sections", "message"), HELD)
def test_wrong_fixed_channels_are_refused(sections: dict[str, Any], message: str) -> None:
    assert SMALL.with_(model={"held": [1, 2]}).model.held == (1, 2)
    with pytest.raises(ConfigError) as raised:
        SMALL.with_(**sections)
    assert str(raised.value).startswith(message)


ALL_ROUND: list[tuple[dict[str, Any], str]] = [
    ({"wiring_per_kernel": False}, "all_round needs wiring_per_kernel, as kernels read different cells."),
    (
        {"kernels": 3, "update": {"widths": [56, 8], "connections": ["random"]}},
        "all_round needs 4 kernels or more, got 3.",
    ),
    (
        {"perceive": {"widths": [9, 2], "connections": ["random"]}},
        "all_round needs at least two layers of perception, the first with connections first_kernel, got ['random'].",
    ),
]


@pytest.mark.parametrize(("model", "message"), ALL_ROUND)
def test_all_round_in_a_model_without_room_is_refused(model: dict[str, Any], message: str) -> None:
    start = {"wiring_per_kernel": True, "all_round": True}
    assert SMALL.with_(model=start).model.all_round
    with pytest.raises(ConfigError) as raised:
        SMALL.with_(model={**start, **model})
    assert str(raised.value) == message


@pytest.mark.parametrize(("section", "field", "value", "message"), VALUES + TYPES)
def test_wrong_value_is_refused_in_one_sentence(section: str, field: str, value: Any, message: str) -> None:
    data = SMALL.to_dict()
    data[section][field] = value
    with pytest.raises(ConfigError) as raised:
        Config.from_dict(data)
    assert str(raised.value) == message
    with pytest.raises(ConfigError) as raised:
        SMALL.with_(**{section: {field: value}})
    assert str(raised.value) == message


@pytest.mark.parametrize(("section", "field", "value", "message"), VALUES)
def test_constructors_refuse_wrong_values(section: str, field: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        dataclasses.replace(SMALL, **{section: dataclasses.replace(getattr(SMALL, section), **{field: value})})
    assert str(raised.value) == message


@pytest.mark.parametrize("value", [2.5, True])
def test_constructors_refuse_other_numbers_than_whole_ones(value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^epochs must be an integer between 1 and 2147483648, got {value}.$"):
        TrainConfig(epochs=value, batch=1)
    with pytest.raises(ConfigError, match=rf"^width must be an integer between 3 and 65536, got {value}\.$"):
        TaskConfig(target="checkerboard", height=3, width=value, steps=1)
    with pytest.raises(ConfigError, match=r"^seed must be an integer between 0 and 4294967295, got "):
        dataclasses.replace(SMALL, seed=value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "seed must be an integer between 0 and 4294967295, got -1."),
        ({"seed": 2**32}, "seed must be an integer between 0 and 4294967295, got 4294967296."),
        ({"name": 7}, "name must be text of 1 to 100 visible characters without slashes, got 7."),
        ({"train": 7}, "train must be a table, got 7."),
        (
            {"colour": 7},
            "Unknown field colour: expected name, model, task, train, optimizer, schedule, initial, "
            "hardening, growth, search, pool, data, plugin, seed.",
        ),
        ({"train": {"rate": 7}}, "Unknown field train.rate (did you mean fire_rate?): expected epochs, "),
        ({"train": {"precision": "float32"}}, "The field train.precision was removed: leave it out."),
        ({"train": {"zebra": 7}}, "Unknown field train.zebra: expected epochs, "),
        ({"tarin": {}}, "Unknown field tarin (did you mean train?): expected name, "),
        ({"lr": 7}, "Unknown field lr (did you mean optimizer.lr?): expected name, "),
        (
            {"task": {"target": "checkerbord"}},
            "target must be one of checkerboard, picture, rule, data, got 'checkerbord' (did you mean checkerboard?).",
        ),
        ({"name": "../up"}, "name must be text of 1 to 100 visible characters without slashes, got"),
        *(
            ({"name": name}, "name must be text of 1 to 100 visible characters ")
            for name in ("", " ", "a\u200b", "\u3164", "a\u202eb")
        ),
    ],
)
def test_with_refuses_changes_that_no_file_may_have(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        SMALL.with_(**changes)
    assert str(raised.value).startswith(message)


def _fields(kind: type, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Section, name and type of every field, those of networks aside, whose widths have a test of their own."""
    for name, hint in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint) and hint is not NetworkConfig:
            yield from _fields(typing.cast(type, hint), name)
        else:
            yield path, name, hint


NUMBERS = [(*field, number) for *field, kind in _fields(Config)
           for number in {int: (2**32,), tuple[int, ...]: ([2**32],), float: (4e38,)}.get(kind, ())]  # fmt: skip


@pytest.mark.parametrize(("section", "name", "number"), NUMBERS)
def test_every_number_fits_into_32_bits(section: str, name: str, number: Any) -> None:
    """Engines take 32 bits. Fields that depend on it are set too, so that the field itself is refused."""
    beside: dict[str, dict[str, Any]] = {
        "damage_side": {"damage_steps": [1]},
        "reset": {"size": 2},
        "begin": {"share": 0.5, "end": 2**32 + 9} if section in ("schedule", "hardening") else {},
        "end": {"share": 0.5, "begin": 2**32 - 9},
        "sides": {"until": [5], "steps": [5]},
        "steps": {"until": [5], "sides": [5]} if section == "growth" else {},
        "until": {"sides": [5], "steps": [5]},
    }
    changed = beside.get(name, {}) | {name: number}
    with pytest.raises(ConfigError):
        SMALL.with_(**({section: changed} if section else changed))


def test_layer_width_fits_into_32_bits() -> None:
    with pytest.raises(ConfigError, match=r"^each of widths must be an integer between 1 and 1048576, got 429"):
        NetworkConfig((9, 2**32), ("unique",))


def test_number_beyond_every_float_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^optimizer\.lr must be a number between 0 and 1e\+30, got 1000"):
        SMALL.with_(optimizer={"lr": 10**400})


@pytest.mark.parametrize(
    ("widths", "connections", "message"),
    [
        ((9,), (), "widths needs inputs and one or more layers of gates, got [9]."),
        ((9, 0), ("unique",), "each of widths must be an integer between 1 and 1048576, got 0."),
        ((9, 8), (), "connections must have a scheme per layer: expected 1, got 0."),
        ((9, 8), ("spiral",), "Unknown connections 'spiral': expected one of first_kernel, unique, random."),
    ],
)
def test_network_that_cannot_be_wired_is_refused(widths, connections, message) -> None:
    with pytest.raises(ConfigError) as raised:
        NetworkConfig(widths, connections)
    assert str(raised.value) == message


def test_model_with_networks_that_do_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^perception reads a 3x3 patch: widths must begin with 9, got 8\.$"):
        ModelConfig(1, 1, random_network(8, 1), random_network(2, 1))
    with pytest.raises(ConfigError, match=r"its widths must end with 2, got 1\.$"):
        ModelConfig(2, 1, random_network(9, 1), random_network(4, 1))


def test_with_replaces_fields_and_keeps_the_rest() -> None:
    changed = SMALL.with_(train={"epochs": 9}, seed=5)
    assert (changed.train.epochs, changed.seed) == (9, 5)
    assert changed.with_(train={"epochs": 500}, seed=23) == SMALL
    assert SMALL.with_(task=TaskConfig("checkerboard", 9, 9, 4)).task.height == 9
    deep = SMALL.with_(model={"perceive": {"connections": ["random", "unique", "unique"]}}).model.perceive
    assert (deep.widths, deep.connections[0]) == (SMALL.model.perceive.widths, "random")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name =", "^The configuration is not valid TOML: .+$"),
        ("name = " + "[" * 99_999, "^The configuration has tables or lists that are nested too deeply.$"),
        ("name = " + "{a=" * 99_999, "^The configuration has tables or lists that are nested too deeply.$"),
        ("a." * 20_000 + "a=1", "a key of more than 16 parts"),
        ('x = ["""\n""", {' + '"a".' * 20_000 + 'a=1}]#"', "a key of more than 16 parts"),  # hidden behind quotes
        ("seed = 0x" + "f" * 5000, "a number or name of more than 1024 characters"),
        ("name = " + repr("a." * 20_000) + "  # " + "a." * 20, "^Missing fields: "),  # strings and comments are free
        ('name = "x"\n[model]\n[task]', r"^Missing fields: \[train\]\. "),
        ("", "^Missing fields: name, \\[model\\], \\[task\\], \\[train\\]. `difflogic init` "),
        ('title = "x"', "^Unknown field title: expected name, model, task, train, optimizer, schedule, "),
    ],
)
def test_text_without_a_configuration_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.from_toml(text)


def test_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"^Cannot read the configuration /dev/zero: expected at most 1000 bytes"):
        Config.load(Path("/dev/zero"))


def test_configuration_that_is_no_table_is_refused() -> None:
    data: Any = 3
    with pytest.raises(ConfigError, match=r"^The configuration must be a table, got 3\.$"):
        Config.from_dict(data)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^Cannot read the configuration .*nowhere\.toml: "):
        Config.load(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"^Cannot read the configuration .*binary\.toml: "):
        Config.load(tmp_path / "binary.toml")


def test_fire_rate_below_one_makes_it_asynchronous() -> None:
    assert not SMALL.train.asynchronous
    assert SMALL.with_(train={"fire_rate": 0.6}).train.asynchronous


def test_optimiser_gets_every_number_of_the_configuration() -> None:
    optimizer = OptimizerConfig(0.1, 0.2, beta1=0.3, beta2=0.4, epsilon=0.5, clip=0.6, clip_by="norm")
    falls = ScheduleConfig(share=0.7, begin=8, end=9)
    config = dataclasses.replace(SMALL, optimizer=optimizer, schedule=falls).with_(model={"input_wise": True})
    wanted = {"lr": 0.1, "weight_decay": 0.2, "beta1": 0.3, "beta2": 0.4, "epsilon": 0.5, "clip": 0.6}
    wanted |= {"clip_by": "norm", "lr_end": 0.7, "lr_from": 8, "lr_to": 9, "input_wise": True}
    assert dataclasses.asdict(Hyper.of(config)) == wanted
    assert Hyper() == Hyper.of(SMALL)


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (5, 5), (6, 5)])
def test_learning_rate_that_cannot_fall_is_refused(begin: int, end: int) -> None:
    sentence = rf"^schedule\.end must be later than schedule\.begin, {begin}, .* got {end}\.$"
    with pytest.raises(ConfigError, match=sentence):
        SMALL.with_(schedule={"share": 0.5, "begin": begin, "end": end})
