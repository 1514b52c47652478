"""What the server has: devices, presets, fields, formats, and over all jobs the queue, tags and owners."""

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
"""The kind of a field that is no list, by its Python type."""


@router.get("/devices", tags=["server"], response_model=DeviceList, responses=errors(*ALWAYS))
def devices(context: ServiceContext, caller: CurrentCaller) -> Any:
    """The workers: what they compute on, and what they do."""
    running = {each.id for each in context.store.jobs(caller.sees, 10_000, status="running")}
    workers = [vars(each) | {"job": each.job if each.job in running else None} for each in context.store.workers()]
    memory = {"memory": physical_memory(), "free_memory": free_memory()}
    return reply({"devices": workers, "now": context.store.clock(), **memory})


@router.get("/presets", tags=["server"], response_model=PresetList, responses=errors(*ALWAYS))
def presets(context: ServiceContext, _caller: CurrentCaller) -> Any:
    """What can be trained by name."""
    return reply({"presets": [*_presets(context.settings.tasks), *_agents(context.settings)]})


@functools.cache
def _presets(tasks: frozenset[str]) -> list[dict[str, Any]]:
    found, made = [], [(name, preset.about, preset.make()) for name, preset in known.PRESETS.items()]
    made += [(name, own.about, own.config()) for name in sorted(tasks) for own in [registered.find(name)]]
    for name, about, config in made:
        found.append({"name": name, "about": about, "config": config.to_dict(), "gates": config.model.gates,
                      "recipes": list(RECIPES), "cost": cost_of(config, 1).to_dict()})  # fmt: skip
    return found


def _agents(settings: ServeSettings) -> Iterator[dict[str, Any]]:
    """The presets of agents that this server can train: their environments are allowed and installed."""
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
        Query(description="What the configuration is of, or the request that has one."),
    ] = "automata",
) -> Any:
    """The fields of a configuration, or the options of a request: what each is for, and which values it takes."""
    if of == "request":
        return reply({"fields": _options(JobRequest)})
    document = Config if of == "automata" else AgentConfig
    # Those of a table are a task's own.
    found = [_field(document, *each) for each in leaves(document) if each[1] is not Table]
    for each in found:
        if each["path"] == "environment.id":
            each["names"] = sorted(context.settings.environments)
    return reply({"fields": found})


def _options(part: type, path: str = "") -> list[dict[str, Any]]:
    """Those of a request and of the parts inside it that are sent as JSON."""
    found = []
    for each in options(part):
        if each.kind is SweepRequest:
            found += _options(SweepRequest, f"{each.name}.")
        elif not (each.brought or each.here):
            limits = each.sent or each.limits
            kind = "table" if each.kind is Table else "list" if get_origin(each.kind) is tuple else KINDS.get(each.kind)
            found.append({
                "path": path + each.name, "section": each.group, "kind": kind or "text", "about": each.about + ".",
                "limits": limits.words if limits and not limits.names else None, "usual": each.usual_words,
                "names": [*map(str, limits.names)] if limits else [], "of_agents": each.of_agents,
                "needs": each.needs or each.implies, "excludes": [*each.excludes],
            })  # fmt: skip
    return found


def _field(document: type, path: str, kind: Any, field: dataclasses.Field[Any]) -> dict[str, Any]:
    limits, about = field.metadata["limits"], field.metadata["about"]
    names = [*map(str, limits.names)] if limits else []
    return {
        "path": path, "section": _section(document, path), "kind": KINDS.get(kind, "list"), "about": about,
        "limits": limits.words if limits and not names else None, "names": names,
    }  # fmt: skip


def _section(inside: type, path: str) -> str:
    """What the section of a field is for."""
    about = "In general"
    for name in path.split(".")[:-1]:
        field = next(each for each in dataclasses.fields(inside) if each.name == name)
        about, inside = field.metadata["about"], typing.get_type_hints(inside)[name]
    return about


@router.get("/formats", tags=["server"], response_model=FormatList, responses=errors(*ALWAYS))
def formats(_caller: CurrentCaller) -> Any:
    """What a circuit can be exported to."""
    return reply({"formats": [{"name": name, "about": about} for name, about in EXPORTS.items()]})


@router.get("/queue", tags=["jobs"], response_model=QueueReply, responses=errors(*ALWAYS))
def queue(
    context: ServiceContext,
    caller: CurrentCaller,
    ids: Annotated[
        str | None, Query(pattern=f"^{ID.pattern}(,{ID.pattern}){{0,199}}$", description="Only these jobs.")
    ] = None,
) -> Any:
    """Where your jobs that wait stand: their turns among everybody's."""
    wanted = None if ids is None else ids.split(",")
    turns = context.turns().values()
    shown = [each for each in turns if caller.sees in (None, each.owner) and (wanted is None or each.id in wanted)]
    return reply({"waiting": [{"id": each.id, "turn": turn_words(each)} for each in shown]})


@router.get("/tags", tags=["jobs"], response_model=TagList, responses=errors(*ALWAYS))
def tags(context: ServiceContext, caller: CurrentCaller) -> Any:
    """The tags that your jobs have, by name."""
    return reply({"tags": [{"tag": tag, "jobs": jobs} for tag, jobs in context.store.tags(caller.sees).items()]})


@router.get("/owners", tags=["jobs"], response_model=OwnerList, responses=errors(*ALWAYS))
def owners(context: ServiceContext, caller: CurrentCaller) -> Any:
    """How many jobs you have and what they take; for an operator those of everybody who has jobs."""
    jobs: dict[str, dict[str, int]] = {caller.owner: {}} | context.store.counts_by_owner(caller.sees)
    taken, quota = context.usage.bytes(), context.settings.caps.owner_quota
    found = [{"owner": each, "jobs": jobs[each], "bytes": taken.get(each, 0), "quota": quota} for each in sorted(jobs)]
    return reply({"owners": found})
