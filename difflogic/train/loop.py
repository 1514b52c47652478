"""The trainer: epochs on an engine, evaluated, journalled and saved.

run = Trainer(presets.checkerboard(small=True), open_engine("auto")).run(epochs=100, out=Path("runs/first"))
run.solved, run.metrics[-1].soft_loss, run.circuit
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import Engine, EngineInfo, TrainState
from difflogic.errors import ConfigError, UsageError
from difflogic.train import folder as folders
from difflogic.train import manifest, results, start, tasks
from difflogic.train.folder import RunFolder
from difflogic.train.journal import Row
from difflogic.train.observer import Beginning, Observer
from difflogic.train.session import Session
from difflogic.train.signals import StopSignals
from difflogic.train.start import Start
from difflogic.train.summary import describe_engine, last_evaluated, summarise

LOG_INTERVAL = 10


@dataclass(frozen=True, eq=False)
class Run:
    """A run that ended, or was interrupted."""

    path: Path | None
    """Its folder; None where it was kept in memory."""
    config: Config
    engine: EngineInfo
    metrics: list[Row]
    """One row per epoch, from the first on."""
    circuit: Circuit
    """With the trained logits."""
    state: TrainState
    interrupted: signal.Signals | None
    """The signal that stopped it early."""
    summary: str
    """The result in words."""

    @property
    def solved(self) -> bool:
        """True where the last evaluation found no wrong value on any probe."""
        judged = last_evaluated(self.metrics)
        return judged is not None and judged.hard_loss == 0


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
        stop_when_solved: bool = False,
        log_interval: int = LOG_INTERVAL,
        observer: Observer | None = None,
    ) -> Run:
        """Train until `epochs` in all are done (default: the configuration's).

        `out`: a new run folder; without it nothing is written. `resume`: a run folder, or a checkpoint file
        in it, to go on with bit for bit; `config` must be its own. `init_from`: a run folder or checkpoint
        whose circuit to start from, with fresh moments. `stop_when_solved`: end at the first evaluation
        without a wrong value. The first Ctrl-C or SIGTERM ends the run after the epochs under way, saved.

        Raises ConfigError, UsageError, CheckpointError, RunFolderError, and the engine's DeviceErrors.
        """
        config = self.config if epochs is None else self.config.with_(train={"epochs": epochs})
        if log_interval < 1:
            raise ConfigError(f"log_interval must be a whole number of at least 1, got {log_interval}.")
        if resume is not None and (out is not None or init_from is not None):
            raise UsageError(
                "A resumed run keeps its own folder and circuit: give resume alone, not with out or init_from."
            )
        observer = observer or Observer()
        if resume is not None:
            opened = self._resumed(config, Path(resume), observer)
        else:
            opened = self._begun(config, _path(out), _path(init_from), observer)
        with StopSignals() as signals, opened as session:
            session.observer.began(self._beginning(session))
            session.train(signals, stop_when_solved, log_interval)
            return self._finish(session, signals)

    @contextmanager
    def _begun(self, config: Config, out: Path | None, init_from: Path | None, observer: Observer) -> Iterator[Session]:
        if out is not None:
            folders.check_new(out)
        begin = start.fresh(config, init_from)
        with self._session(begin, observer) as session:  # before the folder: a device that refuses leaves nothing
            if out is None:
                yield session
                return
            record = manifest.begin(config, session.model.info, self.reason, init_from)
            with _closing(RunFolder.create(out, begin.checkpoint, manifest.to_json(record))) as folder:
                yield session.keep(folder, record)

    @contextmanager
    def _resumed(self, config: Config, path: Path, observer: Observer) -> Iterator[Session]:
        folder, file = RunFolder.reopen(path)
        with _closing(folder):
            begin = start.resumed(config, folder, file, path)
            with self._session(begin, observer) as session:
                folder.promote(file)
                folder.start_journal(begin.rows)
                earlier = manifest.read(folder.path)
                self._compare(manifest.last_engine(earlier), observer)
                epoch = begin.checkpoint.state.epoch
                record = manifest.resume(earlier, config, session.model.info, self.reason, epoch)
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
        job = tasks.make_job(begin.checkpoint.config, begin.checkpoint.circuit)
        model = self.engine.open_model(job, begin.checkpoint.state)
        try:
            yield Session(job, model, begin, observer)
        finally:
            model.close()

    def _beginning(self, session: Session) -> Beginning:
        path = None if session.folder is None else session.folder.path
        return Beginning(session.job.config, self.engine.info, self.reason, path, session.epoch)

    def _finish(self, session: Session, signals: StopSignals) -> Run:
        state, config, rows = session.model.to_cpu(), session.job.config, session.rows
        summary = summarise(config, state, rows, self.engine.info, session.epochs_here, session.seconds_here)
        if session.folder is not None:
            results.write(session.folder, session.job, self.engine, state, rows, summary)
            status = "complete" if session.complete else "interrupted"
            session.folder.write(
                manifest.NAME, manifest.to_json(manifest.end(session.record, status, state.epoch, summary))
            )
        return Run(
            path=None if session.folder is None else session.folder.path,
            config=config,
            engine=self.engine.info,
            metrics=rows,
            circuit=session.job.circuit.with_logits(state.logits),
            state=state,
            interrupted=signals.received,
            summary=summary,
        )


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)


@contextmanager
def _closing(folder: RunFolder) -> Iterator[RunFolder]:
    try:
        yield folder
    finally:
        folder.close()
