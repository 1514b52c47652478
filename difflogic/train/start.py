"""Where a run begins: fresh, from another run's circuit, or where it was left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from difflogic import checkpoint
from difflogic.checkpoint import Checkpoint
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import TrainState
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.train import schedule
from difflogic.train.folder import RunFolder
from difflogic.train.journal import Row


@dataclass(frozen=True, eq=False)
class Start:
    """A checkpoint and the rows that led to it."""

    checkpoint: Checkpoint
    rows: list[Row] = field(default_factory=list)
    notices: tuple[str, ...] = ()


def fresh(config: Config, init_from: Path | None) -> Start:
    """Epoch 0: pass-through gates, or the logits and the wiring they were trained with of another run.

    Raises CheckpointError where that run cannot be read, or has circuits of another shape.
    """
    circuit = Circuit.initial(config.model, config.seed, config.train.initial_logit)
    if init_from is not None:
        circuit = _borrowed(circuit, init_from)
    return Start(Checkpoint(config, circuit, TrainState.initial(circuit, config.seed)))


def _borrowed(expected: Circuit, path: Path) -> Circuit:
    circuit = checkpoint.load(path).circuit
    for network, layers in expected.logits.items():
        wanted = [list(layer.shape) for layer in layers]
        given = [list(layer.shape) for layer in circuit.logits[network]]
        if wanted != given:
            raise CheckpointError(
                f"--init-from needs a run with a circuit of the same shape: the {network} logits should be "
                f"{wanted}, those of {path} are {given}."
            )
    return replace(circuit, periodic=expected.periodic)


def resumed(config: Config, folder: RunFolder, file: Path, asked: Path) -> Start:
    """Where the run in `folder` was left, by its checkpoint `file`. `asked` is what the user named.

    Raises CheckpointError for an unusable file, ConfigError where `config` is another run's,
    UsageError where the run is already past `config.train.epochs`.
    """
    found = checkpoint.load(file)
    if found.config != config.with_(train={"epochs": found.config.train.epochs}):
        raise ConfigError(f"The run in {folder.path} has another configuration: only epochs may change on resume.")
    if found.state.epoch > config.train.epochs:
        raise UsageError(
            f"The run in {folder.path} is at epoch {found.state.epoch}, past the {config.train.epochs} asked for: "
            "give a larger --epochs."
        )
    notices = []
    if file.name == checkpoint.PREVIOUS and asked.is_dir():
        notices.append(f"{checkpoint.NAME} is missing (a save was cut short): going on from {file.name}.")
    rows = folder.read_rows()[: found.state.epoch]
    if len(rows) < found.state.epoch:
        raise CheckpointError(
            f"The metrics in {folder.path} end at epoch {len(rows)}, but its checkpoint is of epoch "
            f"{found.state.epoch}: restore metrics.jsonl, or start a new run with --init-from {folder.path}."
        )
    if found.state.epoch < config.train.epochs:
        rows = _scheduled_only(rows, config.train.eval_interval)
    return Start(replace(found, config=config), rows, tuple(notices))


def _scheduled_only(rows: list[Row], interval: int) -> list[Row]:
    """Without the evaluation that only the earlier end called for: a run that never ended there has none."""
    return [row if schedule.is_evaluated(row.epoch, interval) else row.unevaluated() for row in rows]
