"""The training of agents: iterations of each member, evaluated, journalled and saved.

run = PolicyTrainer(presets["cartpole"], Device("cpu")).run(out=Path("runs/first"))
run.best.score.mean, run.best.agent.actor.circuit
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals

import numpy as np

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.errors import CheckpointError, ConfigError, RunFolderError, UsageError
from difflogic.policies import checkpoint, results
from difflogic.policies.checkpoint import PolicyCheckpoint
from difflogic.policies.environments import Environments
from difflogic.policies.evaluate import Score, Watch
from difflogic.policies.member import Member
from difflogic.policies.rows import COLUMNS, PolicyRow
from difflogic.runs import folder as folders
from difflogic.runs import jsonl, manifest
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import JSONL
from difflogic.train.signals import Stop, StopSignals

MOST_MEMBERS = 1024


class PolicyObserver:
    """Override what you want to hear; any of it may ask the run's `Stop` to end it.

    The iteration under way is ended. An evaluation is broken off, and played again when the run goes on.
    """

    def began(self, run: PolicyRun) -> None:
        """Before the first iteration."""

    def iterated(self, rows: list[PolicyRow]) -> None:
        """A rollout of each member and what was learned from it."""

    def stepped(self, environments: Environments) -> None:
        """One step of every copy of a member's environment."""

    def played(self) -> None:
        """One step of the episodes of an evaluation, or of the random policy at the beginning."""

    def evaluated(self, iteration: int, scores: list[Score]) -> None:
        """Every member was evaluated; a checkpoint of this iteration is about to be written."""

    def ending(self) -> None:
        """The outcome is known, and the results are about to be written."""

    def noticed(self, text: str) -> None:
        """Something that a person should know, one sentence."""

    def ended(self, run: PolicyRun) -> None:
        """The results are written."""


class _BrokenOffError(Exception):
    """Somebody asked for the end while an evaluation was played."""


@dataclass(eq=False)
class PolicyRun:
    """A run of agents that is under way, or has ended."""

    config: PolicyConfig
    """With the first seed."""
    device: Device
    members: list[Member]
    path: Path | None
    """Its folder; None where it is kept in memory."""
    iteration: int = 0
    """Iterations that are done."""
    elapsed_s: float = 0.0
    interrupted: Signals | str | None = None
    """What asked it to stop."""
    baselines: dict[str, float] | None = None
    """Mean returns of agents without a mind, once it has ended."""

    complete: bool = False
    """Whether its steps are done, or its stop rule is met."""

    @property
    def iterations(self) -> int:
        return self.members[0].iterations

    @property
    def solved(self) -> list[Member]:
        """Members whose last evaluation reached the threshold."""
        least = self.config.evaluation.threshold
        return [each for each in self.members if each.score is not None and each.score.mean >= least > -np.inf]

    @property
    def best(self) -> Member:
        """The member of the highest last score, of equals the first."""
        return max(self.members, key=lambda each: -np.inf if each.score is None else each.score.mean)

    def checkpoint(self) -> PolicyCheckpoint:
        return PolicyCheckpoint(
            self.config, self.iteration, tuple(each.state() for each in self.members), self.elapsed_s
        )


class PolicyTrainer:
    """Trains agents of one configuration on one device; without `pictures`, runs leave out their curves."""

    def __init__(self, config: PolicyConfig, device: Device, pictures: bool = True) -> None:
        self.config, self.device, self._pictures = config, device, pictures

    def run(
        self,
        out: Path | None = None,
        population: int = 1,
        stop_when_solved: int = 0,
        observer: PolicyObserver | None = None,
        stop: Stop | None = None,
        init_from: Path | None = None,
    ) -> PolicyRun:
        """Train from the beginning, in a new run folder, or in memory without one.

        `population`: agents of the configuration's seed and those after it, each as it would be alone.
        `stop_when_solved`: end at the first evaluation in which so many reach the threshold. `init_from`: the run whose
        best agent's parameters all begin with. Raises CheckpointError, ConfigError, FaultyEnvironmentError,
        RunFolderError, DeviceError.
        """
        if not 1 <= population <= MOST_MEMBERS or self.config.seed + population > 1 << 32:
            raise ConfigError(f"A population has 1 to {MOST_MEMBERS} agents with seeds below 2**32, got {population}.")
        check_stop(self.config, stop_when_solved, population)
        observer = observer or PolicyObserver()
        if out is not None:
            folders.check_new(out)
        configs = [self.config.with_(seed=self.config.seed + k) for k in range(population)]
        lender = None if init_from is None else checkpoint.lent(init_from, self.config)
        members = [
            Member(each, self.device, played=observer.played)
            if lender is None
            else Member.begun(each, self.device, lender)
            for each in configs
        ]
        run = PolicyRun(self.config, self.device, members, out)
        with ExitStack() as stack:
            folder = None
            if out is not None:
                first = run.checkpoint()
                record = manifest.begin(self.config, self.device.open().info, "it was asked for", None, first.seeds)
                folder = stack.enter_context(
                    closing(RunFolder.create(out, first, manifest.to_json(record), columns=COLUMNS))
                )
            return self._train(run, folder, stop_when_solved, observer, stop)

    def resume(
        self,
        path: Path,
        stop_when_solved: int = 0,
        observer: PolicyObserver | None = None,
        stop: Stop | None = None,
    ) -> PolicyRun:
        """Go on, bit for bit, with the run in a folder, whose configuration this trainer's is but for `steps`.

        Raises CheckpointError, ConfigError, RunFolderError.
        """
        folder, file = RunFolder.reopen(path)
        with closing(folder):
            saved = checkpoint.read(file)
            if saved.config.with_(steps=self.config.steps) != self.config:
                raise ConfigError(f"The run in {path} has another configuration: only steps may change on resume.")
            check_stop(self.config, stop_when_solved, len(saved.members))
            members = [
                Member.restored(self.config.with_(seed=seed), self.device, state)
                for seed, state in zip(saved.seeds, saved.members, strict=True)
            ]
            run = PolicyRun(self.config, self.device, members, folder.path, saved.iteration, saved.elapsed_s)
            folder.promote(file)
            rows = _rows(folder.path, saved)
            for member, each in zip(members, rows, strict=True):
                member.rows = each
            # The row of an evaluation that was broken off is written when it has been played.
            done = saved.iteration - self._is_unjudged(run)
            folder.start_journal(saved.seeds, [each[:done] for each in rows], COLUMNS)
            earlier = manifest.read(folder.path)
            record = manifest.resume(earlier, self.config, self.device.open().info, "it was asked for", saved.iteration)
            folder.write(manifest.NAME, manifest.to_json(record))
            folder.write("config.toml", self.config.to_toml())
            return self._train(run, folder, stop_when_solved, observer or PolicyObserver(), stop)

    def _train(
        self,
        run: PolicyRun,
        folder: RunFolder | None,
        stop_when_solved: int,
        observer: PolicyObserver,
        stop: Stop | None,
    ) -> PolicyRun:
        with StopSignals() if stop is None else nullcontext(stop) as stop, _closing(run, folder):

            def watch(*_: object) -> None:
                observer.played()
                if stop.is_urgent:
                    raise _BrokenOffError

            observer.began(run)
            try:
                if self._is_unjudged(run):
                    self._judge(run, folder, observer, watch)
                # What was solved when it was cut off is so still: it is asked before anything more is learned.
                while not (complete := self._is_over(run, stop_when_solved, watch)) and stop.reason is None:
                    self._iterate(run, observer)
                    self._judge(run, folder, observer, watch)
                if complete:
                    results.finish(run, watch)
                run.complete = complete
            except _BrokenOffError:
                if folder is not None and self._is_unjudged(run):
                    folder.append([each.rows[-1:] for each in run.members])
            run.interrupted = None if run.complete else stop.reason
            # What was interrupted between two evaluations is saved as it is, without one that the schedule does not
            # know: a run that goes on has the same rows as one that never stopped.
            if folder is not None:
                folder.save(run.checkpoint())
            observer.ending()
            if folder is not None:
                results.write(run, folder, self._pictures)
        observer.ended(run)
        return run

    def _iterate(self, run: PolicyRun, observer: PolicyObserver) -> None:
        """One iteration of every member."""
        begin = time.monotonic()
        for each in run.members:
            each.rows.append(each.iterate(run.iteration, observer, run.elapsed_s))
        run.iteration += 1
        run.elapsed_s += time.monotonic() - begin

    def _judge(self, run: PolicyRun, folder: RunFolder | None, observer: PolicyObserver, watch: Watch) -> None:
        """The evaluation that is due, if one is, and the rows of the iteration before it."""
        begin, due = time.monotonic(), self._is_due(run)
        if due:
            scores = [each.evaluate(self.config.evaluation.episodes, 0, watch) for each in run.members]
            for member, score in zip(run.members, scores, strict=True):
                member.score = score
                member.rows[-1] = replace(member.rows[-1], score=score.mean)
            observer.evaluated(run.iteration, scores)
        run.elapsed_s += time.monotonic() - begin
        if folder is not None:
            folder.append([each.rows[-1:] for each in run.members])
            if due:
                folder.save(run.checkpoint())
        observer.iterated([each.rows[-1] for each in run.members])

    def _is_unjudged(self, run: PolicyRun) -> bool:
        """Return whether the evaluation that is due was broken off."""
        return run.iteration > 0 and self._is_due(run) and run.members[0].rows[-1].score is None

    def _is_over(self, run: PolicyRun, stop_when_solved: int, watch: Watch) -> bool:
        """Return whether its steps are done, or enough agents reach the threshold, also on the end's fresh episodes."""
        if run.iteration >= run.iterations:
            return True
        least = self.config.evaluation.threshold
        last = [(each, each.rows[-1].score) for each in run.members if each.rows]
        good = [each for each, score in last if score is not None and score >= least]
        if not 0 < stop_when_solved <= len(good):
            return False
        return sum(results.final_score(each, watch).mean >= least for each in good) >= stop_when_solved

    def _is_due(self, run: PolicyRun) -> bool:
        """Return whether this iteration passed a multiple of the interval, or was the last."""
        # Every 1000 steps, with 256 in an iteration: after iterations 4, 8 and 12, which are 1024, 2048 and 3072 steps.
        steps, interval = run.members[0].agent.iteration_steps, self.config.evaluation.interval
        done = run.iteration * steps
        return run.iteration >= run.iterations or done // interval > (done - steps) // interval


@contextmanager
def _closing(run: PolicyRun, folder: RunFolder | None) -> Iterator[None]:
    """The environments are closed at the end; what ends it early stands in the manifest, if the disk still takes it."""
    try:
        yield
    except BaseException as error:
        if folder is not None:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            ended = manifest.end(manifest.read(folder.path), status, run.iteration, f"{type(error).__name__}: {error}")
            with suppress(RunFolderError):
                folder.write(manifest.NAME, manifest.to_json(ended))
        raise
    finally:
        for each in run.members:
            each.environments.close()


def _rows(path: Path, saved: PolicyCheckpoint) -> list[list[PolicyRow]]:
    """Each member's rows up to the checkpoint. Raises CheckpointError where some are missing."""
    # Each iteration wrote a line for every member in turn: of three members, line 7 is iteration 2 of member 1, all
    # counted from 0. Lines after the checkpoint are of iterations that will be done again.
    found: list[list[PolicyRow]] = [[] for _ in saved.members]
    for index, values in enumerate(jsonl.objects(path / JSONL)):
        if index >= saved.iteration * len(found):
            break
        found[index % len(found)].append(PolicyRow.from_dict(values))
    if any(len(rows) != saved.iteration for rows in found):
        raise CheckpointError(
            f"The metrics in {path} end before iteration {saved.iteration}, that of its checkpoint: restore {JSONL}, "
            "or start a new run."
        )
    return found


def check_stop(config: PolicyConfig, stop_when_solved: int, population: int) -> None:
    """Raises UsageError where no run of so many agents could be solved so often."""
    if not 0 <= stop_when_solved <= population:
        raise UsageError(f"stop_when_solved counts solved agents: expected at most {population}, the population.")
    if stop_when_solved and config.evaluation.threshold == -np.inf:
        raise UsageError(
            f"{config.environment.id} names no return that solves it: say one with "
            "--set evaluation.threshold=RETURN, or leave out the stop rule."
        )
