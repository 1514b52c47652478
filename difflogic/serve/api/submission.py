"""A request to train becomes a configuration, and that the specification of a job, unless it asks for too much."""

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
from difflogic.devices.cost import Cost, cost_of
from difflogic.errors import FaultyTaskError, LimitError, UsageError
from difflogic.serve.api import pictures
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest, JobSpec, goal_of
from difflogic.train import reach

MAX_CELLS = 1 << 20
"""The most cells of a grid that a picture is put into."""
MOST_SAMPLES = 1 << 16
"""The most samples of a task in Python: they are drawn before the cost of a job is known."""
OF_A_JOB = [each.name for each in options(TrainRequest)
            if each.group in ("run", "until") and each.name not in ("engine", "init_from")]  # fmt: skip
"""Options that a job has as they were asked for; the others are in its configuration, its engine and its source."""


@dataclass(frozen=True)
class Submission:
    """What a request asks for: the configuration, the job that it would be, and its cost."""

    config: Document
    """Of a sweep that of its trials, but for their own values."""
    spec: JobSpec
    cost: Cost
    preview: Callable[[], dict[str, Any]]
    """What would be trained, and what the circuit would see."""


def of_automata(request: JobRequest, uploads: Mapping[str, Path], settings: ServeSettings) -> Submission:
    """Raises ApiError, with one sentence, where the request cannot be met."""
    # Before anything of a task is loaded, which a file that comes with it already asks for.
    check_task(request.preset, settings)
    try:
        for name, path in uploads.items():
            if name != "rule_table":
                pictures.make_plain(path, settings.caps.pixels)
        asked = with_files(request, uploads)
        check_task(asked.config.plugin.name if isinstance(asked.config, Config) else None, settings)
        _check_samples(asked)
        made = configure(asked)
        kept_starts.refuse(made.config, has_samples=asked.data is not None)
        found = reach.notice(made.config)  # it refuses what nothing can reach
        asked, notice = _with_attempts(made.request, made.config)
    except (UsageError, FaultyTaskError, LimitError) as error:
        raise ApiError(422, "invalid_config", without_paths(error, uploads)) from error
    if request.stop_when_solved > request.population:
        words = f"stop_when_solved counts models: expected at most {request.population}, the population."
        raise ApiError(422, "invalid_request", words)
    # The cost is known from the configuration alone, before a circuit is made of it.
    cost = check_cost(made.config, request.population, settings.caps)
    if asked.until_solved:
        asked = replace(asked, within=_limit(asked.within, made.config, cost, settings.caps))

    def more() -> dict[str, Any]:
        # What the request set itself is no news to whoever sent it.
        before, after = by_path(made.base.to_dict()), by_path(made.config.to_dict())
        changed = {path: value for path, value in after.items() if value != before[path]}
        notices = [each for each in (*made.notices, found, notice) if each is not None]
        return {"target": shown_target(made.config), "notices": notices,
                "changed": {path: changed[path] for path in changed if path not in by_path(request.set)}}  # fmt: skip

    asked = replace(asked, stop_when_solved=asked.solved_models)
    return submission(asked, made.config, cost, made.config.model.gates, more)


def submission(
    request: JobRequest, config: Document, cost: Cost, gates: int, more: Callable[[], dict[str, Any]] = dict
) -> Submission:
    """A request that can be met; `more` is what a preview says besides."""
    spec = job_spec(request, config)
    nothing: dict[str, Any] = {"target": None, "changed": {}, "notices": []}
    about = {"config": spec.config, "goal": goal_of(spec.config), "gates": gates, "request": spec.request}
    return Submission(config, spec, cost, lambda: about | {"cost": cost.to_dict()} | nothing | more())


def job_spec(request: JobRequest, config: Document) -> JobSpec:
    """A training or a sweep as the store takes it."""
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
    """Raises ApiError where a preset or a configuration names a task in Python that the operator does not allow."""
    if name and registered.is_task(name) and name not in settings.tasks:
        known = ", ".join(sorted(settings.tasks)) or "none"
        words = (
            f"{one_sentence(name[:100])} is a task in Python, of which this server trains {known}: ask whoever runs it "
            "to allow that one."
        )
        raise ApiError(422, "task", words)


def with_files(request: JobRequest, uploads: Mapping[str, Path]) -> JobRequest:
    """A request with the files that came with it. Raises UsageError."""
    if not uploads:
        return request
    files: dict[str, Any] = dict(uploads)
    if "labels" in files:
        raise UsageError("labels are those of a table of images: give `label` with them.")
    if "start_picture" in files:
        if request.start is not None:
            raise UsageError("start and start_picture are both given: give one of them.")
        files["start"] = str(files.pop("start_picture"))
    if "data" in files:
        files["data"] = dataset.load(files["data"])
    asked = replace(request, **files)
    _check_room(asked)
    return asked


def check_cost(config: Config, population: int, caps: Caps) -> Cost:
    """The cost, where the caps allow it. Raises ApiError with what is too much and how much would do."""
    if config.train.epochs > caps.epochs:
        raise over("epochs", f"{config.train.epochs} epochs were asked for, this server trains at most {caps.epochs}")
    cost = cost_of(config, population)
    check_caps(cost, population, caps)
    return cost


def check_caps(cost: Cost, population: int, caps: Caps) -> None:
    """Raises ApiError with what is too much and how much would do."""
    if population > caps.population:
        raise over("population", f"{population} models were asked for, this server trains at most {caps.population}")
    if cost.memory > caps.memory:
        needed, allowed = (f"{size // 10**6} MB" for size in (cost.memory, caps.memory))
        raise over("memory", f"The job would need {needed} of memory, this server allows {allowed}")
    if cost.seconds > caps.hours * 3600:
        raise over("time", f"The job would take about {cost.seconds // 3600} hours, this server allows {caps.hours:g}")


def _with_attempts(request: JobRequest, config: Config) -> tuple[JobRequest, str | None]:
    """The request with the restarts of its recipe, and what `run_request.resolved` says. Raises UsageError."""
    from difflogic.train import budget, run_request  # with all that trains

    asked, notice = run_request.resolved(request, config)
    if asked.until_solved or asked.restarts:
        budget.check(replace(asked, preset=None, config=config))
    return asked, notice


def _limit(within: Within | None, config: Config, cost: Cost, caps: Caps) -> Within:
    """As `limited`, where epochs without a limit of time cost what they cost: `cost` is that of one attempt."""
    found = limited(within, Within(caps.hours * 3600, caps.epochs))
    hours = 0 if found.epochs is None else cost.seconds * found.epochs / config.train.epochs / 3600
    if found.seconds is None and hours > caps.hours:
        raise over("time", f"{found} would take about {hours:.0f} hours, this server allows {caps.hours:g}")
    return found


def limited(within: Within | None, most: Within) -> Within:
    """Where a training until it is solved ends: as it was asked for, else with the most that the caps allow.

    Raises ApiError for a limit that the caps do not allow.
    """
    found = within or most
    if found.seconds is not None and most.seconds is not None and found.seconds > most.seconds:
        raise over("time", f"{found} were asked for, this server trains at most {Within(most.seconds)}")
    if found.epochs is not None and most.epochs is not None and found.epochs > most.epochs:
        raise over("epochs", f"{found} were asked for, this server trains at most {most.epochs}")
    return found


def over(what: str, words: str) -> ApiError:
    """Return the error where something is too much."""
    advice = "use a smaller grid, batch, circuit, population or fewer epochs"
    return ApiError(422, f"too_much_{what}", f"{one_sentence(words)}: {advice}.")


def _check_room(request: TrainRequest) -> None:
    """A grid is made for a picture before its cost is known: it must not be endless."""
    base = base_of(request).task
    task = {"height": base.height, "width": base.width}
    asked = request.set.get("task")
    sides = [(task | (asked if isinstance(asked, dict) else {}))[name] for name in task]
    # Not `isinstance`, to which True is a number. What is no number at all is refused where the configuration is built.
    if all(type(side) is int for side in sides) and sides[0] * sides[1] > MAX_CELLS:
        raise UsageError(f"A picture is put into at most {MAX_CELLS} cells: give a smaller task.height and task.width.")


def draws_samples(request: JobRequest) -> bool:
    """Whether a request is for a task in Python, of which samples are drawn."""
    named = request.config.plugin.name if isinstance(request.config, Config) else ""
    return registered.is_task(request.preset or "") or bool(named)


def _check_samples(request: TrainRequest) -> None:
    data = request.set.get("data")
    asked = data.get("samples") if isinstance(data, dict) else None
    has = request.config.data.samples if isinstance(request.config, Config) else 0
    # Not `isinstance`, as in `_check_room`.
    if any(type(count) is int and count > MOST_SAMPLES for count in (asked, has)):
        raise UsageError(f"This server draws at most {MOST_SAMPLES} samples of a task: give a smaller data.samples.")


def without_paths(error: Exception, uploads: Mapping[str, Path]) -> str:
    """The words of an error without the server's paths."""
    text = str(error)
    for name, path in uploads.items():
        text = text.replace(str(path), f"The file {name}" if text.startswith(str(path)) else f"the file {name}")
    return one_sentence(text)


def shown_target(config: Config) -> dict[str, Any] | None:
    """The target's cells in colours; None for a rule."""
    from difflogic.core import text_picture
    from difflogic.engine import job
    from difflogic.runs import plots

    target = job.target(config.task)
    if target is None:
        return None
    rgb = plots.colors(target[..., : text_picture.MAX_BITS].astype(np.uint8))
    return {"width": config.task.width, "height": config.task.height, "rgb": rgb.tolist()}
