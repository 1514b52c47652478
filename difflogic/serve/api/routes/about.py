"""Routes that list devices, presets, fields and formats, and the queue, tags and owners of all jobs."""

import contextlib
import dataclasses
import functools
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_origin

from fastapi import APIRouter, Query

from difflogic.config import agent_presets, registered
from difflogic.config import presets as known
from difflogic.config.choices import EXPORTS, RECIPES
from difflogic.config.fields import Table, leaves
from difflogic.config.policy import AgentConfig
from difflogic.config.request import SweepRequest, options
from difflogic.config.schema import Config
from difflogic.devices.cost import cost_of
from difflogic.serve.api.agents import check_agents
from difflogic.serve.api.context import ALWAYS, CurrentCaller, ServiceContext, errors, reply
from difflogic.serve.api.replies import DeviceList, FieldList, FormatList, OwnerList, PresetList, QueueReply, TagList
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.words import turn_words
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import ID, JobRequest
from difflogic.system.memory import free_memory, physical_memory

router = APIRouter()

KINDS = {bool: "boolean", int: "integer", float: "number", str: "text"}
"""Mapping from Python types of fields to the kinds shown to users; fields of other types are lists."""


@router.get("/devices", tags=["server"], response_model=DeviceList, responses=errors(*ALWAYS))
def devices(context: ServiceContext, caller: CurrentCaller) -> Any:
    """List the workers with their devices and jobs."""
    running = {job.id for job in context.store.jobs(caller.sees, 10_000, status="running")}
    workers = context.store.workers()
    entries = [vars(worker) | {"job": worker.job if worker.job in running else None} for worker in workers]
    memory = {"memory": physical_memory(), "free_memory": free_memory()}
    return reply({"devices": entries, "now": context.store.clock(), **memory})


@router.get("/presets", tags=["server"], response_model=PresetList, responses=errors(*ALWAYS))
def presets(context: ServiceContext, _caller: CurrentCaller) -> Any:
    """List the presets that can be trained."""
    return reply({"presets": [*_presets(context.settings.tasks), *_agents(context.settings)]})


@functools.cache
def _presets(tasks: frozenset[str]) -> list[dict[str, Any]]:
    all_presets = [(name, preset.about, preset.make()) for name, preset in known.PRESETS.items()]
    all_presets += [(name, task.about, task.config()) for name in sorted(tasks) for task in [registered.find(name)]]
    return [{"name": name, "about": about, "config": config.to_dict(), "gates": config.model.gates,
             "recipes": list(RECIPES), "cost": cost_of(config, 1).to_dict()}
            for name, about, config in all_presets]  # fmt: skip


def _agents(settings: ServeSettings) -> Iterator[dict[str, Any]]:
    """Yield the presets of agents whose environments are allowed and installed."""
    for name, config in agent_presets.PRESETS.items():
        with contextlib.suppress(ApiError):
            cost = check_agents(config, 1, 0, settings)
            gates = f"{config.gate_count} gates" if config.gate_count else "a dense network"
            about = f"acts in {config.environment.id}, by {gates}{' that remember' * bool(config.gates.memory)}"
            yield {"name": name, "about": about, "config": config.to_dict(), "gates": config.gate_count,
                   "recipes": [], "cost": cost.to_dict()}  # fmt: skip


@router.get("/fields", tags=["server"], response_model=FieldList, responses=errors(*ALWAYS))
def fields(
    context: ServiceContext,
    _caller: CurrentCaller,
    of: Annotated[
        Literal["automata", "agents", "request"],
        Query(description="Kind of configuration, or the request that has one."),
    ] = "automata",
) -> Any:
    """List the fields of a configuration, or the options of a request, with their meanings and allowed values."""
    if of == "request":
        return reply({"fields": _options(JobRequest)})
    document = Config if of == "automata" else AgentConfig
    # The fields of a table belong to a custom task.
    listed = [_field(document, *leaf) for leaf in leaves(document) if leaf[1] is not Table]
    for field in listed:
        if field["path"] == "environment.id":
            field["names"] = sorted(context.settings.environments)
    return reply({"fields": listed})


def _options(part: type, path: str = "") -> list[dict[str, Any]]:
    """Return the options of a request and of its nested requests that are sent as JSON; `path` is their prefix."""
    listed = []
    for option in options(part):
        if option.kind is SweepRequest:
            listed += _options(SweepRequest, f"{option.name}.")
        elif not (option.is_file or option.is_local):
            limits = option.sent or option.limits
            kind = KINDS.get(option.kind, "list" if get_origin(option.kind) is tuple else "text")
            listed.append({
                "path": path + option.name, "section": option.group, "about": option.about + ".",
                "kind": "table" if option.kind is Table else kind, "usual": option.usual_words,
                "limits": limits.words if limits and not limits.names else None,
                "names": [*map(str, limits.names)] if limits else [], "of_agents": option.of_agents,
                "needs": option.needs or option.implies, "excludes": [*option.excludes],
            })  # fmt: skip
    return listed


def _field(document: type, path: str, kind: Any, field: dataclasses.Field[Any]) -> dict[str, Any]:
    limits, about = field.metadata["limits"], field.metadata["about"]
    names = [*map(str, limits.names)] if limits else []
    return {
        "path": path, "section": _section(document, path), "kind": KINDS.get(kind, "list"), "about": about,
        "limits": limits.words if limits and not names else None, "names": names,
    }  # fmt: skip


def _section(inside: type, path: str) -> str:
    """Return the description of the section that contains the field `path` of the configuration class `inside`."""
    about = "In general"
    for name in path.split(".")[:-1]:
        field = next(field for field in dataclasses.fields(inside) if field.name == name)
        about, inside = field.metadata["about"], typing.get_type_hints(inside)[name]
    return about


@router.get("/formats", tags=["server"], response_model=FormatList, responses=errors(*ALWAYS))
def formats(_caller: CurrentCaller) -> Any:
    """List the formats that a circuit can be exported to."""
    return reply({"formats": [{"name": name, "about": about} for name, about in EXPORTS.items()]})


@router.get("/queue", tags=["jobs"], response_model=QueueReply, responses=errors(*ALWAYS))
def queue(
    context: ServiceContext,
    caller: CurrentCaller,
    ids: Annotated[
        str | None, Query(pattern=f"^{ID.pattern}(,{ID.pattern}){{0,199}}$", description="Only these jobs.")
    ] = None,
) -> Any:
    """List your queued jobs, with their positions among the jobs of all owners."""
    turns = [turn for turn in context.turns().values() if caller.sees in (None, turn.owner)]
    wanted = None if ids is None else set(ids.split(","))
    shown = [turn for turn in turns if wanted is None or turn.id in wanted]
    return reply({"waiting": [{"id": turn.id, "turn": turn_words(turn)} for turn in shown]})


@router.get("/tags", tags=["jobs"], response_model=TagList, responses=errors(*ALWAYS))
def tags(context: ServiceContext, caller: CurrentCaller) -> Any:
    """List the tags of your jobs."""
    return reply({"tags": [{"tag": tag, "jobs": jobs} for tag, jobs in context.store.tags(caller.sees).items()]})


@router.get("/owners", tags=["jobs"], response_model=OwnerList, responses=errors(*ALWAYS))
def owners(context: ServiceContext, caller: CurrentCaller) -> Any:
    """Return the number and disk usage of your jobs; for an operator, of each owner's jobs."""
    jobs: dict[str, dict[str, int]] = {caller.owner: {}} | context.store.counts_by_owner(caller.sees)
    used, quota = context.usage.bytes(), context.settings.caps.owner_quota
    return reply({"owners": [{"owner": owner, "jobs": jobs[owner], "bytes": used.get(owner, 0), "quota": quota}
                             for owner in sorted(jobs)]})  # fmt: skip
