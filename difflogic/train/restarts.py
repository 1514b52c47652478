"""Attempts: where training stalls, it begins again with other wiring.

They share the epochs of one run; or, until one is solved, each has all of them, and a limit of time or epochs, where
one is given, ends them. Then solved means that a circuit passes the test of `difflogic.train.success`.

An attempt is a run folder of its own, `attempt-1`, `attempt-2`, ..., and beside them `restarts.json` says what came of
each (`difflogic.runs.attempts`): the folder that holds them is taken by every command that takes a run.

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
"""Options of a request for several attempts that are not options of an attempt."""
RESERVE = 10.0
"""Seconds of a limit that are reserved, at most a tenth of it, for the finishing passes."""
LOOK = 10
"""Epochs between evaluations, at most, of what goes on until it is solved: it ends with the first that finds it so."""
RESULTS = (
    "config.toml", "circuit.json", "rollout.gif", "loss.png", "controller.json", "actor.safetensors", "returns.png",
    "accuracy.png", "evaluation.json",
)  # fmt: skip
"""Of the best attempt, copied to the top of the folder."""


@dataclass(frozen=True)
class Attempts:
    """The results of all attempts."""

    path: Path | None
    """The folder that holds theirs; None where they were kept in memory."""
    record: Record
    runs: tuple[Run | AgentRun, ...]
    """Each attempt's, in order."""

    def __fspath__(self) -> str:
        """Return their folder, or that of the best: see `Run`."""
        return str(self.path or self.best.__fspath__())

    @property
    def best(self) -> Run | AgentRun:
        """The solved run, else that of the fewest wrong values, of agents of the highest score."""
        return self.runs[self.record.best]

    @property
    def solved(self) -> bool:
        """Return whether the last attempt ended with a solution."""
        return self.record.attempts[-1].status == "solved"

    @property
    def is_unsolved(self) -> bool:
        """Return whether they were to go on until one is solved, and the limit ended them."""
        over = self.out_of_time or self.record.is_over
        return self.record.restarts is None and over and not self.solved

    @property
    def out_of_time(self) -> bool:
        """Return whether the limit of time ended them."""
        return str(self.interrupted).startswith(OVER)

    @property
    def interrupted(self) -> signal.Signals | str | None:
        """Return what stopped the last attempt early."""
        return self.runs[-1].interrupted

    @property
    def summary(self) -> str:
        """The result of the best attempt, and a line for each attempt."""
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
    """Attempts until one is solved or interrupted, or the epochs of the request, summed over models, are used up.

    Epochs are those of the whole task: one on a smaller grid counts as its share (`schedule.effort`). Until it is
    solved means until a model passes the success test, each attempt with all epochs, or until the limit
    `request.within`. `request` has its configuration. `out`: a new folder, which holds a run folder for each attempt;
    without it nothing is written. `observer` is told of each attempt when it begins and when it has ended. Raises what
    `budget.check` and `Trainer.run` raise.
    """
    budget.check(request)
    config = request.whole
    if request.until_solved and isinstance(config, Config):
        # Only an evaluation can find a solution, so it is looked for more often than a run of fixed length would.
        config = config.with_(train={"eval_interval": min(LOOK, config.train.eval_interval)})
    observer = observer or live.observer(placement.engine)
    # A GPU may be faster than anything that could be said of it here.
    if placement.engine.info.engine != "gpu" and (short := budget.notice(request)) is not None:
        observer.noticed(short)
    request = replace(request, config=config, stop_when_solved=request.solved_models)
    series = _Series(Record(request.resumable), request, placement, observer)
    if out is None:
        return series.train()
    folders.check_new(out)
    out.mkdir(parents=True, exist_ok=True)
    # The lock is that of the whole folder: each attempt in it is a run folder that takes a lock of its own.
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
    """Train `config` again and again, each time with another wiring, until a circuit passes the success test of its
    task.

        >>> done = difflogic.solve(config, within="4 epochs", engine=engine)
        >>> done.solved
        False

    Args:
        config: What to train. A recipe such as `robust` needs far fewer attempts than the paper's.
        within: The limit, as `60s`, `5m` or `2000 epochs`, or a number of seconds; None: there is none.
        engine: An engine, or a selector as `--engine` takes it.
        out: A new folder for the attempts; None: nothing is written.
        population: Models that each attempt trains at once.
        observer: Hears of each attempt when it begins and when it has ended, and of all its epochs.
        data: The samples that `config` names, where its task is in samples.

    Returns:
        The attempts: `solved`, and the `best` one with its circuit.

    Raises:
        UsageError: The limit is none, or no attempt fits into it.
        DeviceError: The engine cannot do it.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
    """
    where = place(engine) if isinstance(engine, str) else Placement(engine)
    options: dict[str, Any] = {"within": within, "population": population, "data": data}
    request = TrainRequest(config=config, until_solved=True, **options)
    return train(request, where, None if out is None else Path(out), observer)


def resume(
    folder: Path, placement: Placement, observer: Observer | None = None, within: Within | None = None
) -> Attempts:
    """Go on with the attempts in a folder: first with the one that was cut short, as any run is resumed.

    `within` is a new limit: of epochs it counts those that are done too, of time it begins now.

    Raises RunFolderError where the folder holds none or is in use, UsageError where no attempt is left, and what
    `Trainer.run` raises.
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
                f"The run in {folder} has ended and has no attempts left: train one of them further, for example with "
                f"--resume {files.quoted(last)} --epochs N --stop-when-solved 0."
            )
        if isinstance(record.config, Config):
            # Every attempt has a copy of the samples; one that is begun now takes that of the first.
            request = replace(request, data=dataset.of_run(record.config, folder / record.attempts[0].folder))
        return _Series(record, request, placement, observer or live.observer(placement.engine)).train(folder)


@dataclass
class _Series:
    """A series of attempts."""

    record: Record
    request: TrainRequest
    placement: Placement
    observer: Observer
    runs: list[Run | AgentRun] = field(default_factory=list)
    """Of the attempts that have ended."""

    def train(self, out: Path | None = None) -> Attempts:
        """Train the remaining attempts."""
        within, asked = self.request.within, self.observer.stop
        if within is None or within.seconds is None:
            # Without a limit of time each run watches signals itself; with one the deadline stands over all of them.
            return self._train(out)
        with StopSignals() if asked is None else nullcontext(asked) as stop:
            config = self.record.config
            can_finish = isinstance(config, Config) and finishing.can_be_finished(config)
            reserve = min(RESERVE, within.seconds / 10) if can_finish else 0
            self.observer.stop = Deadline(stop, within.seconds, within.used + reserve)
            try:
                return self._train(out)
            finally:
                self.observer.stop = asked

    def _train(self, out: Path | None) -> Attempts:
        done = [attempt for attempt in self.record.attempts if not attempt.is_open]
        # What was done before a resume is read again, for the best of all attempts may be among it.
        self.runs = [] if out is None else [load_any(out / attempt.folder) for attempt in done]
        while not self.record.is_over:
            self._attempt(self._next(), out)
            if self.runs[-1].interrupted is not None:
                break
        made = Attempts(out, self.record, tuple(self.runs))
        if out is not None:
            _show_best(made, out)
        return made

    def _attempt(self, attempt: Attempt, out: Path | None) -> None:
        self._note(attempt, out)
        # The record says `running` before the attempt has a folder, so that a kill at any moment leaves something to go
        # on from.
        run = self._run(attempt, None if out is None else out / attempt.folder)
        is_solved = run.solved if self.record.restarts is not None else run.accepted
        if isinstance(run, Run) and isinstance(self.record.config, Config):
            is_solved = is_solved and run.best.config.task == self.record.config.task
        self._note(_ended(attempt, run, is_solved), out)
        self.runs.append(run)

    def _next(self) -> Attempt:
        """The attempt that was cut short, else a new one."""
        record, earlier = self.record, self.record.attempts
        if earlier and earlier[-1].is_open:
            return replace(earlier[-1], status="running")
        reason = "it is the first"
        if earlier:
            why = earlier[-1].given_up or f"all its {_unit(record.config)}s were done"
            how = "ended" if earlier[-1].given_up is None else "was given up"
            reason = f"attempt {len(earlier)} {how} at {_unit(record.config)} {earlier[-1].epoch}, as {why}"
        seed = schedule.seed_of(record.config.seed, len(earlier))
        of = None if record.restarts is None else record.restarts + 1
        return Attempt(len(earlier) + 1, of, seed, record.left, reason)

    def _note(self, attempt: Attempt, out: Path | None) -> None:
        """Keep and tell how an attempt stands."""
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
        goes_on = folder is not None and _can_go_on(folder)
        out, again = (None, folder) if goes_on else (folder, None)
        ended: Run | AgentRun = trainer.run(out=out, resume=again, observer=self.observer, rules=rules)
        return ended

    def _rules(self, attempt: Attempt, complete: AnyConfig, config: AnyConfig) -> Rules | None:
        """Return what ends an attempt of automata; agents are solved by what the session itself tests."""
        if isinstance(complete, PolicyConfig) or isinstance(config, PolicyConfig):
            return None
        passes = Finishing(complete, config) if finishing.can_be_finished(config) else None
        rules = Rules(finish=partial(pruned, visible=config.task.loss_channels), passes=passes)
        if attempt.number != attempt.of:  # the last attempt is not stopped early: none comes after it
            rules = replace(rules, give_up=_hopeless(self.record, config, passes))
        if self.record.restarts is None:
            rules = replace(rules, accept=SuccessTest(self.placement.engine, config).passed)
        return rules


def _unit(config: AnyConfig) -> str:
    return "step" if isinstance(config, PolicyConfig) else "epoch"


def _show_best(made: Attempts, out: Path) -> None:
    """The results of the best attempt at the top of the folder, where people look first, with the summary of all."""
    for name in RESULTS:
        file = out / made.record.attempts[made.record.best].folder / name
        if file.exists():
            files.write_atomically(out / name, file.read_bytes())
    best = made.best
    if isinstance(best, Run) and best.best.config.model != best.config.model:
        # A finished circuit has a configuration of its own, which commands look for beside circuit.json.
        files.write_atomically(out / "config.toml", best.best.config.to_toml().encode())
    files.write_atomically(out / results.SUMMARY, made.summary.encode())


def _can_go_on(folder: Path) -> bool:
    """Return whether an attempt was saved; what one leaves that was killed before is removed."""
    if checkpoint.is_in(folder):
        return True
    if folder.exists():
        shutil.rmtree(folder)
    return False


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


def _hopeless(record: Record, config: Config, passes: Finishing | None) -> Callable[[Sequence[Replica]], str | None]:
    """Return a function that says why all members are stalled, if they are. `config` is the attempt's own."""
    epochs, left = record.config.epochs, config.epochs
    if record.restarts is None:
        left = MOST  # another attempt is of use however many there were
    else:
        epochs //= record.population

    def why(members: Sequence[Replica]) -> str | None:
        reasons = [stalled.why(member.metrics, left, epochs, config) for member in members]
        if all(reasons):
            return reasons[0]
        due = [each for each in members if passes is not None and stalled.is_milestone(each.metrics, config)]
        is_repaired = any(passes is not None and passes.repaired(each.circuit)[1] is not None for each in due)
        return "what is still wrong can be repaired" if is_repaired else None

    return why
