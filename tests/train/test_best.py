"""Best circuit of a run, saved next to the last: its choice, and a resume."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError
from difflogic.evaluation import trained_circuit
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.runs import checkpoint, chosen
from difflogic.train.observer import Observer
from difflogic.train.run import Run, load_run
from difflogic.train.trainer import Trainer
from tests.train.scripted import Scripted


@pytest.fixture
def run(config: Config, one: Engine, tmp_path: Path) -> Run:
    """Best at epochs 5 and 10, of 12."""
    return Trainer(config, Scripted(one, {1: 50, 5: 3, 10: 3, 12: 40})).run(out=tmp_path / "my run")


def test_latest_of_equally_good_circuits_is_saved(run: Run) -> None:
    assert run.path is not None
    found = chosen.load(run.path)
    assert (found.epoch, found.last, run.wrong) == (10, 12, 3)
    assert found.told == (
        f"{run.path}: the best circuit, of epoch 10, with 3 wrong cells on its evaluation grids; "
        "the last is from epoch 12."
    )
    assert checkpoint.load(run.path).state.epoch == run.state.epoch == 12
    assert trained_circuit.load(run.path).epoch == 10
    assert len(trained_circuit.load(run.path).rows) == 12


def test_named_checkpoint_is_loaded_instead_of_the_best(run: Run) -> None:
    assert run.path is not None
    assert chosen.load(run.path / checkpoint.NAME).epoch == 12
    assert chosen.load(run.path / checkpoint.BEST).epoch == 10


def test_run_without_a_best_file_gives_its_last(run: Run) -> None:
    assert run.path is not None
    (run.path / checkpoint.BEST).unlink()
    found = chosen.load(run.path)
    assert (found.epoch, found.told) == (12, f"{run.path}: the last circuit, of epoch 12.")


def test_result_is_the_best(config: Config, tmp_path: Path) -> None:
    engine = open_engine("cpu")
    run = Trainer(config.with_(train={"epochs": 60}, optimizer={"lr": 0.5}), engine).run(out=tmp_path / "run")
    assert run.path is not None
    best = chosen.load(run.path)
    lowest = min(row.hard_loss for row in run.metrics if row.hard_loss is not None)
    assert run.wrong == best.model.best == lowest
    assert run.metrics[best.epoch - 1].hard_loss == lowest
    assert np.array_equal(run.circuit.flat_logits(), best.circuit.flat_logits())
    text = netlist_json.to_json(CellNetlist.of_run(best.circuit, best.config))
    assert (run.path / "circuit.json").read_text() == text
    assert np.array_equal(load_run(run.path).circuit.flat_logits(), run.circuit.flat_logits())


def test_best_that_is_ahead_of_the_checkpoint_is_dropped(config: Config, one: Engine, run: Run) -> None:
    """A crash between the two files leaves such a best, and its epochs are trained again."""
    assert run.path is not None
    (run.path / checkpoint.PREVIOUS).unlink()
    early = Trainer(config, Scripted(one, {5: 3})).run(out=run.path.parent / "early", epochs=5)
    assert early.path is not None
    shutil.copy(run.path / checkpoint.BEST, early.path / checkpoint.BEST)
    seen = []

    class Looks(Observer):
        def advanced(self, epoch: int) -> None:
            seen.append((early.path / checkpoint.BEST).exists())

    on = Trainer(config, Scripted(one, {10: 7})).run(resume=early.path, observer=Looks())
    assert not any(seen[:2])
    assert on.wrong == 7


def test_resume_keeps_the_best(config: Config, one: Engine, run: Run) -> None:
    assert run.path is not None
    on = Trainer(config.with_(train={"epochs": 20}), Scripted(one, {15: 4})).run(resume=run.path)
    assert (on.wrong, on.state.epoch) == (3, 20)
    assert chosen.load(run.path).epoch == 10


def test_damaged_best_is_named(run: Run, config: Config, one: Engine) -> None:
    assert run.path is not None
    (run.path / checkpoint.BEST).write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"best\.safetensors is not .* Remove it to use the last circuit"):
        chosen.load(run.path)
    told: list[str] = []
    observer = Observer()
    observer.noticed = told.append  # type: ignore[method-assign]
    Trainer(config, Scripted(one, {})).run(resume=run.path, observer=observer)
    assert "is ignored" in told[0]
    assert not (run.path / checkpoint.BEST).exists()


def test_best_of_a_population_is_one_model(config: Config, tmp_path: Path) -> None:
    run = Trainer(config.with_(train={"epochs": 40}, optimizer={"lr": 0.5}), open_engine("cpu")).run(
        out=tmp_path / "run", population=3
    )
    assert run.path is not None
    best = chosen.load(run.path)
    lowest = min(row.hard_loss for each in run.members for row in each.metrics if row.hard_loss is not None)
    assert best.model.best == lowest
    assert run.members[best.index].metrics[best.epoch - 1].hard_loss == lowest
    assert chosen.load(run.path, 2).config.seed == run.members[1].seed
    assert (run.path / checkpoint.BEST).stat().st_size < (run.path / checkpoint.NAME).stat().st_size / 2


def test_init_from_starts_with_the_best(config: Config, one: Engine, run: Run) -> None:
    began = []
    observer = Observer()
    observer.began = began.append  # type: ignore[method-assign]
    Trainer(config, Scripted(one, {})).run(init_from=run.path, observer=observer, epochs=1)
    assert began[0].lender == chosen.load(Path(str(run.path))).told
