"""Runs that learn samples: their folder, their evaluation, and a resume."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import difflogic
from difflogic.actions.evaluate import evaluate
from difflogic.config.customise import configure
from difflogic.config.dataset import Dataset
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.core import rules
from difflogic.core.prng import key_from_seed
from difflogic.devices.open import Placement
from difflogic.engine.job import begun
from difflogic.errors import DataError, DifflogicError
from difflogic.evaluation.render import render
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import chosen
from difflogic.train import restarts
from difflogic.train.run import load_run
from difflogic.train.start import fresh
from difflogic.train.success import SuccessTest
from difflogic.train.trainer import Trainer
from tests.train.tiny import arrays_of, rows_of, tiny_config

RNG = np.random.default_rng(5)
X = RNG.integers(0, 2, (20, 5, 6, 1), dtype=np.uint8)
SHIFTED = Dataset.of(X, np.roll(X, 1, axis=2))
"""Each cell becomes its left neighbour, on a torus: one gate."""


def config_of(samples: Dataset, **fields: object) -> Config:
    return configure(TrainRequest(config=tiny_config(), data=samples, set=fields)).config


CONFIG = config_of(SHIFTED, model={"periodic": True})


def test_resume_needs_only_the_run_folder(tmp_path: Path) -> None:
    whole = Trainer(CONFIG, ReferenceEngine()).run(out=tmp_path / "whole", population=2, data=SHIFTED)
    Trainer(CONFIG, ReferenceEngine()).run(epochs=5, out=tmp_path / "parts", population=2, data=SHIFTED)
    Trainer(CONFIG, ReferenceEngine()).run(resume=tmp_path / "parts")
    assert arrays_of(tmp_path / "parts") == arrays_of(tmp_path / "whole")
    assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")
    one, two = (member.job.held_out for member in whole.members)
    assert one is two
    assert load_run(tmp_path / "whole").config == CONFIG
    assert "on all 4 samples that were held out" in whole.summary


def test_evaluation_takes_held_out_or_other_samples(tmp_path: Path) -> None:
    Trainer(CONFIG, ReferenceEngine()).run(out=tmp_path / "run", data=SHIFTED)
    found, best = evaluate(tmp_path / "run", ReferenceEngine()), chosen.load(tmp_path / "run")
    values = found["samples"].values
    assert (values["wrong"], values["samples"], values["values"]) == (best.model.best, 4, 4 * 30)
    seen = found["seen-neighbourhoods"].values
    assert (seen["entries"], seen["right"] < seen["seen"]) == (512, values["wrong"] > 0)
    wide = RNG.integers(0, 2, (3, 9, 4, 1))
    other = evaluate(tmp_path / "run", ReferenceEngine(), data=Dataset.of(wide, wide, steps=(1, 2)))["samples"]
    states = ReferenceEngine().rollout(best.circuit, np.pad(wide, [(0, 0)] * 3 + [(0, 1)]), 2, "hard")[1:, ..., :1]
    assert other.values["wrong"] == np.count_nonzero(states != wide)
    assert other.values["wrong_samples"] == np.count_nonzero((states != wide).any(axis=(0, 2, 3, 4)))
    with pytest.raises(DataError, match="Expected samples of at most 2 channels for this circuit, got 3"):
        evaluate(tmp_path / "run", ReferenceEngine(), data=Dataset.of(*[RNG.integers(0, 2, (3, 5, 5, 3))] * 2))
    render(tmp_path / "run", tmp_path / "film.gif", engine=ReferenceEngine())
    assert (tmp_path / "film.gif").stat().st_size > 100
    np.savez(tmp_path / "run" / "data.npz", x=X, y=X)
    with pytest.raises(DataError, match=r"data\.npz are not those of the configuration: their SHA-256"):
        chosen.load(tmp_path / "run").data()


def test_every_attempt_has_the_samples(tmp_path: Path) -> None:
    config = CONFIG.with_(train={"epochs": 6})
    request = TrainRequest(config=config, restarts=1, data=SHIFTED)
    made = restarts.train(request, Placement(ReferenceEngine()), tmp_path / "run")
    assert all((tmp_path / "run" / each.folder / "data.npz").exists() for each in made.record.attempts)
    assert chosen.load(tmp_path / "run").data().sha256 == SHIFTED.sha256


def test_training_samples_must_be_right_too() -> None:
    test = SuccessTest(ReferenceEngine(), CONFIG)
    member = fresh(TrainRequest(config=CONFIG, data=SHIFTED)).members[0]
    task, circuit = member.job, member.circuit
    assert task.data is not None
    assert test.misses_samples(circuit, task)
    first = begun(CONFIG, task.data, key_from_seed(0)).astype(np.float32)
    states = ReferenceEngine().rollout(circuit, first, 1, "hard")
    mine = Dataset.of(task.data.x, states[-1][..., :1].astype(np.uint8))
    assert not test.misses_samples(circuit, replace(task, data=mine))


def test_missing_and_contradicting_samples_are_reported() -> None:
    with pytest.raises(DifflogicError, match="data samples are missing: give --data"):
        fresh(TrainRequest(config=CONFIG))
    with pytest.raises(DataError, match=r"their SHA-256 is not data\.sha256"):
        fresh(TrainRequest(config=CONFIG, data=Dataset.of(X, X)))
    y = rules.apply(rules.table("B3/S23"), X[..., 0], False)[..., None]
    y[3, 2, 2] ^= 1
    torn = Dataset.of(np.zeros_like(X), y)
    (notice,) = fresh(TrainRequest(config=config_of(torn), data=torn)).notices
    assert notice.startswith("The samples contradict each other: ")
    assert not fresh(TrainRequest(config=CONFIG, data=SHIFTED)).notices


def wireworld(states: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    moves = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
    heads = sum((np.roll(states, move, (-2, -1)) == 1).astype(np.int64) for move in moves)
    return np.choose(states, [0, 2, 3, np.where((heads == 1) | (heads == 2), 1, 3)]).astype(np.uint8)


def of_states(x: npt.NDArray[np.uint8], y: npt.NDArray[np.uint8]) -> Dataset:
    return Dataset.of(np.stack([x & 1, x >> 1], axis=-1), np.stack([y & 1, y >> 1], axis=-1))


WIRES = RNG.integers(0, 4, (24, 12, 12), dtype=np.uint8)
SAMPLES = of_states(WIRES, wireworld(WIRES))


def test_build_finds_the_rule_of_samples() -> None:
    built, other = difflogic.build(SAMPLES), RNG.integers(0, 4, (8, 12, 12), dtype=np.uint8)
    pairs = of_states(other, wireworld(other))
    assert built.ok
    np.testing.assert_array_equal(built.netlist.rollout(pairs.x, 1)[-1], pairs.y[:, 0])


def test_build_refuses_samples_that_no_rule_explains() -> None:
    """Random next states are no rule, and equal cells that become different ones contradict each other."""
    with pytest.raises(DifflogicError, match="no simple rule explains all samples"):
        difflogic.build(of_states(WIRES[:2], WIRES[2:4]))
    x = np.zeros((3, 5, 5, 1), np.uint8)
    x[:2, 2, 2] = 1
    with pytest.raises(DifflogicError, match="the cell in the middle of 0 0 0 0 1 0 0 0 0 becomes 1 and 0"):
        difflogic.build(Dataset.of(x, x * np.array([1, 0, 1])[:, None, None, None]))
