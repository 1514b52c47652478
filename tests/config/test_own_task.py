"""Tasks in Python: their registered names, their samples, which are always the same, and errors in their code."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.config import own_task, presets, registered
from difflogic.config.customise import configure
from difflogic.config.own_task import OwnTask, Task, setting
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.text import commented
from difflogic.devices.open import open_engine
from difflogic.errors import ConfigError, DataError, DifflogicError, FaultyTaskError, LimitError
from difflogic.train.trainer import Trainer
from tests.own_tasks import PLAIN, install

NAME = "my-package:fill"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "site", "My.Package", {"plain_fill": PLAIN}, fill="plain_fill:Fill")


def configured(fields: dict[str, Any] | None = None, source: str | Config = NAME) -> Config:
    given = {"preset": source} if isinstance(source, str) else {"config": source}
    return configure(TrainRequest(set=fields or {}, **given)).config


def test_registered_task_is_a_preset_whose_settings_are_fields_of_task() -> None:
    assert NAME in registered.names()
    config = configured({"task": {"side": 5}, "train": {"batch": 3}})
    assert config.plugin.name == NAME
    assert (config.plugin.version, config.plugin.settings) == ("1", {"side": 5, "word": "left"})
    assert (config.task.target, config.task.height, config.task.width, config.task.steps) == ("data", 5, 5, 2)
    assert (config.data.samples, config.train.batch, config.train.epochs, config.name) == (12, 3, 4, "fill")
    assert Config.from_toml(config.to_toml()) == config
    assert hash(Config.from_toml(config.to_toml())) == hash(config)
    assert presets.get(NAME).plugin.settings["side"] == 4


def test_samples_are_always_the_same_and_fresh_ones_differ() -> None:
    own = registered.find(NAME)
    first = own.drawn(12).sha256
    own_task._samples.cache_clear()
    assert own.drawn(12).sha256 == first == configured().data.sha256
    assert own.drawn(12, stream=1).sha256 != own.drawn(12).sha256
    assert configured({"data": {"samples": 20}}).data.samples == 20


def test_run_draws_its_samples_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, counts = type(registered.find(NAME).task), []
    draw = made.samples
    monkeypatch.setattr(made, "samples", lambda task, rng, count: counts.append(count) or draw(task, rng, count))
    own_task._samples.cache_clear()
    assert Trainer(configured(), open_engine("reference")).run(epochs=1).state.epoch == 1
    assert sorted(counts) == [2, 12]


def test_written_settings_can_be_changed_and_read_again() -> None:
    config = configured()
    text = commented(config.with_(data={"sha256": ""}), "Mine.", registered.task_of(config.plugin).task)
    assert '# From where (preset: "left").' in text
    assert "# Cells a side (an integer between 3 and 8; preset: 4)." in text
    changed = configured(source=Config.from_toml(text.replace("side = 4", "side = 6")))
    assert (changed.plugin.settings["side"], changed.task.width, changed.data.samples) == (6, 6, 12)
    # With the hash in it, a file means these samples and no others.
    other = configured(source=Config.from_toml(config.to_toml().replace('word = "left"', 'word = "right"')))
    assert other.data.sha256 == config.data.sha256
    with pytest.raises(DataError, match=f"The samples that {NAME} now makes are not those"):
        Trainer(other.with_(data={"sha256": "0" * 64}), open_engine("reference")).run()


def test_trainer_takes_a_registered_or_other_task(tmp_path: Path) -> None:
    own, engine = registered.find(NAME, {"side": 5}), open_engine("reference")
    assert Trainer(own.task, engine).config == own.config()
    plain = Trainer(Faulty(), engine)
    assert plain.run(epochs=1, out=tmp_path / "run").config.plugin.name == "Faulty"
    assert plain.run(epochs=2, resume=tmp_path / "run").state.epoch == 2
    with pytest.raises(ConfigError, match="The task Faulty was given to a Trainer"):
        Trainer(plain.config, engine).run(epochs=3, resume=tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("my-package:fil", {}, r"Unknown task 'my-package:fil' \(did you mean my-package:fill\?\)"),
        ("os:system", {}, "expected DISTRIBUTION:NAME of an installed task"),
        (
            NAME,
            {"task": {"sid": 5}},
            r"Unknown field task.sid \(did you mean side\?\): my-package:fill takes side, word",
        ),
        (NAME, {"task": {"side": 99}}, "side must be an integer between 3 and 8, got 99"),
        (NAME, {"task": {"side": "x"}}, "task.side must be an integer between 3 and 8, got 'x'"),
        (NAME, {"task": {"word": "lef"}}, r"word must be one of left, right, got 'lef' \(did you mean left\?\)"),
        (NAME, {"plugin": {"name": "other"}}, "omit plugin"),
        (NAME, {"data": {"samples": 0}}, "data.samples must be an integer"),
        (NAME, {"data": {"samples": 10**9}}, "set data.samples to at most"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, LimitError), match=message):
        configured(fields, name)


@dataclass(frozen=True)
class Faulty(Task):
    version = "1"
    how: str = setting("", "What is wrong")

    def samples(self, rng: np.random.Generator, count: int) -> Any:
        import difflogic

        x = np.zeros((count, 3, 3, 1))
        match self.how:
            case "raises":
                raise RuntimeError("no\nroom")
            case "short":
                return difflogic.Dataset.of(x[1:], x[1:])
            case "shape":
                return difflogic.Dataset.of(x, x[:, 1:])
            case "value":
                return difflogic.Dataset.of(x + 2, x)
            case "list":
                return [x, x]
        return difflogic.Dataset.of(x, x)

    def fields(self) -> Any:
        return {"fields": {"train": {"batch": "many"}}, "section": {"train": 5}}.get(self.how, {})

    def judge(self, states: Any, samples: Any) -> Any:
        return {"nan": {"share": np.nan}, "text": {"share": "half"}, "none": None}.get(self.how, {})

    def pictures(self, film: Any, samples: Any) -> Any:
        grey = np.zeros((3, 3), dtype=np.uint8)
        return {"grey": {"a": grey}, "path": {"../a": np.zeros((3, 3, 3), np.uint8)}, "none": None}.get(self.how, {})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", "failed to make 2 samples: RuntimeError: no room."),
        ("short", "must return a difflogic.Dataset of 2 samples, got 1."),
        ("shape", "failed to make 2 samples: DataError: y must have"),
        ("value", "failed to make 2 samples: DataError: x must be 0 or 1 everywhere"),
        ("list", "must return a difflogic.Dataset of 2 samples, got a list."),
        ("fields", "has an invalid configuration, which follows from its `fields` and samples: ConfigError: .*batch"),
        ("section", "failed in `fields`: TypeError"),
        ("nan", "returned nan for share from `judge`: expected a finite number."),
        ("text", "failed in `judge`: ValueError"),
        ("none", "failed in `judge`: AttributeError"),
        ("grey", r"returned the image a as uint8 \[3, 3\]: expected uint8 \[H, W, 3\]"),
        ("path", "returned an image with the name '../a'"),
    ],
)
def test_errors_of_a_task_are_one_sentence_with_its_name(how: str, message: str) -> None:
    own = OwnTask("mine:faulty", Faulty, {"how": how}, {})
    with pytest.raises(FaultyTaskError, match=f"The task mine:faulty {message}"):  # noqa: PT012
        config = own.config(2)
        samples = own.drawn(2)
        states = np.zeros((2, 1, 3, 3, config.model.channels), dtype=np.uint8)
        own.evaluated(states, samples)
        own.drawings(states, samples)


class Undecorated(Task):
    version = "1"


@dataclass(frozen=True)
class Unversioned(Task):
    pass


@dataclass(frozen=True)
class Taken(Task):
    version = "1"
    steps: int = setting(3, "A field of every task")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Undecorated, "is not a task: expected a subclass of difflogic.Task, with @dataclass"),
        (dict, "is not a task"),
        (Unversioned, "has no version"),
        (Taken, "has a setting 'steps', which is a field of every task"),
    ],
)
def test_class_that_is_no_task_is_refused(made: type, message: str) -> None:
    with pytest.raises(FaultyTaskError, match=message):
        OwnTask("mine:x", made, {}, {})


@pytest.mark.parametrize("text", ["raise ValueError('broken')", "import nothing_of_this_name", "Fill = 3", "exit(3)"])
def test_distribution_that_cannot_be_loaded_is_named(text: str, tmp_path, monkeypatch) -> None:
    module = f"broken_{abs(hash(text))}"
    install(monkeypatch, tmp_path / "other", "broken", {module: text}, fill=f"{module}:Fill")
    assert "broken:fill" in registered.names()
    with pytest.raises(DifflogicError, match=r"The task broken:fill (could not be loaded|is not a task)"):
        registered.find("broken:fill")
