"""`difflogic harden`: a run trained on with ever more hard gates."""

from pathlib import Path

import numpy as np
import pytest

from difflogic.runs import checkpoint
from tests.cli.conftest import Call

CPU = ("--engine", "cpu")


@pytest.fixture(params=[1, 4], ids="{} candidates".format)
def trained(difflogic: Call, request: pytest.FixtureRequest) -> None:
    falling = ("--set", "schedule.share=0.5", "--set", "schedule.end=12", "--set", f"model.candidates={request.param}")
    assert difflogic("train", "tiny", *CPU, *falling, "--population", 2, "--epochs", 12, "--out", "run").code == 0


@pytest.mark.usefixtures("trained")
def test_hardening_starts_from_the_best_model(difflogic: Call) -> None:
    files = {path: path.read_bytes() for path in Path("run").iterdir()}
    code, out, errors = difflogic("harden", "run", *CPU, "--epochs", 5, "--out", "hard")
    assert (code, errors) == (0, "")
    assert out.splitlines()[-1] == "Run folder:      hard"
    before, after = checkpoint.load(Path("run")), checkpoint.load(Path("hard"))
    assert (after.config.optimizer.lr, after.config.hardening.share) == (before.config.optimizer.lr / 2, 1)
    assert after.config.schedule.share == 1
    assert (after.config.hardening.begin, after.config.hardening.end) == (0, 4)
    assert all(map(np.array_equal, before.circuit.wires["update"], after.circuit.wires["update"]))
    assert np.abs(after.state.logits - before.state.logits).max() <= 5 * 0.5 * before.config.optimizer.lr * 1.1
    assert {path: path.read_bytes() for path in Path("run").iterdir()} == files


@pytest.mark.usefixtures("trained")
def test_search_trains_no_logits(difflogic: Call) -> None:
    code, out, errors = difflogic("harden", "run", *CPU, "--search", "--epochs", 20, "--out", "found")
    notice = "difflogic: compiling the search for this processor, which takes about 10 seconds, once.\n"
    assert (code, errors.replace(notice, "")) == (0, "")  # it is given by the first search on a machine
    assert "no soft loss, hard loss " in out
    assert "Soft loss:" not in Path("found/summary.txt").read_text(), "the last epochs were a search"
    before, after = checkpoint.load(Path("run")), checkpoint.load(Path("found"))
    assert np.array_equal(np.sort(before.state.logits, axis=1), np.sort(after.state.logits, axis=1))
    assert after.best is not None
    assert before.best is not None
    assert after.best < before.best


@pytest.mark.usefixtures("trained")
def test_hardening_takes_a_quarter_of_the_epochs(difflogic: Call) -> None:
    assert difflogic("harden", "run", *CPU, "--out", "hard").code == 0
    assert checkpoint.load(Path("hard")).config.train.epochs == 3


@pytest.mark.usefixtures("trained")
def test_run_without_soft_checkpoint_is_refused(difflogic: Call) -> None:
    for name, expected in (("nowhere", 2), ("run/circuit.json", 1)):
        code, out, errors = difflogic("harden", name, *CPU)
        assert (code, out) == (expected, "")
        assert errors.startswith("Error: ")
        assert errors.count("\n") == 1
        assert name in errors
    assert not Path("runs").exists()
