"""The trainer: epochs on an engine, evaluated, journalled and saved.

run = Trainer(presets.checkerboard(small=True), open_engine("auto")).run(epochs=100, out=Path("runs/first"))
run.solved, run.metrics[-1].soft_loss, run.circuit

With `population=64` it trains 64 seeds at once: `run` then speaks of the best, `run.members` of each.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import Engine, EngineInfo, TrainState
from difflogic.errors import ConfigError, UsageError
from difflogic.train import folder as folders
from difflogic.train import manifest, pictures, results, start
from difflogic.train.contest import ContestModel
from difflogic.train.folder import RunFolder
from difflogic.train.growth import GrowingModel
from difflogic.train.journal import Row
from difflogic.train.member import Member, leader
from difflogic.train.observer import Beginning, Observer
from difflogic.train.population_summary import summarise_population
from difflogic.train.session import GiveUp, Session
from difflogic.train.settle import SettlingModel, open_training
from difflogic.train.signals import StopSignals
from difflogic.train.start import Start
from difflogic.train.summary import describe_engine, summarise

LOG_INTERVAL = 10


@dataclass(frozen=True, eq=False)
class Run:
    """A run that ended, or was interrupted. `metrics`, `circuit`, `state` and `solved` are the leader's."""

    path: Path | None
    """Its folder; None where it was kept in memory."""
    config: Config
    """A population's with its first seed."""
    engine: EngineInfo
    members: Sequence[Member]
    """One, or a population's, in the order of their seeds."""
    leader: int
    """Index of the best: fewest wrong values at the last evaluation, then fewest active gates."""
    interrupted: signal.Signals | None
    """The signal that stopped it early."""
    summary: str
    """The result in words."""

    @property
    def best(self) -> Member:
        return self.members[self.leader]

    @property
    def metrics(self) -> list[Row]:
        """One row per epoch, from the first on."""
        return self.best.metrics

    @property
    def circuit(self) -> Circuit:
        """With the trained logits."""
        return self.best.circuit

    @property
    def state(self) -> TrainState:
        return self.best.state

    @property
    def solved(self) -> bool:
        """True where the last evaluation found no wrong value on any probe."""
        return self.best.solved


class Trainer:
    """Trains one configuration on one engine."""

    def __init__(self, config: Config, engine: Engine, reason: str = "the engine was given") -> None:
        """`reason` says in the manifest why it is this engine."""
        self.config = config
        self.engine = engine
        self.reason = reason

    def run(
        self,
        epochs: int | None = None,
        out: Path | str | None = None,
        resume: Path | str | None = None,
        init_from: Path | str | None = None,
        population: int | None = None,
        stop_when_solved: int = 0,
        log_interval: int = LOG_INTERVAL,
        observer: Observer | None = None,
        give_up: GiveUp | None = None,
    ) -> Run:
        """Train until `epochs` in all are done (default: the configuration's).

        `out`: a new run folder; without it nothing is written. `resume`: a run folder, or a checkpoint file
        in it, to go on with bit for bit; `config` must be its own. `init_from`: a run folder or checkpoint
        whose circuit to start from, with fresh moments. `population`: how many models to train at once, of the
        configuration's seed and those after it; each is what it would be alone. `stop_when_solved`: end at the
        first evaluation that finds so many models without a wrong value (0: never). `give_up`: end at the first
        evaluation where it says so of the members. The first Ctrl-C or SIGTERM ends the run after the epochs under
        way, saved.

        Raises ConfigError, UsageError, CheckpointError, RunFolderError, and the engine's DeviceErrors.
        """
        config = self.config if epochs is None else self.config.with_(train={"epochs": epochs})
        if log_interval < 1:
            raise ConfigError(f"log_interval must be a whole number of at least 1, got {log_interval}.")
        if resume is not None and any(each is not None for each in (out, init_from, population)):
            raise UsageError(
                "A resumed run keeps its own folder, circuit and population: give resume alone, not with out, "
                "init_from or population."
            )
        observer = observer or Observer()
        if resume is not None:
            opened = self._resumed(config, Path(resume), stop_when_solved, observer)
        else:
            population = 1 if population is None else population
            _check_stop(stop_when_solved, population)
            opened = self._begun(config, _path(out), _path(init_from), population, observer)
        with StopSignals() as signals, opened as session:
            try:
                session.observer.began(self._beginning(session))
                session.train(signals, stop_when_solved, log_interval, give_up)
                return self._finish(session, signals)
            except BaseException as error:
                session.fail(error)
                raise

    @contextmanager
    def _begun(
        self, config: Config, out: Path | None, init_from: Path | None, population: int, observer: Observer
    ) -> Iterator[Session]:
        if out is not None:
            folders.check_new(out)
        begin = start.fresh(config, init_from, population)
        with self._session(begin, observer) as session:  # before the folder: a device that refuses leaves nothing
            if out is None:
                yield session
                return
            record = manifest.begin(config, session.model.info, self.reason, init_from, begin.snapshot.seeds)
            target = pictures.target_png(begin.members[0].job)
            with _closing(RunFolder.create(out, begin.snapshot, manifest.to_json(record), target)) as folder:
                yield session.keep(folder, record)

    @contextmanager
    def _resumed(self, config: Config, path: Path, stop_when_solved: int, observer: Observer) -> Iterator[Session]:
        folder, file = RunFolder.reopen(path)
        with _closing(folder):
            begin = start.resumed(config, folder, file, path)
            _check_stop(stop_when_solved, len(begin.members))
            with self._session(begin, observer) as session:
                folder.promote(file)
                folder.start_journal(begin.snapshot.seeds, [member.metrics for member in begin.members])
                earlier = manifest.read(folder.path)
                self._compare(manifest.last_engine(earlier), observer)
                record = manifest.resume(earlier, config, session.model.info, self.reason, session.epoch)
                folder.write(manifest.NAME, manifest.to_json(record))
                folder.write("config.toml", config.to_toml())
                yield session.keep(folder, record)

    def _compare(self, earlier: EngineInfo | None, observer: Observer) -> None:
        """Say so where the numbers of a resumed run may differ from those of one that never stopped."""
        here = self.engine.info
        if earlier is not None and describe_engine(earlier) != describe_engine(here):
            observer.noticed(
                f"The run was on {describe_engine(earlier)} and goes on on {describe_engine(here)}: "
                "from the same state, but not with bit for bit the same numbers."
            )

    @contextmanager
    def _session(self, begin: Start, observer: Observer) -> Iterator[Session]:
        members = begin.members
        model = open_training(self.engine, [member.job for member in members], [member.state for member in members])
        session = Session(model, begin, observer)
        if isinstance(model, ContestModel | GrowingModel | SettlingModel):
            model.decided = session.placed
        try:
            yield session
        finally:
            model.close()

    def _beginning(self, session: Session) -> Beginning:
        path = None if session.folder is None else session.folder.path
        return Beginning(session.config, self.engine.info, self.reason, path, session.epoch, len(session.members))

    def _finish(self, session: Session, signals: StopSignals) -> Run:
        session.bring_home()
        session.observer.ending()
        members, config = session.members, session.config
        first = leader(members)
        effort = self.engine.info, session.epochs_here, session.seconds_here
        if len(members) == 1:
            summary = summarise(config, members[0].state, members[0].metrics, *effort)
        else:
            summary = summarise_population(config, members, first, *effort)
        if session.folder is not None:
            results.write(session.folder, self.engine, members, first, summary)
            status = "complete" if session.complete else "interrupted"
            ended = manifest.end(session.record, status, session.epoch, summary)
            session.folder.write(manifest.NAME, manifest.to_json(ended))
        return Run(
            path=None if session.folder is None else session.folder.path,
            config=config,
            engine=self.engine.info,
            members=members,
            leader=first,
            interrupted=signals.received,
            summary=summary,
        )


def _check_stop(stop_when_solved: int, models: int) -> None:
    if not 0 <= stop_when_solved <= max(1, models):
        raise UsageError(
            f"stop_when_solved counts solved models: expected at most {models}, the population, got {stop_when_solved}."
        )


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)


@contextmanager
def _closing(folder: RunFolder) -> Iterator[RunFolder]:
    try:
        yield folder
    finally:
        folder.close()
