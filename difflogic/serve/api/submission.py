"""Convert a training request to the specification of a job within the limits of the server."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.config import dataset, kept_starts, registered
from difflogic.config.customise import base_of, configure
from difflogic.config.document import Document
from difflogic.config.fields import by_path
from difflogic.config.request import TrainRequest, options
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.core import text_picture
from difflogic.devices.cost import Cost, cost_of
from difflogic.engine import job
from difflogic.errors import FaultyTaskError, LimitError, UsageError
from difflogic.runs import plots
from difflogic.serve.api import pictures
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest, JobSpec, goal_of
from difflogic.train import budget, reach, run_request

MAX_CELLS = 1 << 20
"""Maximum number of cells in the grid of an image."""
MOST_SAMPLES = 1 << 16
"""Maximum number of samples of a task in Python, which are generated before the job's cost is known."""
OF_A_JOB = [option.name for option in options(TrainRequest)
            if option.group in ("run", "until") and option.name not in ("engine", "init_from")]  # fmt: skip
"""Names of options in `JobSpec.request`; all other options determine the configuration, the engine or the source."""


@dataclass(frozen=True)
class Submission:
    """Job for a request, checked but not yet queued."""

    config: Document
    """Configuration of the training; for a sweep, the base configuration of its trials."""
    spec: JobSpec
    cost: Cost
    preview: Callable[[], dict[str, Any]]
    """Function that returns the job's preview as JSON data."""


def of_automata(request: JobRequest, uploads: Mapping[str, Path], settings: ServeSettings) -> Submission:
    """Return the job for a request to train automata. Raises ApiError if the server cannot run the job."""
    # This check comes first, because `with_files` already loads the code of a task.
    check_task(request.preset, settings)
    try:
        for name, path in uploads.items():
            if name != "rule_table":
                pictures.make_plain(path, settings.caps.pixels)
        complete = with_files(request, uploads)
        check_task(complete.config.plugin.name if isinstance(complete.config, Config) else None, settings)
        _check_samples(complete)
        customised = configure(complete)
        config = customised.config
        kept_starts.refuse(config, has_samples=complete.data is not None)
        reach_notice = reach.notice(config)  # it raises UsageError if no circuit can solve the task
        resolved, notice = _with_attempts(customised.request, config)
    except (UsageError, FaultyTaskError, LimitError) as error:
        raise ApiError(422, "invalid_config", without_paths(error, uploads)) from error
    if request.stop_when_solved > request.population:
        message = (
            f"stop_when_solved must be at most {request.population}, the population, got {request.stop_when_solved}."
        )
        raise ApiError(422, "invalid_request", message)
    # The configuration alone determines the cost, before a circuit is made.
    cost = check_cost(config, request.population, settings.caps)
    if resolved.until_solved:
        resolved = replace(resolved, within=_limit(resolved.within, config, cost, settings.caps))

    def more() -> dict[str, Any]:
        # Fields that the request itself sets are not reported as changed.
        before, own = by_path(customised.base.to_dict()), by_path(request.set)
        after = by_path(config.to_dict()).items()
        changed = {path: value for path, value in after if value != before[path] and path not in own}
        notices = [text for text in (*customised.notices, reach_notice, notice) if text is not None]
        return {"target": shown_target(config), "notices": notices, "changed": changed}

    resolved = replace(resolved, stop_when_solved=resolved.solved_models)
    return submission(resolved, config, cost, config.model.gates, more)


def submission(
    request: JobRequest, config: Document, cost: Cost, gates: int, more: Callable[[], dict[str, Any]] = dict
) -> Submission:
    """Return the submission for a checked request; `more` returns additional entries of its preview."""
    spec = job_spec(request, config)
    nothing: dict[str, Any] = {"target": None, "changed": {}, "notices": []}
    about = {"config": spec.config, "goal": goal_of(spec.config), "gates": gates, "request": spec.request}
    return Submission(config, spec, cost, lambda: about | {"cost": cost.to_dict()} | nothing | more())


def job_spec(request: JobRequest, config: Document) -> JobSpec:
    """Return the store's specification of a training or a sweep."""
    data, samples = config.to_dict(), request.table if request.data is None else request.data
    return JobSpec(
        "train" if request.sweep is None else "sweep",
        request.name or data["name"],
        data,
        request.engine or "auto",
        {name: value for name, value in request.to_dict().items() if name in OF_A_JOB},
        priority=request.priority,
        source=None if request.init_from is None else str(request.init_from),
        options={} if samples is None else {"data": b64encode(samples.encode()).decode()},
        tags=list(dict.fromkeys(request.tags)),
    )


def check_task(name: str | None, settings: ServeSettings) -> None:
    """Raise ApiError if the preset or plugin `name` is a task in Python that the operator does not allow."""
    if name and registered.is_task(name) and name not in settings.tasks:
        allowed = ", ".join(sorted(settings.tasks)) or "none"
        message = (
            f"This server does not allow the task in Python {one_sentence(name[:100])}, only {allowed}: ask "
            "its operator to allow it."
        )
        raise ApiError(422, "task", message)


def with_files(request: JobRequest, uploads: Mapping[str, Path]) -> JobRequest:
    """Return the request with the uploaded files in its fields. Raises UsageError."""
    if not uploads:
        return request
    files: dict[str, Any] = dict(uploads)
    if "labels" in files:
        raise UsageError("The file `labels` is only for classifiers, which require `label`: give both.")
    if "start_picture" in files:
        if request.start is not None:
            raise UsageError("Expected either start or start_picture, got both.")
        files["start"] = str(files.pop("start_picture"))
    if "data" in files:
        files["data"] = dataset.load(files["data"])
    complete = replace(request, **files)
    _check_grid(complete)
    return complete


def check_cost(config: Config, population: int, caps: Caps) -> Cost:
    """Return the cost of a training. Raises ApiError, with the exceeded limit, if the cost is above the caps."""
    if config.train.epochs > caps.epochs:
        why = f"Expected at most {caps.epochs} epochs on this server, got {config.train.epochs}"
        raise over("epochs", why, "fewer epochs")
    cost = cost_of(config, population)
    check_caps(cost, population, caps, "a smaller grid, batch, circuit or population, or fewer epochs")
    return cost


def check_caps(cost: Cost, population: int, caps: Caps, advice: str) -> None:
    """Raise ApiError, with the exceeded limit, if the population or the cost of a training is above the caps.

    `advice` names what makes a training faster, such as fewer epochs.
    """
    if population > caps.population:
        why = f"Expected at most {caps.population} models on this server, got {population}"
        raise over("population", why, "a smaller population")
    if cost.memory > caps.memory:
        needed, allowed = (f"{size // 10**6} MB" for size in (cost.memory, caps.memory))
        why = f"The job requires {needed} of memory, but this server allows {allowed}"
        raise over("memory", why, "a smaller grid, batch, circuit or population")
    if cost.seconds > caps.hours * 3600:
        why = f"The job takes about {cost.seconds // 3600} hours, but this server allows {caps.hours:g}"
        raise over("time", why, advice)


def _with_attempts(request: JobRequest, config: Config) -> tuple[JobRequest, str | None]:
    """Return the request with its number of restarts, and None or why its recipe cannot restart. Raises UsageError."""
    resolved, notice = run_request.resolved(request, config)
    if resolved.until_solved or resolved.restarts:
        budget.check(replace(resolved, preset=None, config=config))
    return resolved, notice


def _limit(within: Within | None, config: Config, cost: Cost, caps: Caps) -> Within:
    """Return the limit of training until solved; `cost` is one attempt's. Raises ApiError if the limit is too high."""
    limit = limited(within, Within(caps.hours * 3600, caps.epochs))
    hours = 0 if limit.epochs is None else cost.seconds * limit.epochs / config.train.epochs / 3600
    if limit.seconds is None and hours > caps.hours:
        why = f"{limit} take about {hours:.0f} hours, but this server allows {caps.hours:g}"
        raise over("time", why, "a smaller limit `within`")
    return limit


def limited(within: Within | None, most: Within) -> Within:
    """Return `within`, a limit of training until solved, or `most` if None. Raises ApiError if it exceeds `most`."""
    limit, shorter = within or most, "a smaller limit `within`"
    if limit.seconds is not None and most.seconds is not None and limit.seconds > most.seconds:
        raise over("time", f"Expected at most {Within(most.seconds)} on this server, got {limit}", shorter)
    if limit.epochs is not None and most.epochs is not None and limit.epochs > most.epochs:
        raise over("epochs", f"Expected at most {most.epochs} epochs on this server, got {limit}", shorter)
    return limit


def over(quantity: str, why: str, advice: str) -> ApiError:
    """Return the error for a `quantity`, such as `memory`, above its limit, with the message `WHY: use ADVICE.`"""
    return ApiError(422, f"too_much_{quantity}", f"{one_sentence(why)}: use {advice}.")


def _check_grid(request: TrainRequest) -> None:
    """Raise UsageError for an image grid above MAX_CELLS, since images are scaled before the job's cost is known."""
    base, fields = base_of(request).task, request.set.get("task")
    task = {"height": base.height, "width": base.width}
    sides = [(task | (fields if isinstance(fields, dict) else {}))[name] for name in task]
    # `isinstance` would accept True. Other types are refused later, when the configuration is built.
    if all(type(side) is int for side in sides) and sides[0] * sides[1] > MAX_CELLS:
        raise UsageError(f"An image must have at most {MAX_CELLS} cells: give a smaller task.height or task.width.")


def draws_samples(request: JobRequest) -> bool:
    """Return whether a request trains a task in Python, whose samples are generated while the request is checked."""
    return registered.is_task(request.preset or "") or bool(
        isinstance(request.config, Config) and request.config.plugin.name
    )


def _check_samples(request: TrainRequest) -> None:
    data = request.set.get("data")
    counts = [data.get("samples") if isinstance(data, dict) else None]
    counts += [request.config.data.samples] if isinstance(request.config, Config) else []
    # `type`, not `isinstance`, as in `_check_grid`.
    if any(type(count) is int and count > MOST_SAMPLES for count in counts):
        raise UsageError(f"data.samples must be at most {MOST_SAMPLES} on this server: give a smaller number.")


def without_paths(error: Exception, uploads: Mapping[str, Path]) -> str:
    """Return the message of `error` without the server's paths; uploaded files are named by their form field."""
    text = str(error)
    for name, path in uploads.items():
        text = text.replace(str(path), f"The file {name}" if text.startswith(str(path)) else f"the file {name}")
    return one_sentence(text)


def shown_target(config: Config) -> dict[str, Any] | None:
    """Return the colours of the target's cells with its width and height, or None for a rule."""
    target = job.target(config.task)
    if target is None:
        return None
    rgb = plots.colors(target[..., : text_picture.MAX_BITS].astype(np.uint8))
    return {"width": config.task.width, "height": config.task.height, "rgb": rgb.tolist()}
