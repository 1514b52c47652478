"""What the server answers as JSON, as the OpenAPI document tells it. Jobs and workers are the store's dataclasses."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from difflogic.serve.api.artefacts import Artefact
from difflogic.serve.api.tokens import Role
from difflogic.serve.api.words import JobReply
from difflogic.serve.store.jobs import Status
from difflogic.serve.store.leases import Worker


class ErrorWords(BaseModel):
    """What was wrong with a request, for programs and for people."""

    code: Annotated[str, Field(description="A short name of the error, for programs.")]
    message: Annotated[str, Field(description="One sentence, for people.")]


class ErrorBody(BaseModel):
    """The body of every answer with a status of 400 and more."""

    error: ErrorWords


class SessionReply(BaseModel):
    """Who is signed in, and how to write with the session."""

    owner: str
    csrf: Annotated[
        str | None, Field(description="The X-CSRF-Token of requests that change something with the session cookie.")
    ]
    roles: Annotated[
        list[Role], Field(description="operator: sees everybody's jobs; priority: may set a priority above 0;")
    ]


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


class Waiting(BaseModel):
    """Where a job stands that waits."""

    id: str
    turn: Annotated[str | None, Field(description="Its position, in words; null: no worker that is there takes it.")]


QueueReply = create_model(
    "QueueReply", __doc__="Where the jobs that wait stand.",
    waiting=Annotated[list[Waiting], Field(description="In the order in which workers start them.")],
)  # fmt: skip


class TagCount(BaseModel):
    """A tag that jobs have."""

    tag: str
    jobs: Annotated[int, Field(description="The number of jobs with it.")]


TagList = create_model("TagList", __doc__="Every tag that jobs have.", tags=list[TagCount])


class OwnerReply(BaseModel):
    """The jobs of an owner, and the space that they take."""

    owner: str
    jobs: Annotated[dict[Status, int], Field(description="The number of jobs by status.")]
    bytes: Annotated[int, Field(description="The size of the jobs' files in bytes, updated every few seconds.")]
    quota: Annotated[int | None, Field(description="The quota in bytes; null: no limit but the disk.")]


OwnerList = create_model(
    "OwnerList", __doc__="The owners who have jobs, by name; yourself always.", owners=list[OwnerReply]
)


class MetricRow(BaseModel):
    """The metrics of one epoch, as in metrics.jsonl; a row of a population has a `seed` too."""

    model_config = ConfigDict(extra="allow")

    epoch: int
    soft_loss: float | None


class AgentRow(BaseModel):
    """The metrics of agents after an iteration, as in metrics.jsonl."""

    model_config = ConfigDict(extra="allow")

    steps: Annotated[int, Field(description="Environment steps so far, which count as epochs.")]
    mean_return: float | None
    score: Annotated[float | None, Field(description="The mean return of an evaluation, where there was one.")]


class MetricRows(BaseModel):
    """Rows in the order of their epochs, in a population those of one epoch in the order of seeds."""

    rows: list[MetricRow | AgentRow]
    next: Annotated[int | None, Field(description="The value of `after` for the next request; null: no more rows yet.")]


class Comparison(BaseModel):
    """Rows of several jobs, thinned to about 1000 epochs each; more of those with an evaluation stay."""

    jobs: dict[str, list[MetricRow | AgentRow]]


class GateLayer(BaseModel):
    """How many gates of one layer are of each kind."""

    name: str
    counts: Annotated[list[int], Field(min_length=16, max_length=16, description="A count for each gate.")]


class GateEntry(BaseModel):
    """The most probable gates at an evaluation, layer by layer."""

    epoch: int
    layers: list[GateLayer]


class GateCounts(BaseModel):
    """What the gates became, evaluation by evaluation."""

    names: Annotated[list[str], Field(min_length=16, max_length=16)]
    history: Annotated[list[GateEntry], Field(description="By epoch, thinned to at most 200.")]


LogReply = create_model("LogReply", __doc__="The end of what the job's workers wrote.", text=str)
FileList = create_model("FileList", __doc__="The files of a job, by name.", files=list[Artefact])


class DeviceList(BaseModel):
    """The workers, and what the machine of the server has."""

    devices: list[Worker]
    now: Annotated[float, Field(description="Seconds since 1970 by the server's clock, as `seen`.")]
    memory: Annotated[int | None, Field(description="Memory of the machine in bytes; null: unknown.")]
    free_memory: int | None


class PresetReply(BaseModel):
    """A preset and its size."""

    name: str
    about: str
    config: dict[str, Any]
    gates: int
    recipes: Annotated[list[str], Field(description="The recipes that a job may use; the first is the default.")]
    cost: CostReply


PresetList = create_model("PresetList", __doc__="All presets that can be trained by name.", presets=list[PresetReply])


class FieldReply(BaseModel):
    """A field of a configuration, or an option of a request."""

    path: Annotated[
        str, Field(description="The field's path, as `set` of a job takes it: optimizer.lr. Of an option its name.")
    ]
    section: Annotated[str, Field(description="What its section means; the group of an option.")]
    kind: Literal["boolean", "integer", "number", "text", "list", "table"]
    about: Annotated[str, Field(description="What it means.")]
    limits: Annotated[str | None, Field(description="The values it takes, in words.")]
    names: Annotated[list[str], Field(description="The words it takes; empty: any value in the limits.")]
    usual: Annotated[str | None, Field(description="What holds where an option is left out.")] = None
    of_agents: Annotated[bool, Field(description="Whether an option means something where agents are trained.")] = True
    needs: Annotated[str | None, Field(description="The option without which it means nothing.")] = None
    excludes: Annotated[list[str], Field(description="Options that do not go together with it.")] = []


FieldList = create_model(
    "FieldList", __doc__="Every field of a configuration, or every option of a request.", fields=list[FieldReply]
)


class FormatReply(BaseModel):
    """A format that a circuit can be exported to."""

    name: str
    about: str


FormatList = create_model(
    "FormatList", __doc__="All formats that a circuit can be exported to.", formats=list[FormatReply]
)
Health = create_model("Health", __doc__="The server is alive.", status=Literal["alive"])
Readiness = create_model("Readiness", __doc__="Jobs are taken.", status=Literal["ready"], workers=int)
