"""Trainer, which trains a request on a device, in a run folder or in memory, and resumes runs.

    run = Trainer(presets.checkerboard(small=True), open_engine("auto")).run(epochs=100, out=Path("runs/first"))
    run.solved, run.metrics[-1].soft_loss, run.circuit

With `population=64` it trains 64 seeds in parallel: `run` describes the best model, and `run.members` are all models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from difflogic.config import registered
from difflogic.config.own_task import OwnTask, Task
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest, check_names
from difflogic.config.schema import Config
from difflogic.devices import cost
from difflogic.devices.device import Device
from difflogic.devices.open import Placement
from difflogic.engine import memory
from difflogic.engine.api import Engine, describe_engine
from difflogic.errors import ConfigError, UsageError
from difflogic.model.statistics import decided
from difflogic.runs import checkpoint, manifest, request_file
from difflogic.runs import folder as folders
from difflogic.runs.folder import RunFolder
from difflogic.train import live, start
from difflogic.train.automata import Automata
from difflogic.train.observer import Observer
from difflogic.train.run import AgentRun, EndedRun, Run
from difflogic.train.session import Rules, Session
from difflogic.train.signals import StopSignals

R = TypeVar("R", bound=EndedRun[Any])
OF_A_RUN = ("population", "stop_when_solved", "init_from", "starts", "data", "decide")
"""Names of the fields of a request that `Trainer.run` accepts."""
OF_A_NEW_RUN = ("init_from", "starts", "data", "population")
"""Names in `OF_A_RUN` that a resumed run does not accept."""


class Trainer(Generic[R]):
    """Trainer of one configuration of automata or agents on one device.

    A custom task in Python is trained with its default configuration.

        >>> len(difflogic.Trainer(config, engine).run(epochs=2).metrics)
        2
    """

    @overload
    def __init__(self: Trainer[Run], what: Config | Task, engine: Engine | Device | Placement) -> None: ...

    @overload
    def __init__(self: Trainer[AgentRun], what: PolicyConfig, engine: Engine | Device | Placement) -> None: ...

    @overload
    def __init__(self, what: TrainRequest, engine: Engine | Device | Placement) -> None: ...

    def __init__(self, what: Config | PolicyConfig | Task | TrainRequest, engine: Engine | Device | Placement) -> None:
        """Prepare the training of a configuration, a task or a request.

        Args:
            what: A configuration, a task in Python, or a request that has a configuration.
            engine: An engine, a device, or a placement.

        Raises:
            ConfigError: The request has no configuration, or the configuration of the task is invalid.
        """
        self._own = None
        if not isinstance(what, (Config, PolicyConfig, TrainRequest)):
            self._own = registered.given(what)
            what = self._own.config()
        # With only a configuration, a resumed run uses its saved request.
        self._is_bare = not isinstance(what, TrainRequest)
        self.request = what if isinstance(what, TrainRequest) else TrainRequest(config=what)
        if self.request.config is None:
            raise ConfigError("Expected a request with a configuration: see difflogic.config.customise.configure.")
        self.config = self.request.whole
        if isinstance(engine, Device):
            engine = engine.open()
        self.placement = engine if isinstance(engine, Placement) else Placement(engine)

    def run(
        self,
        epochs: int | None = None,
        out: Path | str | None = None,
        resume: Path | str | None = None,
        observer: Observer | None = None,
        rules: Rules | None = None,
        **fields: Any,
    ) -> R:
        """Train until the run has `epochs` epochs in total.

        Args:
            epochs: The total number of epochs, or of environment steps for agents, including those before `resume`.
                None: the number in the configuration.
            out: A new run folder; None: nothing is written.
            resume: A run folder, or a checkpoint file in it, to continue, bit for bit on the same device and driver.
                The configuration must equal the run's. If the trainer was made from a configuration, not a
                request, the saved request of the run is used.
            observer: Receives reports, and may end the run by its `stop`.
            rules: Rules that end a run of automata early; None: only `stop_when_solved`.
            fields: Fields of `TrainRequest`: `population`, `stop_when_solved`, `init_from`, `starts`, `data`, `decide`.
                These replace fields of the saved request.

        Returns:
            The run with its best circuit and its last state, even if it was interrupted.

        Raises:
            UsageError, ConfigError: The arguments contradict each other, or the configuration.
            CheckpointError, RunFolderError: A file cannot be read or written, or the folder is in use.
            DeviceError: The engine cannot run this training.
        """
        check_names(fields, OF_A_RUN)
        config = self.config if epochs is None else self.config.with_epochs(epochs)
        fields = {name: value for name, value in fields.items() if value is not None}
        request = self.request
        if resume is not None:
            if out is not None or fields.keys() & set(OF_A_NEW_RUN):
                raise UsageError(
                    "A resumed run keeps its own folder, circuit and population: give resume alone, not with out, "
                    "init_from or population."
                )
            saved = request_file.read(checkpoint.locate(Path(resume)).parent) if self._is_bare else None
            request = saved or request
        request = replace(request, config=config, **fields)
        observer = observer or live.observer(self.placement.engine)
        if observer.log_interval < 1:
            raise ConfigError(f"log_interval must be an integer of at least 1, got {observer.log_interval}.")
        rules = rules or Rules(finish=decided if request.decide else None)
        if resume is not None:
            opened = self._resumed(request, Path(resume), observer, rules)
        else:
            opened = self._new(request, None if out is None else Path(out), observer, rules)
        # Signals are watched before the engine opens its model, since opening may take long and no Ctrl-C may be lost.
        with StopSignals() if observer.stop is None else nullcontext(observer.stop) as stop, opened as session:
            try:
                session.train(stop)
                return session.end()
            except BaseException as error:
                session.fail(error)
                raise

    @contextmanager
    def _new(
        self, request: TrainRequest, out: Path | None, observer: Observer, rules: Rules
    ) -> Iterator[Session[Any, R]]:
        if out is not None:
            folders.check_new(out)
        # All errors of a request, including errors of the device, are raised before the folder is created.
        with closing(self._fresh(request, observer, rules)) as session:
            if out is None:
                yield session
                return
            source = None if request.init_from is None else Path(request.init_from)
            record = manifest.begin(request.whole, session.info, self.placement.reason, source, session.seeds)
            contents = {**session.contents(), request_file.NAME: request_file.encode(request)}
            state, text = session.state(), manifest.to_json(record)
            with closing(RunFolder.create(out, state, text, contents, session.columns)) as folder:
                yield session.write_to(folder, record)

    def _fresh(self, request: TrainRequest, observer: Observer, rules: Rules) -> Session[Any, Any]:
        config = request.whole
        if isinstance(config, PolicyConfig):
            from difflogic.train.agents import Agents  # imports modules that only agents need

            return Agents.fresh(request, config, self.placement, observer)
        engine, population = self.placement.engine.info, request.population
        is_slow = engine.engine != "gpu"  # the GPU engine plans its own memory, and the speed of a GPU is unknown
        if is_slow:
            memory.check_processor(config, population, engine.variant.get("threads", 1))
        own = self._task(config)
        if request.data is None and own is not None:
            samples = own.drawn(config.data.samples)
            samples.check(config, f"The samples that {own.name} now makes")
            request = replace(request, data=samples)
        begin = start.fresh(request)
        if is_slow and (notice := cost.notice(config, population)) is not None:
            begin = replace(begin, notices=(*begin.notices, notice))
        return Automata(request, self.placement, begin, observer, rules, own)

    @contextmanager
    def _resumed(
        self, request: TrainRequest, path: Path, observer: Observer, rules: Rules
    ) -> Iterator[Session[Any, R]]:
        config, (folder, file) = request.whole, RunFolder.reopen(path)
        with closing(folder), closing(self._continued(request, folder, file, path, observer, rules)) as session:
            # Files change only after the engine has accepted the run. The named checkpoint becomes the last one of the
            # run, and newer checkpoints are deleted.
            folder.promote(file)
            if isinstance(session, Automata) and session.best is None:
                folder.drop_best()
            folder.start_journal(session.seeds, session.journal(), session.columns)
            earlier = manifest.read(folder.path)
            before, now = manifest.last_engine(earlier), describe_engine(self.placement.engine.info)
            if before is not None and describe_engine(before) != now:
                # Engines and drivers round differently: the state is the same, but later states may differ.
                observer.noticed(
                    f"The run was on {describe_engine(before)} and continues on {now} from the same state: its results "
                    "will not be identical bit for bit."
                )
            record = manifest.resume(earlier, config, session.info, self.placement.reason, session.epoch)
            folder.write(manifest.NAME, manifest.to_json(record))
            folder.write("config.toml", config.to_toml())
            folder.write(request_file.NAME, request_file.encode(request))
            yield session.write_to(folder, record)

    def _continued(
        self, request: TrainRequest, folder: RunFolder, file: Path, path: Path, observer: Observer, rules: Rules
    ) -> Session[Any, Any]:
        config = request.whole
        if isinstance(config, PolicyConfig):
            from difflogic.train.agents import Agents

            return Agents.resumed(request, config, self.placement, observer, folder, file)
        begin, own = start.resumed(config, folder, file, path), self._task(config)
        if own is not None and own.task.version != config.plugin.version:
            notice = (
                f"The installed task {own.name} has version {own.task.version}, and the run has version "
                f"{config.plugin.version}: it continues with its own samples."
            )
            begin = replace(begin, notices=(*begin.notices, notice))
        return Automata(request, self.placement, begin, observer, rules, own)

    def _task(self, config: Config) -> OwnTask | None:
        """Return the task in Python that draws the samples, or None. Raises ConfigError if it is not installed."""
        if self._own is not None or not config.plugin.name:
            return self._own
        return registered.task_of(config.plugin)
