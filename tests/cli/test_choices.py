"""The values and defaults in the help of the command line are those of the modules that define them."""

from typing import Any

import click
import pytest

from difflogic.bench import runner
from difflogic.circuits.export import formats
from difflogic.circuits.simulation import engines
from difflogic.circuits.synthesis import prove
from difflogic.cli.main import group
from difflogic.config import choices, picture_file, schema, task, train
from difflogic.config.request import TrainRequest
from difflogic.errors import ConfigError
from difflogic.evaluation import evaluate
from difflogic.runs import film
from difflogic.serve.api.bodies import schema_of
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.store.jobs import JobRequest


def option(command: str, name: str) -> click.Option:
    found = group.get_command(click.Context(group), command)
    return next(each for each in found.params if name in each.opts)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        *((command, "--from-film", "--from-recording") for command in ("train", "submit", "init")),
        *((command, "--film-rule", "--recording-rule") for command in ("train", "build")),
        *(("build", "--film-frames", "--frames"), ("prove", "--judge", "--checker")),
    ],
)
def test_older_names_of_options_are_aliases(command: str, old: str, new: str) -> None:
    assert option(command, old).opts == [new, old]


def test_checkers_and_formats_are_those_of_their_modules() -> None:
    assert option("prove", "--checker").type.choices == ("network", *prove.JUDGES)
    assert list(choices.EXPORTS) == list(formats.FORMATS)


@pytest.mark.parametrize(
    ("command", "name", "owned"),
    [
        ("train", "--start", {*task.STARTS} - {"picture"} | {"IMAGE"}),
        ("render", "--start", {*task.STARTS} - {"boards", "picture"} | {"FILE"}),
        ("simulate", "--start", {*task.STARTS} - {"boards"} | {"FILE"}),
        ("simulate", "--engine", {*engines.NAMES} - {"gpu"} | {"gpu[:INDEX", ":NAME]"}),
    ],
)
def test_help_shows_the_values_of_its_modules(command: str, name: str, owned: set[str]) -> None:
    assert set(option(command, name).metavar.split("|")) == owned


@pytest.mark.parametrize(
    ("command", "name", "shown"),
    [
        ("train", "--seed", schema.Config.__dataclass_fields__["seed"].default),
        ("train", "--eval-interval", train.TrainConfig(epochs=1, batch=1).eval_interval),
        ("train", "--threshold", picture_file.THRESHOLD),
        ("bench", "--rounds", f"{runner.Effort().rounds}; quick {runner.QUICK.rounds}"),
        ("evaluate", "--starts", f"{evaluate.STARTS}; quick {evaluate.QUICK_STARTS}"),
        ("render", "--frame-ms", film.FRAME_MS),
        ("serve", "--max-epochs", Caps().epochs),
        ("serve", "--max-population", Caps().population),
        ("serve", "--max-hours", f"{Caps().hours:.0f}"),
    ],
)
def test_defaults_in_help_are_true(command: str, name: str, shown: Any) -> None:
    assert f"[{shown}]" in option(command, name).help


def test_defaults_of_options_are_those_of_the_modules() -> None:
    for name in ("host", "port"):
        assert option("serve", f"--{name}").default == getattr(ServeSettings(), name)


def test_limits_in_help_are_those_of_the_service() -> None:
    asked = schema_of(JobRequest)["properties"]
    assert asked["colors"]["anyOf"][0]["enum"] == [*picture_file.CHANNELS]
    assert {*asked["start"]["anyOf"][0]["enum"]} == {*task.STARTS} - {"picture"}


def test_sizes_of_images_in_help_are_true() -> None:
    side = picture_file.MAX_SIDE
    assert f"at most {side}x{side} cells" in option("train", "--target").help
    TrainRequest(size=(side, 1))
    with pytest.raises(ConfigError, match=f"1 to {side} cells"):
        TrainRequest(size=(side + 1, 1))
