"""Convert a request to train agents or a classifier to a job within the limits of the server."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from difflogic.config import agent_presets, table
from difflogic.config.agent_presets import PRESETS
from difflogic.config.policy import AgentConfig, ClassifierConfig, PolicyConfig
from difflogic.config.values import Within
from difflogic.devices.cost import Cost
from difflogic.errors import LimitError, MissingPackagesError, UsageError
from difflogic.model import function_json
from difflogic.policies import cost
from difflogic.policies.environments import Spaces, spaces_of
from difflogic.policies.learner import check_stop, require_fit
from difflogic.serve.api import pictures
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.submission import Submission, check_caps, limited, submission, without_paths
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest
from difflogic.train import budget

FASTER = "a smaller circuit or population, or fewer steps"
"""Advice if a training takes too long."""
MOST_ITERATION_S = 60.0
"""Maximum predicted seconds per training iteration, since jobs are saved and stopped only between iterations."""


def asks_for_agents(request: JobRequest) -> bool:
    """Return whether a request names a preset of agents, or contains a configuration of agents."""
    return request.preset in PRESETS or isinstance(request.config, PolicyConfig)


def of_agents(request: JobRequest, uploads: Collection[str], settings: ServeSettings) -> Submission:
    """Return the job for a request to train agents. Raises ApiError if the server cannot run the job."""
    try:
        if uploads:
            raise UsageError(f"`{next(iter(uploads))}` is for automata, but this trains agents: omit it.")
        request.check_kind(of_agents=True)
        if request.preset is not None and request.config is not None:
            raise UsageError("Expected either `preset` or `config`, got both.")
        base = request.config if isinstance(request.config, PolicyConfig) else PRESETS[request.preset or ""]
        config = base.with_(**request.set).require_episodes()
        if request.until_solved:
            request = _until_solved(request, config, settings)
        cost = check_agents(config, request.population, request.stop_when_solved, settings)
    except UsageError as error:
        raise ApiError(422, "invalid_config", one_sentence(str(error))) from error
    return submission(request, config, cost, config.gate_count)


def of_classifier(request: JobRequest, uploads: Mapping[str, Path], settings: ServeSettings) -> Submission:
    """Return the job for a request to train a classifier on the uploaded table `data`. Raises ApiError."""
    described = request.config.table if isinstance(request.config, ClassifierConfig) else None
    label = request.label or (described.label if described else "")
    try:
        if "data" not in uploads or set(uploads) - {"data", "labels"}:
            raise UsageError(
                "A classifier requires its table as the file `data`, and supports no file except `labels`."
            )
        if request.preset or request.until_solved or request.stop_when_solved or request.sweep:
            raise UsageError("Classifiers do not support preset, until_solved, stop_when_solved and sweep: omit them.")
        pictures.make_plain(uploads["data"], settings.caps.pixels, label)
        rows = table.decoded(uploads["data"])
        if described and (rows.sha256 != described.sha256 or described.test >= len(rows)):
            raise UsageError("The rows of `data` do not match the configuration: upload the table that belongs to it.")
        request = replace(request, table=replace(rows, tests=described.test) if described else rows)
        config = cast("ClassifierConfig", agent_presets.configure(request))
    except (UsageError, LimitError) as error:
        raise ApiError(422, "invalid_config", without_paths(error, uploads)) from error
    total, seconds = cost.of_classifier(config, request.population)
    check_caps(total, request.population, settings.caps, FASTER)
    _check_iteration(seconds)
    return submission(request, config, total, config.gate_count)


def _until_solved(request: JobRequest, config: AgentConfig, settings: ServeSettings) -> JobRequest:
    """Return the request to train until solved, with its limit or else the server's. Raises UsageError or ApiError."""
    if request.population > 1 or request.stop_when_solved or request.init_from:
        raise UsageError(
            "`until_solved` trains one seed after the other until one is solved: omit population, stop_when_solved and "
            "init_from."
        )
    budget.check(replace(request, preset=None, config=config))
    within = limited(request.within, Within(settings.caps.hours * 3600))
    return replace(request, stop_when_solved=1, within=within)


def check_agents(config: AgentConfig, population: int, stop_when_solved: int, settings: ServeSettings) -> Cost:
    """Return the cost of training `population` agents. Raises ApiError or UsageError if this is impossible here."""
    check_environment(config, settings)
    try:
        spaces = _spaces(config.environment.id)
    except MissingPackagesError as error:
        message = f"This server cannot create the environment: {one_sentence(str(error))}"
        raise ApiError(422, "missing_extra", message) from error
    require_fit(config, spaces)
    check_stop(config, stop_when_solved, population)
    total = cost.cost_of(config, spaces, population)
    check_caps(total, population, settings.caps, FASTER)
    _check_iteration(cost.iteration_s(config, spaces, population))
    return total


def _check_iteration(seconds: float) -> None:
    """Raise ApiError if an iteration of `seconds` is too long, since jobs are saved only between iterations."""
    if seconds > MOST_ITERATION_S:
        message = (
            f"Expected iterations of at most {MOST_ITERATION_S:.0f} s, since jobs are saved only between iterations, "
            f"got about {seconds:.0f} s: use fewer steps, passes or gates per iteration."
        )
        raise ApiError(422, "too_much_time", message)


def check_environment(config: PolicyConfig, settings: ServeSettings) -> None:
    """Raise ApiError if this server cannot train agents, or does not allow their environment."""
    if not isinstance(config, AgentConfig):
        return
    if find_spec("gymnasium") is None:
        message = "This server cannot train agents: ask its operator to install the extra `rl`."
        raise ApiError(422, "missing_extra", message)
    if config.environment.id not in settings.environments:
        message = (
            f"This server does not allow the environment {one_sentence(config.environment.id)}, only "
            f"{', '.join(sorted(settings.environments))}: ask its operator to allow it."
        )
        raise ApiError(422, "environment", message)


def cost_of_agents(config: PolicyConfig, population: int) -> Cost:
    """Return the cost of training `population` agents. Raises MissingPackagesError if packages are missing."""
    return cost.cost_of(config.require_episodes(), _spaces(config.subject), population)


@cache
def _spaces(identifier: str) -> Spaces:
    return spaces_of(identifier)


def check_controller(run: Path, options: Mapping[str, Any]) -> None:
    """Raise ApiError if a run folder has no controller, or if `options` contains an option for automata only."""
    for name in ("from_start", "size"):
        if options.get(name):
            raise ApiError(
                422, "invalid_request", f"{name} is only for automata, but the job has a controller: omit it."
            )
    if not any((run / name).is_file() for name in (function_json.NAME, function_json.FUNCTION)):
        message = (
            "The job has no controller: expected a completed training of a classifier of gates, or of agents of gates "
            "with discrete actions."
        )
        raise ApiError(409, "no_circuit", message)
