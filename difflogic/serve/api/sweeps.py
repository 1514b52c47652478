"""Convert requests for trainings of automata, agents or classifiers, or for sweeps, to jobs within the limits."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from difflogic.config.customise import recipe_of
from difflogic.config.fields import Table
from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.config.request import SweepRequest, options
from difflogic.config.schema import Config
from difflogic.devices.cost import EVALUATIONS_PER_S, Cost, cost_of
from difflogic.errors import ConfigError, DifflogicError, UsageError
from difflogic.serve.api.agents import asks_for_agents, cost_of_agents, of_agents, of_classifier
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.submission import Submission, check_caps, job_spec, of_automata
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import JobRequest
from difflogic.sweeps import Spec
from difflogic.sweeps.spec import OF_TRIALS

MOST_TRIALS = 10_000
CODE = ("environment.id", "plugin.")
"""Prefixes of the fields that name code, which a sweep may not vary."""
MOST_ENDS = 50
"""Maximum number of values per axis whose costs are compared to find the most expensive."""


def submitted(request: JobRequest, uploads: Mapping[str, Path], settings: ServeSettings) -> Submission:
    """Return the job for a request. Raises ApiError if the server cannot run the job."""
    if request.label or isinstance(request.config, ClassifierConfig):
        return of_classifier(request, uploads, settings)
    if request.sweep is not None:
        return _of_sweep(request, request.sweep, uploads, settings)
    return (of_agents if asks_for_agents(request) else of_automata)(request, uploads, settings)


def _of_sweep(
    request: JobRequest, sweep: SweepRequest, uploads: Mapping[str, Path], settings: ServeSettings
) -> Submission:
    """Return the job for a sweep, with an upper bound on the cost of all trials."""
    defaults = {option.name: option.default for option in options(JobRequest) if option.of_trials}
    own = {name: value for name, value in request.to_dict().items() if name in OF_TRIALS}
    try:
        if not asks_for_agents(request):
            # Each trial applies the recipe itself, before the values of its axes, so the base must not contain it yet.
            defaults["recipe"], own["recipe"] = "paper", recipe_of(request)
        base = submitted(replace(request, sweep=None, set=Table(), **defaults), uploads, settings)
        if request.stop_when_solved or request.init_from:
            raise UsageError("Sweeps do not support `stop_when_solved` and `init_from`: omit them.")
        spec = Spec.of(**sweep.to_dict() | own | {"config": base.config})
        if spec.most > MOST_TRIALS:
            raise UsageError(f"Expected at most {MOST_TRIALS} trials per sweep on this server, got {spec.most}.")
        if code := [axis.path for axis in spec.axes if axis.path.startswith(CODE)]:
            raise UsageError(f"{code[0]} selects code, which a sweep on a server may not vary: omit it.")
        spec = spec.with_(trials=spec.most)
        cost = _cost(spec, request, settings)
    except DifflogicError as error:
        raise ApiError(422, "invalid_config", one_sentence(str(error))) from error
    if spec.method != "grid" and find_spec("optuna") is None:
        message = "This server supports only `method` grid: ask its operator to install the extra `sweep` for others."
        raise ApiError(422, "missing_extra", message)
    job = job_spec(replace(request, name=request.name or f"sweep of {base.spec.name}"), spec)
    about = {"trials": spec.most, "cost": cost.to_dict()}
    return Submission(base.config, job, cost, lambda: base.preview() | about)


def _cost(spec: Spec, request: JobRequest, settings: ServeSettings) -> Cost:
    """Return an upper bound on the cost of all trials: their number times the highest cost. Raises ApiError."""
    longest, largest = (spec.configured(_dearest(spec, part)) for part in ("evaluations", "memory"))
    if request.until_solved:
        limit = request.within
        if limit is None or limit.seconds is None:
            raise UsageError("`until_solved` in a sweep requires `within`, the maximum time of each trial: give it.")
        evaluations = round(limit.seconds * EVALUATIONS_PER_S)
    else:
        evaluations = _of_trial(spec, longest).evaluations
    # Both configurations are also checked as if they were submitted alone, against all limits of this server.
    alone = [JobRequest(config=config, population=spec.asked.population) for config in (longest, largest)]
    cost = Cost(spec.most * evaluations, max(submitted(trial, {}, settings).cost.memory for trial in alone))
    faster = "fewer trials, or a smaller limit `within`" if request.until_solved else "fewer trials or epochs"
    check_caps(cost, spec.asked.population, settings.caps, faster)
    return cost


def _dearest(spec: Spec, part: str) -> dict[str, Any]:
    """Return, for each axis except seeds, the value with the highest cost in `part`, `evaluations` or `memory`."""

    def price(path: str, value: Any) -> int:
        with suppress(ConfigError):  # the value is only valid together with values of other axes
            return int(getattr(_of_trial(spec, spec.configured({path: value})), part))
        return 0

    dearest = {}
    for axis in spec.searched:
        ends = list(axis.values) or [axis.low, axis.high]
        if all(type(end) in (int, float) for end in ends):
            ends = [min(ends), max(ends)]
        dearest[axis.path] = max(ends[:MOST_ENDS], key=partial(price, axis.path))
    return dearest


def _of_trial(spec: Spec, config: Config | PolicyConfig) -> Cost:
    price = cost_of_agents if isinstance(config, PolicyConfig) else cost_of
    return price(config, spec.asked.population)  # type: ignore[arg-type]
