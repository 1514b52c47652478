"""What goes in and out as JSON, as the OpenAPI document tells it. Jobs and workers are the store's own dataclasses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from difflogic.circuits.export.formats import FORMATS
from difflogic.config.agent_presets import PRESETS as AGENTS
from difflogic.config.choices import METHODS, METRICS, RECIPES
from difflogic.config.presets import PRESETS
from difflogic.config.task import STARTS
from difflogic.serve.api.bodies import FILES
from difflogic.serve.api.tokens import Role
from difflogic.serve.store.jobs import ID, MOST_TAGS, PRIORITIES, TAG, JobRecord

MOST_TRIALS = 10_000
JobId = Annotated[str, StringConstraints(pattern=f"^{ID.pattern}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f/\\]+$")]
Tag = Annotated[str, StringConstraints(pattern=f"^{TAG.pattern}$")]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), AfterValidator(lambda tags: list(dict.fromkeys(tags)))]
Within = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Priority = Annotated[int, Field(ge=PRIORITIES[0], le=PRIORITIES[-1])]


def _one_of(names: Iterable[str]) -> Any:
    """The field of a text that is one of these names."""
    # Not a Literal: the names are only known when the program runs. The pattern refuses others, and the enum shows them
    # in the document.
    known: list[JsonValue] = [*names]
    return Field(pattern=f"^({'|'.join(map(str, known))})$", json_schema_extra={"enum": known})


Format = Annotated[str, _one_of(FORMATS)]
Start = Annotated[str, _one_of(name for name in STARTS if name != "picture")]
Recipe = Annotated[str, _one_of(RECIPES)]


# A misspelled field would be ignored otherwise, and "1000" taken for 1000: whoever sends a request learns of both.
class Strict(BaseModel):
    """A request: unknown fields are refused, and no type is guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ErrorWords(BaseModel):
    """What was wrong with a request, for programs and for people."""

    code: Annotated[str, Field(description="A short name of the error, for programs.")]
    message: Annotated[str, Field(description="One sentence, for people.")]


class ErrorBody(BaseModel):
    """The body of every answer with a status of 400 and more."""

    error: ErrorWords


class SignIn(Strict):
    """The token to sign in with, one of the server's."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SessionReply(BaseModel):
    """Who is signed in, and how to write with the session."""

    owner: str
    csrf: Annotated[
        str | None, Field(description="The X-CSRF-Token of requests that change something with the session cookie.")
    ]
    roles: Annotated[
        list[Role],
        Field(
            description="operator: sees everybody's jobs; priority: may set a priority above 0; worker: trains jobs."
        ),
    ]


class SweepRequest(Strict):
    """Many trials that differ in some fields, as `difflogic sweep` has them."""

    over: Annotated[
        dict[str, str | list[Any]],
        Field(
            min_length=1,
            max_length=20,
            description='Values by fields: {"optimizer.lr": "0.02:0.2:log", "model.kernels": [4, 8], "seed": "0..3"}.',
        ),
    ]
    metric: Annotated[
        Annotated[str, _one_of(METRICS)] | None, Field(description="The metric that compares trials.")
    ] = None
    method: Annotated[Annotated[str, _one_of(METHODS)] | None, Field(description="How trials are chosen.")] = None
    trials: Annotated[int | None, Field(ge=1, le=MOST_TRIALS, description="The number of trials [the whole grid].")] = (
        None
    )
    sampler_seed: Annotated[int, Field(ge=0, lt=2**32, description="The seed of all random choices of the sweep.")] = 0
    ahead: Annotated[
        int, Field(ge=1, le=1000, description="Trials that are started before the first result is known.")
    ] = 8


class JobRequest(Strict):
    """What to train: a preset or a whole configuration, with another target or start, and fields by name."""

    kind: Literal["train"] = "train"
    name: Annotated[Name | None, Field(description="The job's name [the configuration's].")] = None
    preset: Annotated[
        str | None,
        Field(
            max_length=100,
            description="A preset of automata or agents. Without it, give `config`.",
            json_schema_extra={"enum": [*PRESETS, *AGENTS, None]},
        ),
    ] = None
    config: Annotated[dict[str, Any] | None, Field(description="A whole configuration, as a job shows it.")] = None
    set: Annotated[
        dict[str, Any], Field(description='Fields of the configuration: {"optimizer.lr": 0.05}.', max_length=100)
    ] = {}
    rule: Annotated[
        str | None, Field(max_length=200, description="B3/S23, B2/S34H, B13/S01V, 110, or 128 hexadecimal digits.")
    ] = None
    recipe: Annotated[
        Recipe | None,
        Field(description="Settings that make training succeed more often. Fields in `set` override them."),
    ] = None
    start: Annotated[Start | None, Field(description="What each sample starts from.")] = None
    size: Annotated[
        str | None,
        Field(pattern="^[0-9]{1,3}x[0-9]{1,3}$", description="WIDTHxHEIGHT in cells that pictures are scaled down to."),
    ] = None
    colors: Annotated[Literal[2, 8, 64] | None, Field(description="The number of colours of the target.")] = None
    threshold: Annotated[
        float | None,
        Field(
            ge=0, lt=1, strict=False, allow_inf_nan=False, description="A bit of a picture is 1 above this brightness."
        ),
    ] = None
    padding: Annotated[int, Field(ge=0, le=64, description="Empty cells on each side of a target.")] = 0
    init_from: Annotated[
        JobId | None, Field(description="One of your trainings: start from its circuit and keep its wiring.")
    ] = None
    engine: Annotated[str, Field(pattern="^(auto|cpu|reference|gpu(:[0-9]{1,3})?)$", description="The engine.")] = (
        "auto"
    )
    population: Annotated[int, Field(ge=1, description="Seeds trained at once.")] = 1
    stop_when_solved: Annotated[int, Field(ge=0, description="End when this many models are solved; 0: never.")] = 0
    restarts: Annotated[
        int | None,
        Field(
            ge=0,
            description="Restarts with different wiring when a run stalls, at most; all attempts share the epochs. "
            "0: never [the recipe's number].",
        ),
    ] = None
    until_solved: Annotated[
        bool,
        Field(description="Restart until a circuit is right on fresh starts, after more steps and on a larger grid."),
    ] = False
    within: Annotated[
        Within | None,
        Field(
            description="The limit of `until_solved`: 60s, 5m or 2h of training, or 2000 epochs of all attempts "
            "together [the server's limit]."
        ),
    ] = None
    sweep: Annotated[
        SweepRequest | None, Field(description="Train many times, with different values in some fields.")
    ] = None
    priority: Annotated[Priority, Field(description="Jobs with a higher priority start first.")] = 0
    tags: Annotated[Tags, Field(description="Words to search by.")] = []


def job_body() -> dict[str, Any]:
    """`openapi_extra` of an address that takes a job as JSON, or as a form with files."""
    # FastAPI reads either JSON or a form. This address takes both, so that its body is described by hand.
    job = JobRequest.model_json_schema()
    # In its place: what stands inside a body has no definitions of its own to refer to.
    job["properties"]["sweep"]["anyOf"][0] = job.pop("$defs")["SweepRequest"]
    files = {name: {"type": "string", "format": "binary"} for name in FILES}
    form = {"type": "object", "properties": {"job": job, **files}, "required": ["job"], "additionalProperties": False}
    content = {
        "application/json": {"schema": job},
        "multipart/form-data": {"schema": form, "encoding": {"job": {"contentType": "application/json"}}},
    }
    return {"requestBody": {"required": True, "content": content}}


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
    epochs: int
    gates: int
    target: Annotated[TargetPicture | None, Field(description="null where a rule is learned.")]
    changed: Annotated[
        dict[str, Any], Field(description="Fields that the target, rule, start or recipe changed, by path.")
    ]
    restarts: Annotated[int, Field(description="The most restarts when training stalls.")]
    within: Annotated[str | None, Field(description="The limit of a training until solved; null for others.")]
    trials: Annotated[int | None, Field(description="The most trials of a sweep, which the cost counts.")] = None
    notices: Annotated[list[str], Field(description="Warnings to read before this is trained.")]
    cost: CostReply


class JobList(BaseModel):
    """Some jobs, the newest first."""

    jobs: list[JobRecord]
    next: Annotated[int | None, Field(description="`before` of the next page; null on the last.")]


class Edit(Strict):
    """The changes to make to a job; what is left out stays."""

    name: Name | None = None
    priority: Priority | None = None
    tags: Tags | None = None


class HardenRequest(Strict):
    """How a job should settle the undecided gates of a circuit."""

    search: Annotated[
        bool, Field(description="Search the hard circuit instead, one gate at a time, without gradients.")
    ] = False
    epochs: Annotated[int | None, Field(ge=1, description="Epochs of the hardening [a quarter of the run's].")] = None


class SimplifyRequest(Strict):
    """How a job should make the circuit smaller."""

    from_start: Annotated[
        bool, Field(description="Only keep the behaviour from the task's start, on any grid and for ever.")
    ] = False
    size: Annotated[
        str | None,
        Field(
            pattern="^[0-9]{1,5}x[0-9]{1,5}$",
            description="With from_start: only on a grid of WIDTHxHEIGHT cells that are all updated in each step.",
        ),
    ] = None
    task: Annotated[bool, Field(description="Only keep the trained behaviour.")] = False


class ProveRequest(Strict):
    """What a job should prove: of a training what fits its task, of a simplification that it changed nothing."""

    every_start: Annotated[
        bool, Field(description="Of a training, that every start ends in the target, and not the drawn or only one.")
    ] = False


class ExportRequest(Strict):
    """The formats that a job should export."""

    formats: Annotated[list[Format], Field(min_length=1, max_length=len(FORMATS))]


class EvaluateRequest(Strict):
    """How thoroughly a job should test the circuit."""

    quick: Annotated[bool, Field(description="Fewer starts, and long tests of a tenth of the length.")] = True
