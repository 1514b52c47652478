"""Results of runs of automata or agents, and functions that read earlier runs from their folders."""

from __future__ import annotations

import shutil
import signal
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from difflogic.config import dataset
from difflogic.config import table as tables
from difflogic.config.dataset import Dataset
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.devices.device import Device
from difflogic.engine.api import EngineInfo
from difflogic.engine.job import TrainState
from difflogic.errors import RunFolderError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import checkpoint, chosen, manifest
from difflogic.runs.checkpoint import Checkpoint, ModelState
from difflogic.runs.chosen import Source
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import Row, read_rows
from difflogic.train import live, results, start
from difflogic.train.replica import Replica, best_of, member_of

if TYPE_CHECKING:  # these modules import many others that only agents need
    from difflogic.policies.member import Member

M = TypeVar("M", bound="Replica | Member")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EndedRun(Generic[M]):
    """Run that ended or was interrupted."""

    path: Path | None
    """Run folder; None if the run is in memory."""
    config: Config | PolicyConfig
    """Configuration of the run; for a population, with the first seed."""
    engine: EngineInfo
    members: Sequence[M]
    """Models of the run in the order of their seeds: one model, or a population."""
    epoch: int
    """Index of the last epoch; for agents, the count of environment steps so far."""
    interrupted: signal.Signals | str | None
    """Signal that interrupted the run, or the reason in its `Stop`; None if the run was not interrupted."""
    summary: str
    """Description of the result for users."""
    complete: bool = True
    """False if the run was interrupted while epochs were left."""
    given_up: str | None = None
    """Reason for early stopping, as the end of a sentence; None if the run was not stopped early."""
    lender: str | None = None
    """Source of the initial circuit, as the end of a sentence; None for a new circuit."""
    accepted: bool = False
    """True if the last evaluation found a solution, by default a circuit without a wrong cell on evaluation grids."""

    def __fspath__(self) -> str:
        """Return the run folder, so that functions accept a run in place of its path. Raises UsageError."""
        return str(self.path or self._temporary)

    @cached_property
    def _temporary(self) -> Path:
        raise UsageError("This run of agents is in memory, but its folder is required: train with `out`.")

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"in {self.path}"
        return f"<Run of {self.config.name}, seed {self.config.seed}, {where}: {self.summary.splitlines()[0]}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Run(EndedRun[Replica]):
    """A run of automata that ended, or was interrupted.

    `best`, `circuit`, `wrong` and `solved` describe the best circuit of all epochs. `state` is the last state, from
    which training continues. `metrics` are the rows of all epochs; for a population, those of the best model.

        >>> difflogic.load_run(folder).metrics[0].epoch
        1
    """

    config: Config
    best: ModelState
    """Best model: fewest mismatches, then fewest active gates; before the first evaluation, a model's last state."""
    wrong: int | None
    """Number of mismatches of `best` on the evaluation grids; None before the first evaluation."""
    data: Dataset | None = None
    """Samples of the task; None if the task has no samples."""

    @cached_property
    def _temporary(self) -> Path:
        path = Path(tempfile.mkdtemp(prefix="difflogic-run-"))
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        last = Checkpoint(tuple(member.checkpoint(0.0) for member in self.members), best_of(self.members))
        record = manifest.begin(self.config, self.engine, "in memory", None, last.seeds)
        record = manifest.end(record, "complete" if self.complete else "interrupted", self.epoch, self.summary)
        contents = {} if self.data is None else {dataset.NAME: self.data.encode()}
        contents[results.SUMMARY] = self.summary.encode()
        with closing(RunFolder.create(path, last, manifest.to_json(record), contents)) as folder:
            folder.append([member.metrics for member in self.members])
            if self.wrong is not None:
                folder.keep_best(Checkpoint((self.best,)))
        return path

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a rollout of the best circuit, the curves, and the summary."""
        # Hard rollouts are the same on every engine; the reference engine needs neither a device nor a compiler.
        return live.in_html(results.images(ReferenceEngine(), self.members, self.best), self.summary)

    @property
    def circuit(self) -> Circuit:
        """Best circuit of the run, with its trained logits."""
        return self.best.circuit

    @property
    def netlist(self) -> CellNetlist:
        """Netlist of the hard gates of `circuit`, with visible channels and grid."""
        return CellNetlist.of_run(self.circuit, self.best.config)

    @property
    def member(self) -> Replica:
        """Model that reached `best`, in its state after the last epoch."""
        return member_of(self.members, self.best)

    @property
    def metrics(self) -> list[Row]:
        """Metrics of the best model, one row per epoch."""
        return self.member.metrics

    @property
    def state(self) -> TrainState:
        """Last state of the best model, from which --resume continues; its circuit may differ from the best circuit."""
        return self.member.state

    @property
    def solved(self) -> bool:
        """True if `circuit` has no wrong cell on evaluation grids."""
        return self.wrong == 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AgentRun(EndedRun["Member"]):
    """A run of agents that ended, or was interrupted."""

    config: PolicyConfig
    leader: int
    """Index of the best member."""
    elapsed_s: float
    baselines: dict[str, float] | None = None
    """Mean returns of agents that do not learn, by agent name; None before the run has ended."""

    @property
    def best(self) -> Member:
        """Member with the highest last score, the first in a tie; classifiers are compared on validation rows."""
        return self.members[self.leader]

    @property
    def score(self) -> float | None:
        """Mean return of the best member: on fresh episodes if the run has ended, or in its last evaluation."""
        return None if self.best.score is None else self.best.score.mean

    @property
    def solved_members(self) -> list[Member]:
        """Members whose last evaluation reached the threshold."""
        return [member for member in self.members if member.solved]

    @property
    def solved(self) -> bool:
        return self.best.solved


def load_run(folder: Source) -> Run:
    """Read the run in a folder; for a folder of attempts, the best attempt.

        >>> difflogic.load_run(folder).config.name
        'tiny'

    Args:
        folder: The run folder.

    Returns:
        The run.

    Raises:
        CheckpointError, RunFolderError: A part of the folder is missing, or cannot be read.
    """
    folder = chosen.run_folder(chosen.path_of(folder))
    saved, (record, engine) = checkpoint.read(folder), _record(folder)
    try:
        # If the run was killed, rows may be newer than its checkpoint.
        rows = [of_member[: saved.epoch] for of_member in read_rows(folder, saved.seeds)]
        summary = (folder / results.SUMMARY).read_text(encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"Cannot read the run folder {folder}: {error.strerror or error}.") from error
    best = checkpoint.load(folder / checkpoint.BEST) if (folder / checkpoint.BEST).exists() else None
    config = saved.members[0].config
    data = dataset.of_run(config, folder)
    members = start.members(saved, rows, data)
    return Run(
        path=folder,
        config=config,
        engine=engine,
        members=members,
        best=best or saved.members[best_of(members)],
        wrong=None if best is None else best.best,
        epoch=saved.epoch,
        interrupted=None,
        summary=summary,
        complete=record["status"] == "complete",
        data=data,
    )


def _record(folder: Path) -> tuple[dict[str, Any], EngineInfo]:
    """Return a run's manifest and the engine that last trained it. Raises RunFolderError if no engine is named."""
    record = manifest.read(folder)
    engine = manifest.last_engine(record)
    if engine is None:
        raise RunFolderError(f"The {manifest.NAME} of the run folder {folder} does not name the engine of the run.")
    return record, engine


def load_agents(folder: Path) -> AgentRun:
    """Read a run of agents or classifiers. Raises CheckpointError or RunFolderError."""
    from difflogic.policies import results as outcomes
    from difflogic.policies.evaluate import Score
    from difflogic.policies.member import Member

    saved, (record, engine) = checkpoint.read_agents(folder), _record(folder)
    table = tables.of_run(saved.members[0].config, folder)
    members = [Member.restored(state.config, Device("cpu"), state.arrays, table) for state in saved.members]
    evaluation = outcomes.read(folder)
    for member, score in zip(members, evaluation.get("members", ()), strict=False):
        member.score = Score(tuple(score["returns"]), tuple(score["lengths"]))
    for member in members:
        member.environments.close()
    return AgentRun(
        path=folder,
        config=saved.members[0].config,
        leader=saved.best,
        engine=engine,
        members=members,
        epoch=saved.epoch,
        interrupted=None,
        summary=(folder / results.SUMMARY).read_text(encoding="utf-8"),
        complete=record["status"] == "complete",
        elapsed_s=saved.members[0].elapsed_s,
        baselines=evaluation.get("baselines"),
    )


def load_any(folder: Path) -> Run | AgentRun:
    """Read a run of automata or agents. Raises CheckpointError or RunFolderError."""
    return load_agents(folder) if manifest.is_policy(manifest.read(folder)) else load_run(folder)
