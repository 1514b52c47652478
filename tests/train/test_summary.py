"""The text of a run's result: what is proved, and what an unsolved run should try next."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from difflogic.actions.build import command_for
from difflogic.config import presets, recipes
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine.api import Engine
from difflogic.train import summary
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.evaluation.pass_on import keeper
from tests.learned import learned
from tests.train.scripted import Scripted
from tests.train.test_success import BOARD


@pytest.fixture(scope="module")
def engine() -> Engine:
    return open_engine("cpu")


def ended(config: Config, engine: Engine, wrong: int, **options: Any) -> Run:
    return Trainer(config, Scripted(engine, {1: wrong, 20: wrong})).run(**options)


def board(**train: Any) -> Config:
    return presets.checkerboard(small=True).with_(train={"epochs": 20, "eval_interval": 20, "probes": 1, **train})


def test_solved_run_needs_no_advice(engine: Engine) -> None:
    assert summary.next_steps(ended(board(), engine, 0), restarted=False) == []


def test_advice_names_only_new_options(engine: Engine, tmp_path: Path) -> None:
    run = ended(board(), engine, 100)
    told = "\n".join(summary.next_steps(run, restarted=False))
    assert "--recipe robust" in told
    assert "--restarts" in told
    assert "harden" not in told  # in memory there is no run to name
    assert "--restarts" not in "\n".join(summary.next_steps(run, restarted=True))
    robust = recipes.applied("robust", board())
    searched = board().with_(search={"begin": 10})  # as robust images are, without hardening
    for config in (robust, searched):
        assert "--recipe" not in "\n".join(summary.next_steps(ended(config, engine, 100), restarted=False))


def test_few_wrong_cells_recommend_a_search(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "my run"
    near = summary.next_steps(ended(board(), engine, 5, out=path), restarted=False)
    assert f"  difflogic harden '{path}' --search: repair the few wrong cells" in near
    far = summary.next_steps(ended(board(), engine, 100, out=tmp_path / "far"), restarted=False)
    assert not any("harden" in line for line in far)
    begun = summary.next_steps(ended(board(), engine, 5, out=tmp_path / "on", init_from=path), restarted=False)
    assert not any("repeat the training with" in line for line in begun)


def test_summary_says_what_is_proved() -> None:
    circuit = learned(BOARD)
    [line], [others] = summary.certainty(BOARD, circuit, 0)
    assert re.fullmatch(r"Initial states:  all show the target from step \d+ on \(proved\)", line)
    sizes = r"Other sizes:     32x32 right, 64x64 right, 18x17 (right|wrong) \(eventually; proved\)"
    assert re.fullmatch(sizes, others)
    hasty = BOARD.with_(task={"steps": 2})
    assert summary.certainty(hasty, circuit, 1)[0][0].endswith(" on, later than step 2 (proved)")
    assert summary.certainty(BOARD, keeper(8), 1) == ([], [])
    assert summary.certainty(BOARD.with_(task={"height": 64, "width": 65}), circuit, 0) == ([], [])


def test_proof_is_headline_of_solved_run(engine: Engine) -> None:
    run = ended(board(), engine, 0)
    [member], small = run.members, learned(BOARD)
    proved = replace(member.checkpoint(0.0), config=BOARD, circuit=small)
    for wrong, first in (
        (0, "every one of the 2^2048 starts ends in the target, for ever (proved)."),
        (1, "1 wrong cell"),
    ):
        text = summary.of_run(run.config, run.members, run.engine, 0, 0.0, replace(proved, best=wrong))
        assert text.startswith(f"{'Not solved' if wrong else 'Solved'}: {first}")
        assert ("\nEvaluation:      right on " in text) == (not wrong)


def test_summary_names_sizes_on_which_a_task_makes_sense() -> None:
    """The circuit keeps every state: right for a dot and for a rule on any grid, wrong for a lizard."""
    life, letter, lizard = map(presets.get, ("game-of-life", "colored-g", "lizard"))
    assert "all, since all 512" in summary.certainty(life, keeper(1), 0)[1][0]
    assert "none: the image grows from the border" in summary.certainty(letter, keeper(3), 0)[1][0]
    assert summary.certainty(lizard, keeper(128), 0)[1] == ["Other sizes:     40x40 wrong (by a rollout on each)"]
    dot = lizard.with_(task={"height": 3, "width": 3, "picture": ("...", ".1.", "..."), "steps": 2})
    assert "6x6 right, 12x12 right " in summary.certainty(dot, keeper(128), 0)[1][0]
    assert summary.certainty(lizard.with_(train={"fire_rate": 0.6}), keeper(128), 0) == ([], [])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("lizard", "difflogic build '{}' -o built"),
        ("game-of-life", "difflogic build B3/S23 -o built"),
        ("heart-persistent", None),
    ],
)
def test_unsolved_run_names_the_build_command(name: str, command: str | None, engine: Engine, tmp_path: Path) -> None:
    config = presets.get(name).with_(train={"epochs": 1, "eval_interval": 1})
    run = ended(config, engine, 9, out=tmp_path / "my run")
    assert command_for(run) == (command and command.format(run.path))
    assert ("without training" in str(summary.next_steps(run, False, command_for(run)))) == (command is not None)
