"""Attempts: training that stalls is stopped early and restarts with different wiring.

Attempts share the epochs of one run. In training until solved, each attempt may use all epochs, the attempts end with
the first solution or at a limit of time or epochs, and a solution must pass the test of `difflogic.train.success`.

Each attempt has a run folder, `attempt-1`, `attempt-2`, ...; `restarts.json` next to these folders contains the
results (`difflogic.runs.attempts`). Every command that takes a run folder also takes the folder of all attempts.

    done = train(TrainRequest(config=config, restarts=3), Placement(engine), Path("runs/mine"))
    done.best.solved, done.interrupted
    done = resume(Path("runs/mine"), Placement(engine))
"""

import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from difflogic.circuits.synthesis.prune import pruned
from difflogic.config import dataset, schedule
from difflogic.config.dataset import Dataset
from difflogic.config.limits import MOST
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.devices.open import Placement, place
from difflogic.engine.api import Engine
from difflogic.errors import UsageError
from difflogic.runs import attempts, checkpoint
from difflogic.runs import folder as folders
from difflogic.runs.attempts import Attempt, Record, Status
from difflogic.system import files
from difflogic.train import budget, finishing, live, results, stalled, summary
from difflogic.train.finishing import Finishing
from difflogic.train.observer import Observer
from difflogic.train.replica import Replica
from difflogic.train.run import AgentRun, Run, load_any
from difflogic.train.session import Rules
from difflogic.train.signals import OVER, Deadline, StopSignals
from difflogic.train.success import SuccessTest
from difflogic.train.trainer import Trainer

AnyConfig = Config | PolicyConfig

SINGLE: dict[str, Any] = {"restarts": None, "until_solved": False, "within": None}
"""Mapping from the options of a request for several attempts to their values for a single attempt."""
RESERVE = 10.0
"""Number of seconds reserved for the finishing passes, but at most a tenth of the time limit."""
LOOK = 10
"""Maximum number of epochs between evaluations in training until solved, since only evaluations find solutions."""
RESULTS = (
    "config.toml", "circuit.json", "rollout.gif", "loss.png", "controller.json", "actor.safetensors", "returns.png",
    "evaluation.json",
)  # fmt: skip
"""Files of the best attempt that are copied to the top of the folder."""


@dataclass(frozen=True)
class Attempts:
    """Results of all attempts at a task."""

    path: Path | None
    """Folder of all attempts; None if the attempts are in memory."""
    record: Record
    runs: tuple[Run | AgentRun, ...]
    """Runs of the attempts, in order."""

    def __fspath__(self) -> str:
        """Return the folder of all attempts, or for attempts in memory the folder of the best run."""
        return str(self.path or self.best.__fspath__())

    @property
    def best(self) -> Run | AgentRun:
        """Best run: the solved run, otherwise the one with the fewest mismatches or, for agents, the highest score."""
        return self.runs[self.record.best]

    @property
    def solved(self) -> bool:
        """True if the last attempt ended with a solution."""
        return self.record.attempts[-1].status == "solved"

    @property
    def is_unsolved(self) -> bool:
        """True if training until solved reached its limit without a solution."""
        over = self.out_of_time or self.record.is_over
        return self.record.restarts is None and over and not self.solved

    @property
    def out_of_time(self) -> bool:
        """True if the time limit ended the attempts."""
        return str(self.interrupted).startswith(OVER)

    @property
    def interrupted(self) -> signal.Signals | str | None:
        """Signal or reason that interrupted the last attempt; None if it was not interrupted."""
        return self.runs[-1].interrupted

    @property
    def summary(self) -> str:
        """Description for users: the result of the best attempt, and a line for each attempt."""
        until = None
        if self.record.restarts is None and self.solved:
            until = "solved"
        elif self.is_unsolved:
            until = str(self.interrupted)[len(OVER) :] if self.out_of_time else f" {self.record.most_epochs} epochs"
            until = f"not solved within{until}"
        number = self.runs.index(self.best) + 1
        return summary.of_attempts(self.best.summary, number, self.record.attempts, until)


def train(
    request: TrainRequest, placement: Placement, out: Path | None = None, observer: Observer | None = None
) -> Attempts:
    """Train attempts until one is solved or interrupted, or all epochs or `request.within` are used up.

    An epoch on a smaller grid counts as a fraction (`schedule.effort`). The epochs of all models are added.

    Args:
        request: Request that has a configuration.
        placement: Engine, with the reason for its choice.
        out: New folder for the run folders of all attempts; None: nothing is written.
        observer: Observer of all runs, which also receives the beginning and end of each attempt.

    Returns:
        The attempts.

    Raises:
        DifflogicError: Any error of `budget.check` or `Trainer.run`.
    """
    budget.check(request)
    config = request.whole
    if request.until_solved and isinstance(config, Config):
        config = config.with_(train={"eval_interval": min(LOOK, config.train.eval_interval)})
    observer = observer or live.observer(placement.engine)
    # The warning is for CPUs, since the speed of a GPU is not known.
    if placement.engine.info.engine != "gpu" and (notice := budget.notice(request)) is not None:
        observer.noticed(notice)
    request = replace(request, config=config, stop_when_solved=request.solved_models)
    series = _Series(Record(request.resumable), request, placement, observer)
    if out is None:
        return series.train()
    folders.check_new(out)
    out.mkdir(parents=True, exist_ok=True)
    # This lock is for the folder of all attempts; each run folder in it has a separate lock.
    with folders.locked(out):
        return series.train(out)


def solve(
    config: Config | PolicyConfig,
    within: str | float | Within | None = None,
    engine: Engine | str = "auto",
    out: Path | str | None = None,
    population: int = 1,
    observer: Observer | None = None,
    data: Dataset | None = None,
) -> Attempts:
    """Restart the training of `config`, each time with different wiring, until a circuit passes the success test.

        >>> done = difflogic.solve(config, within="4 epochs", engine=engine)
        >>> done.solved
        False

    Args:
        config: The configuration to train. With the recipe `robust`, far fewer attempts are needed than with `paper`.
        within: The limit, as `60s`, `5m` or `2000 epochs`, or a number of seconds; None: no limit.
        engine: An engine, or a selector as for `--engine`.
        out: A new folder for the attempts; None: nothing is written.
        population: Number of models that each attempt trains in parallel.
        observer: Receives the reports of all attempts.
        data: The samples, if the task of `config` is defined by samples.

    Returns:
        The attempts; `solved` is the result, and `best` is the run of the best attempt.

    Raises:
        UsageError: The limit is invalid, or too small for one attempt.
        DeviceError: The engine cannot run this training.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
    """
    placement = place(engine) if isinstance(engine, str) else Placement(engine)
    options: dict[str, Any] = {"within": within, "population": population, "data": data}
    request = TrainRequest(config=config, until_solved=True, **options)
    return train(request, placement, None if out is None else Path(out), observer)


def resume(
    folder: Path, placement: Placement, observer: Observer | None = None, within: Within | None = None
) -> Attempts:
    """Continue the attempts in a folder, beginning with the interrupted attempt.

    `within` is a new limit: time is counted from now, epochs from the first attempt on. Raises RunFolderError if the
    folder has no attempts or is in use, UsageError if no attempts are left, and the errors of `Trainer.run`.
    """
    with folders.locked(folder):
        files.check_links(folder)
        record = attempts.read(folder)
        request = record.request
        if within is not None:
            request = replace(request, within=within)
            record = replace(record, request=request.resumable)
        if record.is_over:
            last = folder / record.attempts[-1].folder
            raise UsageError(
                f"The run in {folder} has ended and has no attempts left: continue one of them, for example with "
                f"--resume {files.quoted(last)} --epochs N --stop-when-solved 0."
            )
        if isinstance(record.config, Config):
            # Every attempt has a copy of the samples; further attempts use the copy of the first attempt.
            request = replace(request, data=dataset.of_run(record.config, folder / record.attempts[0].folder))
        return _Series(record, request, placement, observer or live.observer(placement.engine)).train(folder)


@dataclass
class _Series:
    """Series of attempts that are trained one after another."""

    record: Record
    request: TrainRequest
    placement: Placement
    observer: Observer
    runs: list[Run | AgentRun] = field(default_factory=list)
    """Runs of the attempts that ended or were interrupted."""

    def train(self, out: Path | None = None) -> Attempts:
        """Train the remaining attempts, in the folder `out` or in memory, and return all attempts."""
        within, requested = self.request.within, self.observer.stop
        if within is None or within.seconds is None:
            # Without a time limit, each run watches signals itself; with a time limit, all runs share a deadline.
            return self._train(out)
        with StopSignals() if requested is None else nullcontext(requested) as stop:
            config = self.record.config
            can_finish = isinstance(config, Config) and finishing.can_be_finished(config)
            reserve = min(RESERVE, within.seconds / 10) if can_finish else 0
            self.observer.stop = Deadline(stop, within.seconds, within.used + reserve)
            try:
                return self._train(out)
            finally:
                self.observer.stop = requested

    def _train(self, out: Path | None) -> Attempts:
        done = [attempt for attempt in self.record.attempts if not attempt.is_open]
        # Attempts from before a resume are read again, since the best attempt may be among them.
        self.runs = [] if out is None else [load_any(out / attempt.folder) for attempt in done]
        while not self.record.is_over:
            self._attempt(self._next(), out)
            if self.runs[-1].interrupted is not None:
                break
        result = Attempts(out, self.record, tuple(self.runs))
        if out is not None:
            _copy_best(result, out)
        return result

    def _attempt(self, attempt: Attempt, out: Path | None) -> None:
        # An attempt is recorded as `running` before its folder exists, so that it can be resumed after a kill.
        self._set(attempt, out)
        run = self._run(attempt, None if out is None else out / attempt.folder)
        is_solved = run.solved if self.record.restarts is not None else run.accepted
        if isinstance(run, Run) and isinstance(self.record.config, Config):
            is_solved = is_solved and run.best.config.task == self.record.config.task
        self._set(_ended(attempt, run, is_solved), out)
        self.runs.append(run)

    def _next(self) -> Attempt:
        """Return the interrupted attempt, or a new attempt if none was interrupted."""
        record, earlier = self.record, self.record.attempts
        if earlier and earlier[-1].is_open:
            return replace(earlier[-1], status="running")
        reason = "it is the first"
        if earlier:
            unit = "step" if isinstance(record.config, PolicyConfig) else "epoch"
            why = earlier[-1].given_up or f"all its {unit}s were done"
            how = "ended" if earlier[-1].given_up is None else "was stopped early"
            reason = f"attempt {len(earlier)} {how} at {unit} {earlier[-1].epoch}, as {why}"
        seed = schedule.seed_of(record.config.seed, len(earlier))
        most = None if record.restarts is None else record.restarts + 1
        return Attempt(len(earlier) + 1, most, seed, record.left, reason)

    def _set(self, attempt: Attempt, out: Path | None) -> None:
        """Save and report the status of an attempt."""
        self.record = self.record.with_attempt(attempt)
        if out is not None:
            self.record.write(out)
        self.observer.attempted(attempt)

    def _run(self, attempt: Attempt, folder: Path | None) -> Run | AgentRun:
        record = self.record
        complete = config = schedule.attempt_of(record.config, attempt.number - 1, attempt.epochs)
        if isinstance(config, Config):
            config = finishing.learned_once(config)
        request = replace(self.request, config=config, **SINGLE)
        trainer: Trainer[Any] = Trainer(request, self.placement)
        rules = self._rules(attempt, complete, config)
        is_resumed = folder is not None and checkpoint.is_in(folder)
        if folder is not None and not is_resumed and folder.exists():
            shutil.rmtree(folder)  # left by an attempt that was killed before its first checkpoint
        out, resumed = (None, folder) if is_resumed else (folder, None)
        run: Run | AgentRun = trainer.run(out=out, resume=resumed, observer=self.observer, rules=rules)
        return run

    def _rules(self, attempt: Attempt, complete: AnyConfig, config: AnyConfig) -> Rules | None:
        """Return the rules of an attempt that trains `config`, a simpler form of `complete`; None for agents."""
        if isinstance(complete, PolicyConfig) or isinstance(config, PolicyConfig):
            return None
        passes = Finishing(complete, config) if finishing.can_be_finished(config) else None
        rules = Rules(finish=partial(pruned, visible=config.task.loss_channels), passes=passes)
        if attempt.number != attempt.of:  # the last attempt is not stopped early
            rules = replace(rules, give_up=_early_stopping(self.record, config, passes))
        if self.record.restarts is None:
            rules = replace(rules, accept=SuccessTest(self.placement.engine, config).passed)
        return rules


def _copy_best(result: Attempts, out: Path) -> None:
    """Copy the result files of the best attempt to the top of the folder, and write the summary of all attempts."""
    for name in RESULTS:
        file = out / result.record.attempts[result.record.best].folder / name
        if file.exists():
            files.write_atomically(out / name, file.read_bytes())
    best = result.best
    if isinstance(best, Run) and best.best.config.model != best.config.model:
        # Finishing passes change the shape of a circuit, so commands that read circuit.json need the new configuration.
        files.write_atomically(out / "config.toml", best.best.config.to_toml().encode())
    files.write_atomically(out / results.SUMMARY, result.summary.encode())


def _ended(attempt: Attempt, run: Run | AgentRun, is_solved: bool) -> Attempt:
    status: Status = "complete"
    if not run.complete:
        status = "interrupted"
    elif is_solved:
        status = "solved"
    elif run.given_up is not None:
        status = "given up"
    ended = replace(attempt, status=status, epoch=run.epoch, given_up=None if is_solved else run.given_up)
    return replace(ended, score=run.score) if isinstance(run, AgentRun) else replace(ended, wrong=run.wrong)


def _early_stopping(
    record: Record, config: Config, passes: Finishing | None
) -> Callable[[Sequence[Replica]], str | None]:
    """Return the early stopping of an attempt: a function that returns a reason to stop, or None."""
    epochs, left = record.config.epochs, config.epochs
    if record.restarts is None:
        left = MOST  # attempts are not limited, so another one is always possible
    else:
        epochs //= record.population

    def why(members: Sequence[Replica]) -> str | None:
        reasons = [stalled.why(member.metrics, left, epochs, config) for member in members]
        if all(reasons):
            return reasons[0]
        can_be_repaired = passes is not None and any(
            passes.repaired(member.circuit)[1] is not None
            for member in members
            if stalled.is_milestone(member.metrics, config)
        )
        return "its wrong cells can be repaired" if can_be_repaired else None

    return why
