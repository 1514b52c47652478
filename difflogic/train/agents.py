"""Agents as a session trains them: iterations in an environment, evaluated on episodes that training never sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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


class Agents(Session[Member, AgentRun]):
    """The agents of a run, each with its environment. Epochs are environment steps; those of an iteration are one."""

    columns: ClassVar[Sequence[str]] = PolicyRow.columns
    config: PolicyConfig

    def __init__(
        self, request: TrainRequest, placement: Placement, config: PolicyConfig, members: Sequence[Member],
        observer: Observer, epoch: int = 0, elapsed_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Raises UsageError."""
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
        """At the beginning, with the best agent of the run `request.init_from` where there is one.

        Raises CheckpointError, ConfigError, FaultyEnvironmentError, DeviceError.
        """
        population, device = request.population, _device(placement)
        if not 1 <= population <= MOST_MEMBERS or config.seed + population > 1 << 32:
            raise ConfigError(f"A population has 1 to {MOST_MEMBERS} agents with seeds below 2**32, got {population}.")
        check_stop(config, request.solved_models, population)
        lender = None if request.init_from is None else lent(Path(request.init_from), config)
        members = [
            Member(each, device, played=observer.working, table=request.table)
            if lender is None
            else Member.begun(each, device, lender, request.table)
            for each in (config.with_(seed=config.seed + k) for k in range(population))
        ]
        made = cls(request, placement, config, members, observer)
        made.lender = None if lender is None else f"the best agent of {request.init_from}"
        return made

    @classmethod
    def resumed(
        cls, request: TrainRequest, config: PolicyConfig, placement: Placement, observer: Observer, folder: RunFolder,
        file: Path,
    ) -> Agents:  # fmt: skip
        """Where the run in `folder` was left, by its checkpoint `file`; `config` is its own but for `steps`.

        Raises CheckpointError, ConfigError.
        """
        saved, device, table = checkpoint.read_agents(file), _device(placement), tables.of_run(config, folder.path)
        if saved.config.with_epochs(config.epochs) != config:
            raise ConfigError(f"The run in {folder.path} has another configuration: only steps may change on resume.")
        members = [
            Member.restored(config.with_(seed=each.config.seed), device, each.arrays, table) for each in saved.members
        ]
        done = saved.epoch // members[0].agent.iteration_steps
        for member, rows in zip(members, _rows(folder.path, len(members), done), strict=True):
            member.metrics = rows
        return cls(request, placement, config, members, observer, saved.epoch, saved.members[0].elapsed_s)

    @property
    def info(self) -> EngineInfo:
        return self.placement.engine.info

    def close(self) -> None:
        for each in self.members:
            each.environments.close()

    def contents(self) -> Mapping[str, bytes]:
        rows = self.members[0].environments
        return {dataset.NAME: rows.table.encode()} if isinstance(rows, Rows) else {}

    def journal(self) -> Sequence[Sequence[PolicyRow]]:
        # The row of an evaluation that was broken off is written when it has been played.
        return [each.metrics[:-1] if self._is_unjudged() else each.metrics for each in self.members]

    def begin(self) -> None:
        if self._is_unjudged():
            self.report(judged=True)
        elif self.epoch:
            # What was solved when it was cut off is so still: it is asked before anything more is learned.
            self.accepted = self._accept([each.metrics[-1].score for each in self.members])

    def next_stop(self) -> int:
        # Every 1000 steps, with 256 in an iteration: after iterations 4, 8 and 12, which are 1024, 2048 and 3072 steps.
        interval = self.config.evaluation.interval
        due = (self.epoch // interval + 1) * interval
        return min(self.epochs, -(-due // self._size) * self._size)

    def iterate(self, stop: int) -> None:
        for each in self.members:
            each.metrics.append(each.iterate(self.epoch // self._size, self.observer.working, self.seconds))
        self.epoch += self._size
        self.observer.advanced(self.epoch)

    def is_logged(self) -> bool:
        return True

    def report(self, judged: bool = False, leaving: bool = False) -> None:
        if judged:
            self.observer.judging(self.epoch)
            episodes = self.config.evaluation.episodes
            scores = [each.evaluate(episodes, 0, self._watch) for each in self.members]
            self.accepted = self._accept([each.mean for each in scores])
            # Only now that nothing can be broken off any more: a row with a score is of an evaluation that was whole.
            for member, score in zip(self.members, scores, strict=True):
                member.score = score
                member.metrics[-1] = replace(member.metrics[-1], score=score.mean)
        rows = [each.metrics[-1] for each in self.members]
        self.append([[row] for row in rows])
        self.observer.iterated(rows)
        if judged:
            self.observer.judged(self.members)
            self.save()

    def _watch(self, *_: object) -> None:
        self.observer.working()
        if self.stop.is_urgent:
            raise BrokenOffError

    def _accept(self, means: Sequence[float | None]) -> list[bool]:
        """Which agents reach the threshold, also in the end's fresh episodes; none where too few do to end the run."""
        least = self.config.evaluation.threshold
        good = [mean is not None and mean >= least for mean in means]
        if not 0 < self.stop_when_solved <= sum(good):
            return [False] * len(good)
        return [
            is_good and results.final_score(member, self._watch).mean >= least
            for member, is_good in zip(self.members, good, strict=True)
        ]

    def _is_unjudged(self) -> bool:
        """Return whether the evaluation of this epoch was broken off."""
        interval = self.config.evaluation.interval
        is_due = self.epoch >= self.epochs or self.epoch // interval > (self.epoch - self._size) // interval
        return self.epoch > 0 and is_due and self.members[0].metrics[-1].score is None

    def finish(self) -> None:
        # Of classifiers the rows that choose say which is best: those that are held out choose nothing.
        self._chosen = self._best if isinstance(self.config, ClassifierConfig) else None
        for member in self.members:
            member.score = results.final_score(member, self._watch)
        best, identifier = self.members[self._best], self.config.subject
        if isinstance(best.environments, Rows):
            self.baselines = best.environments.most_frequent()
            return
        episodes, spaces = min(self.config.evaluation.final_episodes, 100), best.environments.spaces
        self.baselines = baselines(identifier, spaces, episodes, best.seed + results.FINAL, self._watch)
        # The last evaluation has saved this epoch. Fresh episodes may find another agent to be the best, though.
        if self._best != self._saved_best:
            self.save()

    @property
    def _best(self) -> int:
        """Return the index of the agent of the highest last score, of equals the first."""
        if self._chosen is not None:
            return self._chosen
        return int(np.argmax([-np.inf if each.score is None else each.score.mean for each in self.members]))

    def state(self) -> Checkpoint[AgentState]:
        seconds = self.seconds
        states = [AgentState(each.config, each.state(), self.epoch, seconds) for each in self.members]
        self._saved_best = self._best
        return Checkpoint(tuple(states), self._best)

    def end(self) -> AgentRun:
        self.observer.ending()
        best = self.members[self._best]
        netlist = results.netlist_of(best)
        ended = AgentRun(
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
            accepted=self.complete and any(each.solved for each in self.members),
            elapsed_s=self.elapsed_s,
            baselines=self.baselines,
        )
        if self.folder is not None:
            self.folder.write(results.SUMMARY, ended.summary)
            for name, content in results.files(self.config, self.members, best, self.baselines, netlist).items():
                self.folder.write(name, content)
            if self.observer.wants_pictures():
                name = results.ACCURACY if isinstance(self.config, ClassifierConfig) else results.RETURNS
                self.folder.write(name, results.curves(self.folder.path))
        self.write_end(ended.summary)
        return ended


def _device(placement: Placement) -> Device:
    if placement.engine.info.engine == shared.NAME:
        raise UsageError("Agents are trained on one device: give --engine, and drop --devices.")
    return Device(placement.engine.selector)


def lent(path: Path, config: PolicyConfig) -> Arrays:
    """The state of the best agent of a run, for one of this configuration to begin with.

    Raises CheckpointError, ConfigError where the two have other shapes.
    """
    saved = checkpoint.read_agents(chosen.run_folder(path))
    if (words := agent_shape.difference(config.to_dict(), saved.config.to_dict())) is not None:
        raise ConfigError(f"--init-from needs a run of agents of the same shape: {words}.")
    best = saved.members[saved.best]
    return {"wiring": np.array(best.config.seed, dtype=np.int64), **best.arrays}


def _rows(path: Path, members: int, iterations: int) -> list[list[PolicyRow]]:
    """Each member's rows up to the checkpoint. Raises CheckpointError where some are missing."""
    # Each iteration wrote a line for every member in turn: of three members, line 7 is iteration 2 of member 1, all
    # counted from 0. Lines after the checkpoint are of iterations that will be done again.
    found: list[list[PolicyRow]] = [[] for _ in range(members)]
    for index, values in enumerate(jsonl.objects(path / JSONL)):
        if index >= iterations * members:
            break
        found[index % members].append(PolicyRow.from_dict(values))
    if any(len(rows) != iterations for rows in found):
        raise CheckpointError(
            f"The metrics in {path} end before iteration {iterations}, that of its checkpoint: restore {JSONL}, "
            "or start a new run."
        )
    return found
