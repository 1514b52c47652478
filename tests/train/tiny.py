"""A checkerboard of 5x6 cells with 54 gates: an epoch takes milliseconds. Used in subprocesses too."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from difflogic.config import presets
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.runs import checkpoint
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import Row, read_rows
from difflogic.train.observer import Observer
from difflogic.train.replica import Replica
from tests.sections import sections

EPOCHS = 12


def tiny_config(**fields: Any) -> Config:
    """12 epochs, evaluated at 1, 5, 10 and the end; start logit 2, so that gates move at once."""
    perceive = NetworkConfig((9, 8, 4, 2), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((10, 12, 8, 4, 2), ("unique",) * 4)
    base = presets.checkerboard(small=True).with_(name="tiny", model=ModelConfig(2, 2, perceive, update))
    sizes = sections(height=5, width=6, steps=3, epochs=EPOCHS, batch=3, eval_interval=5, probes=4)
    return base.with_(**sizes, initial={"logit": 2.0}).with_(**sections(**fields))


def quick_config(**fields: Any) -> Config:
    """The same without trees, whose kernels a GPU compiles sooner, for each plan and schedule."""
    perceive = NetworkConfig((9, 8, 4, 3), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((14, 12, 8, 4, 2), ("unique",) * 4)
    return tiny_config(**fields).with_(model=ModelConfig(2, 2, perceive, update))


def arrays_of(path: Path) -> dict[int | str, Any]:
    """Everything in a run folder's checkpoint but the elapsed time, by seed, as comparable values."""
    found = checkpoint.read(path)
    return {each.config.seed: state_of(each) for each in found.members} | {"leader": found.best}


def state_of(model: ModelState | Replica) -> dict[str, Any]:
    """Wiring, state and lowest hard loss, as comparable values."""
    state = model.state
    wires = {f"{name}.{i}": layer for name, layers in model.circuit.wires.items() for i, layer in enumerate(layers)}
    arrays = {"logits": state.logits, "mu": state.optimizer.mu, "nu": state.optimizer.nu, **wires}
    arrays |= {"data_key": state.data_key, "train_key": state.train_key}
    arrays |= {name: array for name in ("pool", "costs") if (array := getattr(state, name)) is not None}
    numbers = {"step": state.optimizer.step, "epoch": state.epoch, "skipped": state.skipped, "best": model.best}
    return {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()} | numbers


def columns_of(path: Path) -> list[list[str]]:
    """metrics.csv without `elapsed_s`."""
    return [line.split(",")[:-1] for line in (path / "metrics.csv").read_text().splitlines()]


def rows_of(path: Path) -> list[list[Row]]:
    return [untimed(rows) for rows in read_rows(path, checkpoint.read(path).seeds)]


def untimed(rows: Sequence[Row]) -> list[Row]:
    return [replace(row, elapsed_s=0.0) for row in rows]


def assert_same_run(left: Path, right: Path) -> None:
    """Equal bit for bit in every array of every model, and in every metrics column except `elapsed_s`."""
    assert arrays_of(left) == arrays_of(right)
    assert columns_of(left) == columns_of(right)
    assert repr(rows_of(left)) == repr(rows_of(right))
    assert (left / "circuit.json").read_text() == (right / "circuit.json").read_text()


def every(epochs: int, observer: Observer | None = None) -> Observer:
    """Return an observer with this log interval."""
    observer = observer or Observer()
    observer.log_interval = epochs
    return observer
