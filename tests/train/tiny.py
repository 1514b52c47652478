"""A checkerboard of 5x6 cells with 54 gates: an epoch takes milliseconds. Used in subprocesses too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.config import presets
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.runs import checkpoint
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import read_rows
from tests.sections import sections

EPOCHS = 12


def tiny_config(**fields: Any) -> Config:
    """12 epochs, evaluated at 1, 5, 10 and the end; start logit 2, so that gates move at once."""
    perceive = NetworkConfig((9, 8, 4, 2), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((10, 12, 8, 4, 2), ("unique",) * 4)
    return (
        presets.checkerboard(small=True)
        .with_(
            name="tiny",
            model=ModelConfig(channels=2, kernels=2, perceive=perceive, update=update),
            task={"height": 5, "width": 6, "steps": 3},
            train={"epochs": EPOCHS, "batch": 3, "eval_interval": 5, "probes": 4},
            initial={"logit": 2.0},
        )
        .with_(**sections(**fields))
    )


def arrays_of(path: Path) -> dict[str, Any]:
    """Everything in a run folder's checkpoint but the elapsed time, as comparable values."""
    found: ModelState = checkpoint.load(path)
    state = found.state
    wires = {f"{name}.{i}": layer for name, layers in found.circuit.wires.items() for i, layer in enumerate(layers)}
    arrays = {"logits": state.logits, "mu": state.optimizer.mu, "nu": state.optimizer.nu, **wires}
    arrays |= {"data_key": state.data_key, "train_key": state.train_key}
    arrays |= {} if state.pool is None else {"pool": state.pool}
    numbers = {"step": state.optimizer.step, "epoch": state.epoch, "skipped": state.skipped, "best": found.best}
    return {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()} | numbers


def columns_of(path: Path) -> list[list[str]]:
    """metrics.csv without `elapsed_s`."""
    return [line.split(",")[:-1] for line in (path / "metrics.csv").read_text().splitlines()]


def assert_same_run(left: Path, right: Path) -> None:
    """Equal bit for bit in every array and every metrics column except `elapsed_s`."""
    assert arrays_of(left) == arrays_of(right)
    assert columns_of(left) == columns_of(right)
    rows = [[repr(replace(row, elapsed_s=0.0)) for row in read_rows(path)[0]] for path in (left, right)]
    assert rows[0] == rows[1]
    assert (left / "circuit.json").read_text() == (right / "circuit.json").read_text()
    assert np.array_equal(checkpoint.load(left).state.logits, checkpoint.load(right).state.logits)
