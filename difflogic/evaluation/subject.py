"""The trained circuit that is evaluated or rendered, and the run it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic import checkpoint
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import Engine
from difflogic.errors import CheckpointError, RunFolderError, UsageError
from difflogic.train import manifest, placement
from difflogic.train.journal import Row, last_evaluated, read_rows


@dataclass(frozen=True, eq=False)
class Subject:
    """One model of a run as its checkpoint holds it."""

    path: Path
    """The run folder, or the checkpoint file that was named."""
    config: Config
    """With the model's own seed."""
    circuit: Circuit
    """With the trained logits."""
    epoch: int
    rows: Sequence[Row]
    """Its metrics up to that epoch; none where only a checkpoint file was named."""
    members: int = 1
    """Models of the run; more than one in a population."""

    @property
    def folder(self) -> Path | None:
        """The run folder, where results can be kept."""
        return self.path if self.path.is_dir() else None

    @property
    def first_solved(self) -> int | None:
        """The first epoch whose evaluation found no wrong value."""
        return next((row.epoch for row in self.rows if row.hard_loss == 0), None)

    @property
    def judged(self) -> Row | None:
        """The row of the last evaluation on the probes."""
        return last_evaluated(self.rows)

    @property
    def title(self) -> str:
        which = f" of {self.members} models" if self.members > 1 else ""
        return f"{self.config.name}, seed {self.config.seed}{which}, after epoch {self.epoch}"


def load(path: Path, member: int | None = None) -> Subject:
    """The model in a run folder or checkpoint file: of a population the best, or the one counted `member` from 1.

    Raises CheckpointError where there is no usable or no trained checkpoint, UsageError for a member that is not
    there, RunFolderError where the metrics cannot be read.
    """
    path = Path(path)
    found = checkpoint.read(path)
    index = _index(path, member, found.leader, found.seeds)
    chosen = found.members[index]
    if found.epoch == 0:
        raise CheckpointError(
            f"The run in {path} has no trained circuit yet: its checkpoint is of epoch 0. Train it first."
        )
    try:
        rows = read_rows(path, found.seeds)[index] if path.is_dir() else []
    except OSError as error:
        raise RunFolderError(f"Cannot read the metrics in {path}: {error.strerror or error}.") from error
    return Subject(
        path=path,
        config=chosen.config,
        circuit=chosen.circuit,
        epoch=found.epoch,
        rows=rows[: found.epoch],
        members=len(found.members),
    )


def _index(path: Path, member: int | None, leader: int, seeds: Sequence[int]) -> int:
    if member is None:
        return leader
    if not 1 <= member <= len(seeds):
        range_ = f"1 to {len(seeds)}, of seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "1 alone"
        raise UsageError(f"There is no member {member} in {path}: it has {range_}.")
    return member - 1


def engine_of(subject: Subject) -> Engine:
    """The engine that a run was on; another where that one is not here now, as for a resumed run."""
    folder = subject.path if subject.folder else subject.path.parent
    return placement.place_again(manifest.last_engine(manifest.read(folder)), trusted=True).engine
