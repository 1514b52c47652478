"""Training of a request: one run, or several attempts if the request has restarts."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from difflogic.config import agent_presets, recipes
from difflogic.config.customise import configure
from difflogic.config.harden import hardening
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.open import Placement, place, place_again
from difflogic.engine.api import Engine, EngineInfo
from difflogic.errors import UsageError
from difflogic.policies import environments
from difflogic.runs import attempts as records
from difflogic.runs import checkpoint, chosen, manifest, request_file
from difflogic.runs.chosen import Source
from difflogic.train import restarts, stalled
from difflogic.train.observer import Observer
from difflogic.train.restarts import Attempts
from difflogic.train.run import AgentRun, Run
from difflogic.train.trainer import Trainer

Asked = TypeVar("Asked", bound=TrainRequest)


@dataclass(frozen=True)
class Trained:
    """Result of training a request."""

    run: Run | AgentRun
    """Run of the request; for several attempts, the best run."""
    attempts: Attempts | None = None
    """Results of all attempts; None for a single run."""

    @property
    def last(self) -> Run | AgentRun:
        """Last run, from which training would continue."""
        return self.run if self.attempts is None else self.attempts.runs[-1]

    @property
    def path(self) -> Path | None:
        """Folder of the run, or of all attempts; None if nothing was written."""
        return self.run.path if self.attempts is None else self.attempts.path

    @property
    def summary(self) -> str:
        """Description of the result for users, with a line for each attempt."""
        return self.run.summary if self.attempts is None else self.attempts.summary


def fit(
    what: str | Config | PolicyConfig | None = None,
    epochs: int | None = None,
    out: Path | str | None = None,
    engine: Engine | str = "auto",
    observer: Observer | None = None,
    resume: Source | None = None,
    **options: Any,
) -> Run | AgentRun:
    """Train a preset, a configuration, an image, a rule, samples or an agent, like the command `train`.

        >>> run = difflogic.fit(config, epochs=2, engine="reference")
        >>> run.config.train.epochs
        2

    `difflogic.fit(target=Path("cat.png"), size=(16, 16))` learns an image, `difflogic.fit("Acrobot-v1")` trains an
    agent, and `difflogic.fit(resume="runs/NAME")` continues a run.

    Args:
        what: The name of a preset or of an environment, or a configuration. Without it, `target`, `rule`, `data`
            or `table` is the task.
        epochs: The total number of epochs; None: as the configuration says.
        out: A new run folder; None: nothing is written.
        engine: An engine, or a selector as for `--engine`.
        observer: Receives reports, and may end the run.
        resume: The folder of a run to continue, with its saved request.
        options: Fields of `TrainRequest`: `target`, `rule`, `data`, `recipe`, `population`, `restarts`, `set`, ..., and
            `seed`, `batch` and `eval_interval`. A resumed run takes the options of `difflogic train --resume`.

    Returns:
        The run, or the best of several attempts.

    Raises:
        UsageError: The options contradict each other.
        ConfigError: A field is out of range.
        DeviceError: The engine cannot run this training.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
    """
    folder = None if out is None else Path(out)
    if resume is not None:
        if what is not None or out is not None:
            raise UsageError("A resumed run keeps its configuration and folder: omit `what` and `out`.")
        earlier = chosen.path_of(resume)
        request = resumed(earlier, epochs=epochs, **options)
        placement = place_again(last_engine(earlier)) if engine == "auto" else _place(engine)
        return run_request(request, placement, None, earlier, observer).run
    options["preset" if isinstance(what, str) else "config"] = what
    request = TrainRequest.of(epochs=epochs, **options)
    return run_request(whole(request), _place(engine), folder, observer=observer).run


def _place(engine: Engine | str) -> Placement:
    return place(engine) if isinstance(engine, str) else Placement(engine)


def whole(request: TrainRequest) -> TrainRequest:
    """Return the request with its complete configuration. Raises the errors of `configure`."""
    if (environment := environments.of_preset(request.preset)) is not None:
        request = replace(request, preset=None, config=environment)
    if (agents := agent_presets.configure(request)) is not None:
        return replace(request, preset=None, config=agents)
    return configure(request).request


def resumed(folder: Path, **changes: Any) -> TrainRequest:
    """Return the saved request of a run, with changes that are allowed on resume.

    Args:
        folder: A run folder, a folder of attempts, or a checkpoint file.
        changes: `engine`; for a single run also `stop_when_solved` and the total number of `epochs`, or of `steps` for
            agents; for training until solved also `within`. None changes nothing.

    Returns:
        The request, with its configuration.

    Raises:
        UsageError: A change is not allowed.
        CheckpointError, RunFolderError: The run cannot be read.
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    is_attempts = records.is_in(folder)
    if is_attempts:
        request, allowed = records.read(folder).request, ("engine", "within")
    else:
        config, saved = checkpoint.config_of(folder), request_file.read(checkpoint.locate(folder).parent)
        unit, other = ("steps", "epochs") if isinstance(config, PolicyConfig) else ("epochs", "steps")
        if other in changes:
            raise UsageError(f"Training of {folder} is counted in {unit}: give `{unit}`.")
        total = changes.pop(unit, None)
        config = config if total is None else config.with_epochs(total)
        request, allowed = replace(saved or TrainRequest(), config=config), ("engine", "stop_when_solved")
    if "within" in changes and not request.until_solved:
        raise UsageError(f"`within` requires training until solved, unlike the run in {folder}: omit it.")
    if refused := [f"`{name}`" for name in changes if name not in allowed]:
        if not is_attempts:
            raise UsageError(f"A resumed run is trained as it was configured: omit {', '.join(refused)}.")
        raise UsageError(
            f"The attempts in {folder} are continued with the options that they began with: omit "
            f"{', '.join(refused)}, or resume a single attempt, such as {folder / 'attempt-1'}."
        )
    return replace(request, **changes)


def last_engine(folder: Path) -> EngineInfo | None:
    """Return the engine that last trained the run in a folder, or None if it is unknown."""
    return manifest.last_engine(manifest.read(checkpoint.locate(chosen.run_folder(folder)).parent))


def hardening_request(
    run: Path, search: bool = False, epochs: int | None = None, eval_interval: int | None = None, **others: Any
) -> TrainRequest:
    """Return a request that trains the best circuit of a run until its gates converge.

    If `search`, a search changes the hard circuit instead, without gradients. `others` are further request fields.
    """
    source = chosen.load(run)
    return TrainRequest(
        config=hardening(source.config, search, epochs, eval_interval),
        init_from=run,
        data=source.data(),
        # The run stops at the first evaluation without mismatches; `decide` then converges all gates to that circuit.
        stop_when_solved=1,
        decide=not search,
        **others,
    )


def harden(
    run: Source,
    out: Path | str | None = None,
    *,
    search: bool = False,
    epochs: int | None = None,
    engine: Engine | str = "auto",
    observer: Observer | None = None,
) -> Run:
    """Train the unconverged gates of a run until they converge, as the command `harden` does.

        >>> hardened = difflogic.harden(folder, epochs=2, engine="reference")
        >>> hardened.config.train.epochs
        2

    Args:
        run: A run or its folder, which is not changed.
        out: A new run folder; None: nothing is written.
        search: True to change gates of the hard circuit one at a time instead, without gradients.
        epochs: The number of epochs; None: a quarter of the run's.
        engine: An engine, or a selector as for `--engine`.
        observer: Receives reports, and may end the run.

    Returns:
        The new run.

    Raises:
        CheckpointError: There is no usable checkpoint.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
    """
    request = hardening_request(chosen.path_of(run), search, epochs)
    folder = None if out is None else Path(out)
    return cast("Run", run_request(whole(request), _place(engine), folder, observer=observer).run)


def is_in(folder: Path) -> bool:
    """Return whether a run can be resumed: its folder, or the folder of one of its attempts, has a checkpoint."""
    names = [attempt.folder for attempt in records.read(folder).attempts] if records.is_in(folder) else [""]
    return any(checkpoint.is_in(folder / name) for name in names)


def resolved(request: Asked, config: Config | PolicyConfig) -> tuple[Asked, str | None]:
    """Return the request with its number of restarts, and a notice if its recipe restarts but this run cannot.

    By default, a single model restarts as often as is useful, a population never. `config` is the request's.
    """
    if request.restarts is not None or request.until_solved or request.recipe not in recipes.RESTARTS:
        return request, None
    why = None
    most = 0 if isinstance(config, PolicyConfig) else stalled.most_restarts(config, config.epochs)
    if request.init_from is not None:
        why = "`init_from` takes the wiring of another run, so there is only one attempt"
    elif request.starts is not None:
        why = "`starts` is for a single attempt"
    elif not most and request.population == 1:
        why = f"`epochs` {config.epochs} leaves no room for a second attempt"
    if why is None:
        # A population tries several wirings at the same time, so it restarts only if the request sets a number.
        return replace(request, restarts=most if request.population == 1 else 0), None
    return replace(request, restarts=0), f"The recipe {request.recipe} does not restart here: {why}."


def run_request(
    request: TrainRequest,
    placement: Placement,
    out: Path | None = None,
    resume: Path | None = None,
    observer: Observer | None = None,
) -> Trained:
    """Train a request with a configuration in the new folder `out`, or continue the run in the folder `resume`.

    The command `train`, `fit`, workers and trials of sweeps all call this function. Raises the errors of `Trainer.run`,
    `restarts.train` and `restarts.resume`.
    """
    # Attempts continue with the request in their folder, of which only the limit may change.
    if resume is not None and records.is_in(resume):
        attempts = restarts.resume(resume, placement, observer, request.within)
        return Trained(attempts.best, attempts)
    request, notice = resolved(request, request.whole)
    if notice is not None and observer is not None:
        observer.noticed(notice)
    if resume is None and (request.until_solved or request.restarts):
        attempts = restarts.train(request, placement, out, observer)
        return Trained(attempts.best, attempts)
    trainer: Trainer[Any] = Trainer(request, placement)
    return Trained(trainer.run(out=out, resume=resume, observer=observer))
