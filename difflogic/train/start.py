"""Where a run begins: fresh, from another run's circuit, or where it was left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from difflogic import checkpoint
from difflogic.checkpoint import Checkpoint, Snapshot
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import TrainState
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.train import population as populations
from difflogic.train import schedule, tasks
from difflogic.train.folder import RunFolder
from difflogic.train.journal import Row
from difflogic.train.member import Member


@dataclass(frozen=True, eq=False)
class Start:
    """A snapshot, and the members it holds with the rows that led to it."""

    snapshot: Snapshot
    members: list[Member]
    notices: tuple[str, ...] = ()


def fresh(config: Config, init_from: Path | None, population: int = 1) -> Start:
    """Epoch 0: pass-through gates, or the logits and the wiring they were trained with of another run.

    Raises ConfigError or LimitError for a population that cannot be, CheckpointError where that other run
    cannot be read, or has circuits of another shape.
    """
    configs = populations.configs(config, population)
    lender = None if init_from is None else checkpoint.load(init_from).circuit
    snapshot = Snapshot(tuple(_first(each, lender, init_from) for each in configs))
    return Start(snapshot, _members(snapshot, [[] for _ in configs]))


def _first(config: Config, lender: Circuit | None, path: Path | None) -> Checkpoint:
    train = config.train
    circuit = Circuit.initial(config.model, config.seed, train.initial_logit, train.narrow_drop, train.logit_noise)
    if lender is not None:
        circuit = _borrowed(circuit, lender, path)
    return Checkpoint(config, circuit, TrainState.initial(tasks.make_job(config, circuit)))


def _borrowed(expected: Circuit, circuit: Circuit, path: Path | None) -> Circuit:
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

    `config` is its own, a population's with the first seed. Raises CheckpointError for an unusable file,
    ConfigError where `config` is another run's, UsageError where the run is already past `config.train.epochs`.
    """
    found = checkpoint.read(file)
    epochs, first = config.train.epochs, found.members[0].config
    if first != config.with_(train={"epochs": first.train.epochs}):
        raise ConfigError(f"The run in {folder.path} has another configuration: only epochs may change on resume.")
    if found.epoch > epochs:
        raise UsageError(
            f"The run in {folder.path} is at epoch {found.epoch}, past the {epochs} asked for: give a larger --epochs."
        )
    notices = []
    if file.name == checkpoint.PREVIOUS and asked.is_dir():
        notices.append(f"{checkpoint.NAME} is missing (a save was cut short): going on from {file.name}.")
    rows = [each[: found.epoch] for each in folder.read_rows(found.seeds)]
    complete = min(len(each) for each in rows)
    if complete < found.epoch:
        raise CheckpointError(
            f"The metrics in {folder.path} end at epoch {complete}, but its checkpoint is of epoch "
            f"{found.epoch}: restore metrics.jsonl, or start a new run with --init-from {folder.path}."
        )
    if found.epoch < epochs:
        rows = [_scheduled_only(each, config.train.eval_interval) for each in rows]
    members = tuple(replace(each, config=each.config.with_(train={"epochs": epochs})) for each in found.members)
    snapshot = replace(found, members=members)
    return Start(snapshot, _members(snapshot, rows), tuple(notices))


def _members(snapshot: Snapshot, rows: Sequence[Sequence[Row]]) -> list[Member]:
    return [
        Member(tasks.make_job(each.config, each.circuit), each.state, list(so_far), each.best)
        for each, so_far in zip(snapshot.members, rows, strict=True)
    ]


def _scheduled_only(rows: Sequence[Row], interval: int) -> list[Row]:
    """Without the evaluation that only the earlier end called for: a run that never ended there has none."""
    return [row if schedule.is_evaluated(row.epoch, interval) else row.unevaluated() for row in rows]
