"""Training session of agents: iterations in environments, and evaluations on episodes that training never uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from difflogic.config import agent_shape, dataset
from difflogic.config import table as tables
from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.devices import shared
from difflogic.devices.device import Device
from difflogic.devices.open import Placement
from difflogic.engine.api import EngineInfo
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.policies import results
from difflogic.policies.classifier import Rows
from difflogic.policies.environments import Arrays, limit_notice
from difflogic.policies.evaluate import baselines
from difflogic.policies.learner import check_stop
from difflogic.policies.member import Member
from difflogic.policies.rows import PolicyRow
from difflogic.runs import checkpoint, chosen, jsonl
from difflogic.runs.checkpoint import AgentState, Checkpoint
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import JSONL
from difflogic.train import summary
from difflogic.train.observer import Observer
from difflogic.train.run import AgentRun
from difflogic.train.session import BrokenOffError, Session

MOST_MEMBERS = 1024
"""Maximum number of agents in a population."""


class Agents(Session[Member, AgentRun]):
    """Training session of one or more agents, each with its own environments; an epoch is an environment step."""

    columns: ClassVar[Sequence[str]] = PolicyRow.columns
    config: PolicyConfig

    def __init__(
        self, request: TrainRequest, placement: Placement, config: PolicyConfig, members: Sequence[Member],
        observer: Observer, epoch: int = 0, elapsed_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Raise UsageError if `stop_when_solved` exceeds the population, or if there is no threshold for solutions."""
        super().__init__(request, placement, members, epoch, observer)
        self.config, self.seconds_before = config, elapsed_s
        self._size = members[0].agent.iteration_steps
        self.epochs = members[0].iterations * self._size
        self.baselines: dict[str, float] | None = None
        self._saved_best: int | None = None
        self._chosen: int | None = None
        check_stop(config, self.stop_when_solved, len(members))
        notice = None if isinstance(config, ClassifierConfig) else limit_notice(config.subject)
        self.notices = () if notice is None else (notice,)

    @classmethod
    def fresh(cls, request: TrainRequest, config: PolicyConfig, placement: Placement, observer: Observer) -> Agents:
        """Return the session of a new run. If `request.init_from` is a run, all agents start from its best agent.

        Raises CheckpointError, ConfigError, FaultyEnvironmentError or DeviceError.
        """
        population, device = request.population, _device(placement)
        if not 1 <= population <= MOST_MEMBERS or config.seed + population > 1 << 32:
            raise ConfigError(f"Expected 1 to {MOST_MEMBERS} agents with seeds below 2**32, got {population}.")
        check_stop(config, request.solved_models, population)
        source = None if request.init_from is None else best_arrays(Path(request.init_from), config)
        members = [
            Member(own, device, played=observer.working, table=request.table)
            if source is None
            else Member.begun(own, device, source, request.table)
            for own in (config.with_(seed=config.seed + k) for k in range(population))
        ]
        session = cls(request, placement, config, members, observer)
        session.lender = None if source is None else f"the best agent of {request.init_from}"
        return session

    @classmethod
    def resumed(
        cls, request: TrainRequest, config: PolicyConfig, placement: Placement, observer: Observer, folder: RunFolder,
        file: Path,
    ) -> Agents:  # fmt: skip
        """Return a session that resumes `folder` from the checkpoint `file`. Raises CheckpointError or ConfigError."""
        saved, device, table = checkpoint.read_agents(file), _device(placement), tables.of_run(config, folder.path)
        if saved.config.with_epochs(config.epochs) != config:
            raise ConfigError(
                f"The run in {folder.path} differs in its configuration: only steps may change on resume."
            )
        members = [
            Member.restored(config.with_(seed=state.config.seed), device, state.arrays, table)
            for state in saved.members
        ]
        done = saved.epoch // members[0].agent.iteration_steps
        for member, rows in zip(members, _rows(folder.path, len(members), done), strict=True):
            member.metrics = rows
        return cls(request, placement, config, members, observer, saved.epoch, saved.members[0].elapsed_s)

    @property
    def info(self) -> EngineInfo:
        return self.placement.engine.info

    def close(self) -> None:
        for member in self.members:
            member.environments.close()

    def contents(self) -> Mapping[str, bytes]:
        rows = self.members[0].environments
        return {dataset.NAME: rows.table.encode()} if isinstance(rows, Rows) else {}

    def journal(self) -> Sequence[Sequence[PolicyRow]]:
        # The row of an interrupted evaluation is written after the evaluation has been repeated.
        return [member.metrics[:-1] if self._is_unevaluated() else member.metrics for member in self.members]

    def begin(self) -> None:
        if self._is_unevaluated():
            self.report(evaluate=True)
        elif self.epoch:
            # A run that was solved and then interrupted ends now, without further training.
            self.accepted = self._accept([member.metrics[-1].score for member in self.members])

    def next_stop(self) -> int:
        # Example: an interval of 1000 steps and 256 steps per iteration stop at 1024, 2048 and 3072 steps.
        interval = self.config.evaluation.interval
        due = (self.epoch // interval + 1) * interval
        return min(self.epochs, -(-due // self._size) * self._size)

    def iterate(self, stop: int) -> None:
        for member in self.members:
            member.metrics.append(member.iterate(self.epoch // self._size, self.observer.working, self.seconds))
        self.epoch += self._size
        self.observer.advanced(self.epoch)

    def is_logged(self) -> bool:
        return True

    def report(self, evaluate: bool = False, leaving: bool = False) -> None:
        if evaluate:
            self.observer.judging(self.epoch)
            episodes = self.config.evaluation.episodes
            scores = [member.evaluate(episodes, 0, self._watch) for member in self.members]
            self.accepted = self._accept([score.mean for score in scores])
            # Scores are stored last, since an evaluation may be interrupted: then no agent has a score in its row.
            for member, score in zip(self.members, scores, strict=True):
                member.score = score
                member.metrics[-1] = replace(member.metrics[-1], score=score.mean)
        rows = [member.metrics[-1] for member in self.members]
        self.append([[row] for row in rows])
        self.observer.iterated(rows)
        if evaluate:
            self.observer.judged(self.members)
            self.save()

    def _watch(self, *_: object) -> None:
        self.observer.working()
        if self.stop.is_urgent:
            raise BrokenOffError

    def _accept(self, means: Sequence[float | None]) -> list[bool]:
        """Return, per agent, whether final episodes also reach the threshold; all False if too few `means` reach it."""
        least = self.config.evaluation.threshold
        good = [mean is not None and mean >= least for mean in means]
        if not 0 < self.stop_when_solved <= sum(good):
            return [False] * len(good)
        return [
            is_good and results.final_score(member, self._watch).mean >= least
            for member, is_good in zip(self.members, good, strict=True)
        ]

    def _is_unevaluated(self) -> bool:
        """Return whether the evaluation of this epoch was interrupted."""
        interval = self.config.evaluation.interval
        is_due = self.epoch >= self.epochs or self.epoch // interval > (self.epoch - self._size) // interval
        return self.epoch > 0 and is_due and self.members[0].metrics[-1].score is None

    def finish(self) -> None:
        # The best classifier is chosen by its score on validation rows, before held-out rows are evaluated.
        self._chosen = self._best if isinstance(self.config, ClassifierConfig) else None
        for member in self.members:
            member.score = results.final_score(member, self._watch)
        best, identifier = self.members[self._best], self.config.subject
        if isinstance(best.environments, Rows):
            self.baselines = best.environments.most_frequent()
            return
        episodes, spaces = min(self.config.evaluation.final_episodes, 100), best.environments.spaces
        self.baselines = baselines(identifier, spaces, episodes, best.seed + results.FINAL, self._watch)
        # The last evaluation saved this epoch, but another agent may be the best in the final episodes.
        if self._best != self._saved_best:
            self.save()

    @property
    def _best(self) -> int:
        """Index of the agent with the highest last score; the first one in a tie."""
        if self._chosen is not None:
            return self._chosen
        return int(np.argmax([-np.inf if member.score is None else member.score.mean for member in self.members]))

    def state(self) -> Checkpoint[AgentState]:
        seconds = self.seconds
        states = [AgentState(member.config, member.state(), self.epoch, seconds) for member in self.members]
        self._saved_best = self._best
        return Checkpoint(tuple(states), self._best)

    def end(self) -> AgentRun:
        self.observer.ending()
        best = self.members[self._best]
        netlist = results.netlist_of(best)
        run = AgentRun(
            path=None if self.folder is None else self.folder.path,
            config=self.config,
            engine=self.info,
            members=self.members,
            epoch=self.epoch,
            interrupted=None if self.complete else self.stop.reason,
            leader=self._best,
            summary=summary.of_agents(
                self.config, self.members, best, self.epoch, self.elapsed_s, self.baselines, netlist
            ),
            complete=self.complete,
            lender=self.lender,
            accepted=self.complete and any(member.solved for member in self.members),
            elapsed_s=self.elapsed_s,
            baselines=self.baselines,
        )
        if self.folder is not None:
            self.folder.write(results.SUMMARY, run.summary)
            for name, content in results.files(self.config, self.members, best, self.baselines, netlist).items():
                self.folder.write(name, content)
            if self.observer.wants_pictures():
                name = results.ACCURACY if isinstance(self.config, ClassifierConfig) else results.RETURNS
                self.folder.write(name, results.curves(self.folder.path))
        self.write_end(run.summary)
        return run


def _device(placement: Placement) -> Device:
    if placement.engine.info.engine == shared.NAME:
        raise UsageError("Agents are trained on one device: give --engine, and omit --devices.")
    return Device(placement.engine.selector)


def best_arrays(path: Path, config: PolicyConfig) -> Arrays:
    """Return the arrays of a run's best agent. Raises CheckpointError, or ConfigError if `config` differs in shape."""
    saved = checkpoint.read_agents(chosen.run_folder(path))
    if (difference := agent_shape.difference(config.to_dict(), saved.config.to_dict())) is not None:
        raise ConfigError(f"--init-from requires a run of agents of the same shape: {difference}.")
    best = saved.members[saved.best]
    return {"wiring": np.array(best.config.seed, dtype=np.int64), **best.arrays}


def _rows(path: Path, members: int, iterations: int) -> list[list[PolicyRow]]:
    """Return the first `iterations` metrics rows of each member. Raises CheckpointError if rows are missing."""
    # Each iteration writes one line per member: with three members, line 7 is iteration 2 of member 1, all counted
    # from 0. Lines after the checkpoint belong to iterations that will be repeated.
    lines = islice(jsonl.objects(path / JSONL), iterations * members)
    rows = [PolicyRow.from_dict(values) for values in lines]
    if len(rows) < iterations * members:
        raise CheckpointError(
            f"The metrics in {path} end before the checkpoint's iteration {iterations}: restore {JSONL}, "
            "or start a new run."
        )
    return [rows[member::members] for member in range(members)]
