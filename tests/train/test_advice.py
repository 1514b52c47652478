"""What an unsolved run is told to try next: only what it has not had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from difflogic.config import presets, recipes
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine.api import Engine
from difflogic.train.advice import next_steps
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.train.scripted import Scripted


@pytest.fixture(scope="module")
def engine() -> Engine:
    return open_engine("cpu")


def ended(config: Config, engine: Engine, wrong: int, **options: Any) -> Run:
    return Trainer(config, Scripted(engine, {1: wrong, 20: wrong})).run(**options)


def board(**train: Any) -> Config:
    return presets.checkerboard(small=True).with_(train={"epochs": 20, "eval_interval": 20, "probes": 1, **train})


def test_a_solved_run_needs_no_advice(engine: Engine) -> None:
    assert next_steps(ended(board(), engine, 0), restarted=False) == []


def test_only_what_a_run_has_not_had(engine: Engine, tmp_path: Path) -> None:
    run = ended(board(), engine, 100)
    told = "\n".join(next_steps(run, restarted=False))
    assert "--recipe robust" in told
    assert "--restarts" in told
    assert "harden" not in told  # in memory there is no run to name
    assert "--restarts" not in "\n".join(next_steps(run, restarted=True))
    robust = recipes.applied("robust", board())
    searched = board().with_(search={"begin": 10})  # as the robust pictures are, without hardening
    for config in (robust, searched):
        assert "--recipe" not in "\n".join(next_steps(ended(config, engine, 100), restarted=False))


def test_few_wrong_values_are_searched_for(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "my run"
    near = next_steps(ended(board(), engine, 5, out=path), restarted=False)
    assert f"  difflogic harden '{path}' --search: mend the few wrong values" in near
    far = next_steps(ended(board(), engine, 100, out=tmp_path / "far"), restarted=False)
    assert not any("harden" in line for line in far)
    begun = next_steps(ended(board(), engine, 5, out=tmp_path / "on", init_from=path), restarted=False)
    assert not any("the same with" in line for line in begun)


@pytest.mark.parametrize(
    ("name", "command"), [("lizard", "difflogic build '{}'"), ("game-of-life", "difflogic build B3/S23")]
)
def test_unsolved_run_names_the_build_command(name: str, command: str, engine: Engine, tmp_path: Path) -> None:
    config = presets.get(name).with_(train={"epochs": 1, "eval_interval": 1})
    told = next_steps(ended(config, engine, 9, out=tmp_path / "my run"), restarted=False)
    assert f"  {command.format(tmp_path / 'my run')} -o circuit.json: a circuit without training" in told
