"""The trainer: epochs on an engine, evaluated, journalled and saved.

run = Trainer(presets.checkerboard(small=True), open_engine("auto")).run(epochs=100, out=Path("runs/first"))
run.solved, run.metrics[-1].soft_loss, run.circuit

With `population=64` it trains 64 seeds at once: `run` then speaks of the best, `run.members` of each.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from difflogic.config import dataset, registered
from difflogic.config.dataset import Dataset
from difflogic.config.own_task import OwnTask, Task
from difflogic.config.schema import Config
from difflogic.devices import cost
from difflogic.devices.open import Placement
from difflogic.devices.race import Candidate
from difflogic.engine import memory
from difflogic.engine.api import Engine, EngineInfo, describe_engine
from difflogic.engine.job import TrainState
from difflogic.errors import ConfigError, FaultyTaskError, RunFolderError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import checkpoint, chosen, manifest, plots
from difflogic.runs import folder as folders
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import Row, read_rows
from difflogic.runs.summary import summarise
from difflogic.train import live, results, start
from difflogic.train.observer import Beginning, Observer
from difflogic.train.replica import Replica, best_of
from difflogic.train.session import Accept, Finish, GiveUp, Session
from difflogic.train.signals import Stop, StopSignals
from difflogic.train.success import certainty
from difflogic.train.summary import summarise_population

LOG_INTERVAL = 10


@dataclass(frozen=True, eq=False)
class Run:
    """A run that ended, or was interrupted.

    `circuit`, `wrong` and `solved` are of its best circuit, wherever in the run that was. `state` is the last state,
    from which training continues. `metrics` are the rows of all epochs; of a population those of the best model.

        >>> difflogic.load_run(folder).metrics[0].epoch
        1
    """

    path: Path | None
    """Its folder; None where it was kept in memory."""
    config: Config
    """A population's with its first seed."""
    engine: EngineInfo
    members: Sequence[Replica]
    """One, or a population's, in the order of their seeds."""
    leader: int
    """Index of the member that stands best: fewest wrong values at the last evaluation, then fewest active gates."""
    kept: ModelState | None
    """The best model of the run; None before its first evaluation."""
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
    """Whether its last evaluation found a solution: by `accept`, or else no wrong value on any probe."""

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"in {self.path}"
        return f"<Run of {self.config.name}, seed {self.config.seed}, {where}: {self.summary.splitlines()[0]}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the film of the best circuit, the curves, and the result in words."""
        # Hard rollouts are the same on every engine, and this one needs no device and no compiler.
        pictures = results.pictures(ReferenceEngine(), self.members, self.leader, self.kept)
        return live.in_html(pictures, self.summary)

    @property
    def netlist(self) -> CellNetlist:
        """The hard gates of `circuit`, which know what of them is the picture, and the grid that they live on."""
        return CellNetlist.of_run(self.circuit, self.config)

    @property
    def best(self) -> Replica:
        """The member at `leader`, as it stood after its last epoch; `kept` may be of an earlier one."""
        return self.members[self.leader]

    @property
    def metrics(self) -> list[Row]:
        """One row per epoch, from the first on."""
        return self.best.metrics

    @property
    def circuit(self) -> Circuit:
        """The best one, with the trained logits; the last one where none was evaluated."""
        return self.best.circuit if self.kept is None else self.kept.circuit

    @property
    def state(self) -> TrainState:
        """The last one, which is what --resume goes on from. The best circuit is `circuit`."""
        return self.best.state

    @property
    def wrong(self) -> int | None:
        """Wrong values of `circuit` on the probes; None before the first evaluation."""
        return None if self.kept is None else self.kept.best

    @property
    def solved(self) -> bool:
        """True where `circuit` has no wrong value on any probe."""
        return self.wrong == 0


class Trainer:
    """Trains one configuration on one engine.

    A task in Python is trained with the configuration that suits it.

        >>> len(difflogic.Trainer(config, engine).run(epochs=2).metrics)
        2
    """

    def __init__(
        self,
        config: Config | Task,
        engine: Engine,
        reason: str = "the engine was given",
        max_memory: int | None = None,
        candidate: Candidate | None = None,
    ) -> None:
        """`reason` says in the manifest why it is this engine; `max_memory`: bytes of its device that it may take.

        `candidate`: another engine, on which the rest is trained where the first epochs show that it is faster.
        """
        self._given = None if isinstance(config, Config) else registered.given(config)
        self.config = config if isinstance(config, Config) else registered.given(config).config()
        self.placement = Placement(engine, reason, max_memory, candidate)

    def run(
        self,
        epochs: int | None = None,
        out: Path | str | None = None,
        resume: Path | str | None = None,
        init_from: Path | str | None = None,
        starts: Path | str | None = None,
        data: Dataset | None = None,
        population: int | None = None,
        stop_when_solved: int = 0,
        log_interval: int = LOG_INTERVAL,
        observer: Observer | None = None,
        give_up: GiveUp | None = None,
        finish: Finish | None = None,
        stop: Stop | None = None,
        accept: Accept | None = None,
    ) -> Run:
        """Train until `epochs` in all are done.

        Args:
            epochs: In all, those before `resume` included; None: as the configuration says.
            out: A new run folder; None: nothing is written.
            resume: A run folder, or a checkpoint file in it, to continue, bit for bit on the same device and driver.
                `config` must be its own.
            init_from: A run folder or checkpoint whose circuit to begin with, with fresh moments.
            starts: The file of start grids that `config` keeps (`config.kept_starts`).
            data: The samples that `config` names. The folder gets a copy.
            population: How many models to train at once, of `seed` and those after it, each as it would be alone.
            stop_when_solved: End at the first evaluation in which so many models have no wrong value; 0: never.
            log_interval: Epochs between rows that the observer hears of.
            observer: Hears what happens.
            give_up: Ends the run at the first evaluation where it says why.
            finish: Changes the circuits of a run that ended solved.
            stop: Ends the run, saved, once it was asked to; None: the first Ctrl-C or SIGTERM asks.
            accept: Says whether an evaluated model is a solution, in place of "no wrong value".

        Returns:
            The run with its best circuit and its last state, also where it was interrupted.

        Raises:
            UsageError: The arguments contradict each other, or (ConfigError) the configuration.
            CheckpointError, RunFolderError: A file cannot be read or written, or the folder is in use.
            DeviceError: The engine cannot do it.
        """
        config = self.config if epochs is None else self.config.with_(train={"epochs": epochs})
        if log_interval < 1:
            raise ConfigError(f"log_interval must be a whole number of at least 1, got {log_interval}.")
        observer = observer or live.observer(self.placement.engine)
        if resume is not None:
            _check_alone(out, init_from, population)
            opened = self._resumed(config, Path(resume), stop_when_solved, observer)
        else:
            population = 1 if population is None else population
            _check_stop(stop_when_solved, population)
            opened = self._begun(config, _path(out), _path(init_from), _path(starts), data, population, observer)
        # Signals are watched before the engine opens its model, which may take long, so that Ctrl-C is never lost.
        with StopSignals() if stop is None else nullcontext(stop) as stop, opened as session:
            try:
                session.observer.began(self._beginning(session))
                session.train(stop, stop_when_solved, log_interval, give_up, finish, accept)
                return self._finish(session, stop)
            except BaseException as error:
                session.fail(error)
                raise

    @contextmanager
    def _begun(
        self,
        config: Config,
        out: Path | None,
        init_from: Path | None,
        starts: Path | None,
        data: Dataset | None,
        population: int,
        observer: Observer,
    ) -> Iterator[Session]:
        if out is not None:
            folders.check_new(out)
        engine = self.placement.engine.info
        is_slow = engine.engine != "gpu"  # a GPU plans its memory itself, and its speed is not known
        if is_slow:
            memory.check_processor(config, population, engine.variant.get("threads", 1))
        if data is None and (own := self._task(config)) is not None:
            data = own.drawn(config.data.samples)
            data.check(config, f"The samples that {own.name} draws now")
        # Everything that can be refused, by the device too, is refused before the folder is made.
        begin = start.fresh(config, init_from, population, starts, data)
        if is_slow and (long := cost.notice(config, population)) is not None:
            begin = replace(begin, notices=(*begin.notices, long))
        with closing(Session(self.placement, begin, observer)) as session:
            if out is None:
                yield session
                return
            record = manifest.begin(
                config, session.training.info, self.placement.reason, init_from, begin.checkpoint.seeds
            )
            target = plots.target_png(begin.members[0].job)
            samples = {} if data is None or not config.data.sha256 else {dataset.NAME: data.encode()}
            made = RunFolder.create(out, begin.checkpoint, manifest.to_json(record), samples, target=target)
            with closing(made) as folder:
                yield session.keep(folder, record)

    @contextmanager
    def _resumed(self, config: Config, path: Path, stop_when_solved: int, observer: Observer) -> Iterator[Session]:
        folder, file = RunFolder.reopen(path)
        with closing(folder):
            begin = start.resumed(config, folder, file, path)
            if (own := self._task(config)) is not None and own.task.version != config.plugin.version:
                told = (
                    f"The task {own.name} is of version {own.task.version} here, and the run is of version "
                    f"{config.plugin.version}: it goes on with the samples that it has."
                )
                begin = replace(begin, notices=(*begin.notices, told))
            _check_stop(stop_when_solved, len(begin.members))
            with closing(Session(self.placement, begin, observer)) as session:
                # Nothing on the disk changes before the engine has taken the run. From here on the checkpoint that was
                # asked for is the run's last, and what is newer goes.
                folder.promote(file)
                if begin.best is None:
                    folder.drop_best()
                folder.start_journal(begin.checkpoint.seeds, [member.metrics for member in begin.members])
                earlier = manifest.read(folder.path)
                self._compare(manifest.last_engine(earlier), observer)
                info, reason = session.training.info, self.placement.reason
                record = manifest.resume(earlier, config, info, reason, session.epoch)
                folder.write(manifest.NAME, manifest.to_json(record))
                folder.write("config.toml", config.to_toml())
                yield session.keep(folder, record)

    def _task(self, config: Config) -> OwnTask | None:
        """The task in Python that draws the samples. Raises ConfigError where it is not installed."""
        if self._given is not None or not config.plugin.name:
            return self._given
        return registered.task_of(config.plugin)

    def _compare(self, earlier: EngineInfo | None, observer: Observer) -> None:
        """Say so where the numbers of a resumed run may differ from those of one that never stopped."""
        # Two engines, or two drivers, round differently. The state is the same, the next epoch's last bits are not.
        here = self.placement.engine.info
        if earlier is not None and describe_engine(earlier) != describe_engine(here):
            observer.noticed(
                f"The run was on {describe_engine(earlier)} and goes on on {describe_engine(here)}: "
                "from the same state, but not with bit for bit the same numbers."
            )

    def _beginning(self, session: Session) -> Beginning:
        path, placement = None if session.folder is None else session.folder.path, self.placement
        models, info = len(session.members), placement.engine.info
        return Beginning(session.config, info, placement.reason, path, session.epoch, models, session.lender)

    def _finish(self, session: Session, stop: Stop) -> Run:
        session.bring_home()
        # Whoever shows progress hears of it first: pictures take a while.
        session.observer.ending()
        members, config, engine = session.members, session.config, session.training.engine
        first = best_of(members)
        effort = engine.info, session.epochs_here, session.seconds_here
        if len(members) == 1:
            summary = summarise(config, members[0].state, members[0].metrics, *effort, session.best)
        else:
            summary = summarise_population(config, members, first, *effort, session.best)
        summary += "" if session.best is None else certainty(session.best.config, session.best.circuit)
        if session.folder is not None:
            pictures = session.observer.wants_pictures()
            results.write(session.folder, engine, members, first, summary, session.best, pictures)
            if pictures and session.best is not None and (own := self._task(config)) is not None:
                self._draw(session.folder, own, session.best, session.observer)
            status = "complete" if session.complete else "interrupted"
            ended = manifest.end(session.record, status, session.epoch, summary)
            session.folder.write(manifest.NAME, manifest.to_json(ended))
        return Run(
            path=None if session.folder is None else session.folder.path,
            config=config,
            engine=engine.info,
            members=members,
            leader=first,
            kept=session.best,
            interrupted=stop.reason,
            summary=summary,
            complete=session.complete,
            given_up=session.given_up,
            lender=session.lender,
            accepted=any(session.accepted),
        )

    def _draw(self, folder: RunFolder, own: OwnTask, best: ModelState, observer: Observer) -> None:
        """The task's own pictures: where it fails to draw them, the run is none the worse."""
        try:
            results.draw(folder, self.placement.engine, own, best)
        except FaultyTaskError as error:
            observer.noticed(f"{error} The run is complete without them.")


def load_run(folder: Path | str) -> Run:
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
    folder = chosen.run_folder(Path(folder))
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
    return Run(
        path=folder,
        config=found.members[0].config,
        engine=engine,
        members=start.members(found, rows, dataset.of_run(found.members[0].config, folder)),
        leader=found.leader,
        kept=best,
        interrupted=None,
        summary=summary,
        complete=record["status"] == "complete",
    )


def _check_alone(*of_a_new_run: object) -> None:
    """Raises UsageError where a resumed run is given what only a new one has: it would not happen."""
    if any(each is not None for each in of_a_new_run):
        raise UsageError(
            "A resumed run keeps its own folder, circuit and population: give resume alone, not with out, "
            "init_from or population."
        )


def _check_stop(stop_when_solved: int, models: int) -> None:
    if not 0 <= stop_when_solved <= max(1, models):
        raise UsageError(
            f"stop_when_solved counts solved models: expected at most {models}, the population, got {stop_when_solved}."
        )


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
