"""The command line in this process, with presets that take milliseconds."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from difflogic.cli.main import main
from difflogic.config import presets, recipes
from tests.train.tiny import tiny_config


class Result(NamedTuple):
    code: int
    out: str
    errors: str


Call = Callable[..., Result]


def complaints(errors: str) -> list[str]:
    """Return the lines of standard error without the notice that the CPU engine is compiled, which is printed once."""
    return [line for line in errors.splitlines() if "compiling the CPU engine" not in line]


class Output(NamedTuple):
    out: str
    err: str


Said = Callable[..., Output]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """`said("runs", "all", code=1).err`: what the command line wrote, after it ended with this code."""

    def run(*arguments: object, code: int = 0) -> Output:
        assert main([*map(str, arguments)]) == code, capsys.readouterr().err
        return Output(*capsys.readouterr())

    return run


@pytest.fixture
def call(difflogic: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`call("--epochs", 3)` runs `difflogic train-checkerboard --engine reference --epochs 3` in tmp_path."""
    monkeypatch.setitem(presets.PRESETS, "checkerboard", presets.Preset(tiny_config, "a stand-in"))

    def run(*arguments: object, engine: str | None = "reference") -> Result:
        return difflogic("train-checkerboard", *([] if engine is None else ["--engine", engine]), *arguments)

    return run


@pytest.fixture
def run(call: Call) -> Path:
    """A tiny run, three epochs long."""
    assert call("--epochs", 3, "--out", "here").code == 0
    return Path("here")


@pytest.fixture
def difflogic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """`difflogic("train", "tiny")` in tmp_path; `tiny` is a preset, but without the recipe that others have."""
    usual = recipes.usual
    monkeypatch.setattr(recipes, "usual", lambda config: "paper" if config.name == "tiny" else usual(config))
    monkeypatch.setitem(presets.PRESETS, "tiny", presets.Preset(tiny_config, "a stand-in"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Result:
        code = main([*map(str, arguments)])
        return Result(code, *capsys.readouterr())

    return run
