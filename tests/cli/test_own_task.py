"""Tasks in Python on the command line: trained, listed, explained, resumed, evaluated; and runs without their task."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.config.schema import Config
from tests.cli.conftest import Call
from tests.own_tasks import PLAIN, install

NAME = "my-package:fill"
ENGINE = ("--engine", "reference")


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delitem(sys.modules, "plain_fill", raising=False)
    install(monkeypatch, tmp_path / "site", "my-package", {"plain_fill": PLAIN}, fill="plain_fill:Fill")
    return tmp_path / "site"


def other(site: Path, before: str, after: str) -> None:
    """Another edition of the task is installed."""
    text = (site / "plain_fill.py").read_text()
    assert before in text
    # Of another length, so that no compiled copy of the same second is taken for it.
    (site / "plain_fill.py").write_text(text.replace(before, after) + "\n# another edition\n")
    sys.modules.pop("plain_fill", None)


@pytest.fixture
def train(difflogic: Call) -> Call:
    return partial(difflogic, "train", "--recipe", "paper", *ENGINE, "--out", "run")


def test_task_in_python_is_trained_and_evaluated(difflogic: Call, train: Call) -> None:
    result = train(NAME, "--set", "task.side=5")
    assert result.code == 0, result.errors
    picture = np.asarray(Image.open("run/task-first.png"))
    assert picture.shape[2] == 3
    assert picture.shape[0] % 5 == 0
    config = Config.load(Path("run/config.toml"))
    assert (config.plugin.name, config.plugin.version, config.plugin.settings["side"]) == (NAME, "1", 5)
    assert difflogic("train", "--resume", "run", "--epochs", 6).code == 0
    made = difflogic("evaluate", "run", "--starts", 70, "--set", "task.side=7", "--json", *ENGINE)
    found = {each["key"]: each for each in json.loads(made.out)["measures"]}
    assert found["own-task"]["title"] == f"70 fresh samples of {NAME}, side 7, word left"
    assert found["own-task"]["values"]["samples"] == 70
    assert 0 <= found["own-task"]["values"]["share of ones"] <= 1
    # The same file trains the same run: its samples are drawn again, and are the same.
    assert difflogic("train", "--config", "run/config.toml", "--out", "again", "--engine", "reference").code == 0
    assert Path("again/data.npz").read_bytes() == Path("run/data.npz").read_bytes()


def test_task_is_listed_with_the_presets(difflogic: Call) -> None:
    rows = [json.loads(line) for line in difflogic("presets", "--json").out.splitlines()]
    assert [row["about"] for row in rows if row["preset"] == NAME] == ["Every row becomes what its first cell is"]
    assert "side = 4" in difflogic("presets", NAME).out
    assert difflogic("init", NAME, "--set", "task.side=6").code == 0
    text = Path("fill.toml").read_text()
    assert "# Cells a side (an integer between 3 and 8; preset: 6)." in text
    Path("fill.toml").write_text(text.replace("side = 6", "side = 3"))
    assert difflogic("train", "--config", "fill.toml", "--engine", "reference", "--out", "run").code == 0
    assert Config.load(Path("run/config.toml")).task.width == 3


def test_run_works_without_its_task(difflogic: Call, train: Call, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(NAME)
    before = Path("run/checkpoint.safetensors").read_bytes()
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(site)])
    result = difflogic("train", "--resume", "run", "--epochs", 6)
    assert (result.code, result.errors.count("\n")) == (2, 1)
    assert f"Unknown task '{NAME}'" in result.errors
    assert Path("run/checkpoint.safetensors").read_bytes() == before
    # The files of the run are enough to evaluate and draw it.
    judged = difflogic("evaluate", "run", "--quick", *ENGINE)
    assert judged.code == 0
    assert "not tested" in judged.out
    assert difflogic("evaluate", "run", "--quick", "--set", "task.side=5", *ENGINE).code == 2


def test_resume_warns_of_another_version_of_the_task(difflogic: Call, train: Call, site: Path) -> None:
    train(NAME)
    other(site, 'version = "1"', 'version = "2"')
    result = difflogic("train", "--resume", "run", "--epochs", 6)
    assert result.code == 0
    assert f"The installed task {NAME} has version 2, and the run has version 1" in result.out + result.errors


@pytest.mark.parametrize(
    ("before", "after", "code", "message"),
    [
        ("x = rng", "raise ValueError('no')\n        x = rng", 1, "failed to make 2 samples: ValueError"),
        ("steps=2)", "steps=0)", 1, "failed to make 2 samples: DataError: steps must be"),
        ("import numpy", "import nowhere, numpy", 1, "could not be loaded: ModuleNotFoundError"),
        ("3, axis=-1)}", "3, axis=-1).mean()}", 0, "returned the image first as float64"),
    ],
)
def test_failing_task_is_named_in_one_sentence(train: Call, site: Path, before, after, code, message) -> None:
    other(site, before, after)
    result = train(NAME)
    assert result.code == code
    assert f"The task {NAME} {message}" in result.out + result.errors
    assert "Traceback" not in result.errors
    # Nothing is lost if only its images fail, and nothing is left if it returned no samples.
    assert Path("run/summary.txt").exists() == (code == 0)


def test_faulty_task_does_not_hide_the_others(difflogic: Call, site: Path) -> None:
    other(site, "import numpy", "import nowhere, numpy")
    result = difflogic("presets")
    assert result.code == 0
    assert "lizard" in result.out
    assert f"Skipped: The task {NAME} could not be loaded" in result.errors
