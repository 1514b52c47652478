"""What goes in and out as JSON, as the OpenAPI document tells it. Jobs and workers are the store's own dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Annotated, Any, get_origin

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from difflogic.config.fields import Table, plain
from difflogic.config.limits import Limits
from difflogic.config.request import SweepRequest, options
from difflogic.serve.api.bodies import FILES
from difflogic.serve.api.tokens import Role
from difflogic.serve.api.words import JobReply
from difflogic.serve.store.jobs import JobRequest

NO_LIMITS = Limits("anything", lambda _: True)


class ErrorWords(BaseModel):
    """What was wrong with a request, for programs and for people."""

    code: Annotated[str, Field(description="A short name of the error, for programs.")]
    message: Annotated[str, Field(description="One sentence, for people.")]


class ErrorBody(BaseModel):
    """The body of every answer with a status of 400 and more."""

    error: ErrorWords


class SignIn(BaseModel):
    """The token to sign in with, one of the server's."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SessionReply(BaseModel):
    """Who is signed in, and how to write with the session."""

    owner: str
    csrf: Annotated[
        str | None, Field(description="The X-CSRF-Token of requests that change something with the session cookie.")
    ]
    roles: Annotated[
        list[Role],
        Field(description="operator: sees everybody's jobs; priority: may set a priority above 0;"),
    ]


_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", object: "object", Table: "object"}


def schema_of(part: type) -> dict[str, Any]:
    """A request, or a part of one, in JSON Schema."""
    properties, required = {}, []
    for each in options(part):
        if each.brought or each.here:
            continue
        told: dict[str, Any] = {"description": each.words}
        if issubclass(kind := get_origin(each.kind) or each.kind, SweepRequest):
            found = schema_of(kind)
        else:
            found = {"type": _TYPES.get(kind, "array" if kind is tuple else "object" if kind is Mapping else "string")}
            found |= (each.sent or each.limits or NO_LIMITS).schema
        if each.default is None:
            found = {"anyOf": [found, {"type": "null"}]}
        if each.default is MISSING:
            required.append(each.name)
        else:
            told["default"] = plain(each.default)
        properties[each.name] = found | told
    about = (part.__doc__ or "").partition("\n")[0]
    return {"type": "object", "description": about, "properties": properties, "required": required,
            "additionalProperties": False}  # fmt: skip


def job_body() -> dict[str, Any]:
    """`openapi_extra` of an address that takes a job as JSON, or as a form with files."""
    # FastAPI reads either JSON or a form. This address takes both, so that its body is described by hand.
    job = schema_of(JobRequest)
    files = {name: {"type": "string", "format": "binary"} for name in FILES}
    form = {"type": "object", "properties": {"job": job, **files}, "required": ["job"], "additionalProperties": False}
    content = {
        "application/json": {"schema": job},
        "multipart/form-data": {"schema": form, "encoding": {"job": {"contentType": "application/json"}}},
    }
    return {"requestBody": {"required": True, "content": content}}


def action_body(part: type) -> dict[str, Any]:
    """`openapi_extra` of an address that makes a job of another one."""
    return {"requestBody": {"required": False, "content": {"application/json": {"schema": schema_of(part)}}}}


class TargetPicture(BaseModel):
    """The target as colours, as the circuit should grow it."""

    width: int
    height: int
    rgb: Annotated[list[list[tuple[int, int, int]]], Field(description="Rows of cells, 0 to 255.")]


class CostReply(BaseModel):
    """What a training takes, predicted from its configuration alone."""

    evaluations: Annotated[int, Field(description="Gate evaluations in the forward passes of all epochs.")]
    memory: Annotated[int, Field(description="The memory that training takes, in bytes.")]
    seconds: Annotated[int, Field(description="The time that training takes on two cores; a GPU is faster.")]


class PreviewReply(BaseModel):
    """What a job would train, before it is submitted."""

    config: dict[str, Any]
    goal: Annotated[int, Field(description="Epochs, environment steps, or trials of a sweep.")]
    gates: int
    target: Annotated[TargetPicture | None, Field(description="null where a rule is learned.")]
    changed: Annotated[
        dict[str, Any], Field(description="Fields that the target, rule, start or recipe changed, by path.")
    ]
    request: Annotated[
        dict[str, Any], Field(description="How many models are trained, and until when, as a job has it.")
    ]
    trials: Annotated[int | None, Field(description="The most trials of a sweep, which the cost counts.")] = None
    notices: Annotated[list[str], Field(description="Warnings to read before this is trained.")]
    cost: CostReply


class JobList(BaseModel):
    """Some jobs, the newest first."""

    jobs: list[JobReply]
    next: Annotated[int | None, Field(description="`before` of the next page; null on the last.")]
