"""What a run came to, of automata or of agents; and runs that ended earlier, read from their folders."""

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
from typing import TYPE_CHECKING, Generic, TypeVar

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

if TYPE_CHECKING:  # half of what it loads is for agents alone
    from difflogic.policies.member import Member

M = TypeVar("M", bound="Replica | Member")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EndedRun(Generic[M]):
    """What is known of every run that ended, or was interrupted."""

    path: Path | None
    """Its folder; None where it was kept in memory."""
    config: Config | PolicyConfig
    """A population's with its first seed."""
    engine: EngineInfo
    members: Sequence[M]
    """One, or a population's, in the order of their seeds."""
    epoch: int
    """Epochs that are done; of agents environment steps."""
    interrupted: signal.Signals | str | None
    """What asked it to stop: a signal, or the reason that was given to its `Stop`."""
    summary: str
    """The result in words."""
    complete: bool = True
    """False where epochs are left, and nothing but a signal ended it."""
    given_up: str | None = None
    """Why it was, in words that continue a sentence."""
    lender: str | None = None
    """Whose circuit it began with, in one sentence."""
    accepted: bool = False
    """Whether its last evaluation found a solution: by its rules, or else no wrong value on any probe."""

    def __fspath__(self) -> str:
        """Return its folder, so that every function that takes the path of a run takes the run. Raises UsageError."""
        return str(self.path or self._temporary)

    @cached_property
    def _temporary(self) -> Path:
        raise UsageError("This run of agents is in memory, and its folder is needed: train it with `out`.")

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"in {self.path}"
        return f"<Run of {self.config.name}, seed {self.config.seed}, {where}: {self.summary.splitlines()[0]}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Run(EndedRun[Replica]):
    """A run of automata that ended, or was interrupted.

    `best`, `circuit`, `wrong` and `solved` are of its best circuit, wherever in the run that was. `state` is the last
    state, from which training continues. `metrics` are the rows of all epochs; of a population those of the best model.

        >>> difflogic.load_run(folder).metrics[0].epoch
        1
    """

    config: Config
    best: ModelState
    """The best model of the run, by fewest wrong values, then by fewest active gates; the last one before any
    evaluation."""
    wrong: int | None
    """Wrong values of `best` on the probes; None before the first evaluation."""
    data: Dataset | None = None
    """The samples that it learned, if its task is in samples."""

    @cached_property
    def _temporary(self) -> Path:
        path = Path(tempfile.mkdtemp(prefix="difflogic-run-"))
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        last = Checkpoint(tuple(each.checkpoint(0.0) for each in self.members), best_of(self.members))
        record = manifest.begin(self.config, self.engine, "in memory", None, last.seeds)
        record = manifest.end(record, "complete" if self.complete else "interrupted", self.epoch, self.summary)
        contents = {} if self.data is None else {dataset.NAME: self.data.encode()}
        made = RunFolder.create(
            path, last, manifest.to_json(record), contents | {results.SUMMARY: self.summary.encode()}
        )
        with closing(made) as folder:
            folder.append([each.metrics for each in self.members])
            if self.wrong is not None:
                folder.keep_best(Checkpoint((self.best,)))
        return path

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the film of the best circuit, the curves, and the result in words."""
        # Hard rollouts are the same on every engine, and this one needs no device and no compiler.
        return live.in_html(results.pictures(ReferenceEngine(), self.members, self.best), self.summary)

    @property
    def circuit(self) -> Circuit:
        """The best one, with the trained logits."""
        return self.best.circuit

    @property
    def netlist(self) -> CellNetlist:
        """The hard gates of `circuit`, which know what of them is the picture, and the grid that they live on."""
        return CellNetlist.of_run(self.circuit, self.best.config)

    @property
    def member(self) -> Replica:
        """The model of the run that `best` is of, as it stood after its last epoch."""
        return member_of(self.members, self.best)

    @property
    def metrics(self) -> list[Row]:
        """One row per epoch, from the first on."""
        return self.member.metrics

    @property
    def state(self) -> TrainState:
        """The last one, which is what --resume goes on from. The best circuit is `circuit`."""
        return self.member.state

    @property
    def solved(self) -> bool:
        """True where `circuit` has no wrong value on any probe."""
        return self.wrong == 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AgentRun(EndedRun["Member"]):
    """A run of agents that ended, or was interrupted."""

    config: PolicyConfig
    leader: int
    """The place of the best among the members."""
    elapsed_s: float
    baselines: dict[str, float] | None = None
    """Mean returns of agents without a mind, once it has ended."""

    @property
    def best(self) -> Member:
        """The member of the highest last score, of equals the first; of classifiers by the rows that choose."""
        return self.members[self.leader]

    @property
    def score(self) -> float | None:
        """Mean return of the best: on fresh episodes where it has ended, else of its last evaluation."""
        return None if self.best.score is None else self.best.score.mean

    @property
    def solved_members(self) -> list[Member]:
        """Members whose last evaluation reached the threshold."""
        return [each for each in self.members if each.solved]

    @property
    def solved(self) -> bool:
        return self.best.solved


def load_run(folder: Source) -> Run:
    """Read the run in a folder, as it was left. Of several attempts it is the best one.

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
    found, record = checkpoint.read(folder), manifest.read(folder)
    engine = manifest.last_engine(record)
    try:
        # A run that was killed may have rows that are newer than its checkpoint.
        rows = [each[: found.epoch] for each in read_rows(folder, found.seeds)]
        summary = (folder / results.SUMMARY).read_text(encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"Cannot read the run folder {folder}: {error.strerror or error}.") from error
    if engine is None:
        raise RunFolderError(f"The {manifest.NAME} of the run folder {folder} does not say what ran it.")
    best = checkpoint.load(folder / checkpoint.BEST) if (folder / checkpoint.BEST).exists() else None
    config = found.members[0].config
    data = dataset.of_run(config, folder)
    members = start.members(found, rows, data)
    return Run(
        path=folder,
        config=config,
        engine=engine,
        members=members,
        best=best or found.members[best_of(members)],
        wrong=None if best is None else best.best,
        epoch=found.epoch,
        interrupted=None,
        summary=summary,
        complete=record["status"] == "complete",
        data=data,
    )


def load_agents(folder: Path) -> AgentRun:
    """Read a run of agents in a folder, as it was left. Raises CheckpointError, RunFolderError."""
    from difflogic.policies import results as outcomes
    from difflogic.policies.evaluate import Score
    from difflogic.policies.member import Member

    found, record = checkpoint.read_agents(folder), manifest.read(folder)
    engine = manifest.last_engine(record)
    if engine is None:
        raise RunFolderError(f"The {manifest.NAME} of the run folder {folder} does not say what ran it.")
    table = tables.of_run(found.members[0].config, folder)
    members = [Member.restored(each.config, Device("cpu"), each.arrays, table) for each in found.members]
    judged = outcomes.read(folder)
    for member, each in zip(members, judged.get("members", ()), strict=False):
        member.score = Score(tuple(each["returns"]), tuple(each["lengths"]))
    for member in members:
        member.environments.close()
    return AgentRun(
        path=folder,
        config=found.members[0].config,
        leader=found.best,
        engine=engine,
        members=members,
        epoch=found.epoch,
        interrupted=None,
        summary=(folder / results.SUMMARY).read_text(encoding="utf-8"),
        complete=record["status"] == "complete",
        elapsed_s=found.members[0].elapsed_s,
        baselines=judged.get("baselines"),
    )


def load_any(folder: Path) -> Run | AgentRun:
    """Read a run, whatever it trained. Raises CheckpointError, RunFolderError."""
    return load_agents(folder) if manifest.is_policy(manifest.read(folder)) else load_run(folder)
