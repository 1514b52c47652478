"""Define the server's JSON replies for the OpenAPI document; jobs and workers are dataclasses of the store."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from difflogic.serve.api.artefacts import Artefact
from difflogic.serve.api.tokens import Role
from difflogic.serve.api.words import JobReply
from difflogic.serve.store.jobs import Status
from difflogic.serve.store.leases import Worker


class ErrorWords(BaseModel):
    """Error of a request, with a machine-readable code and a message."""

    code: Annotated[str, Field(description="A short name of the error, for programs.")]
    message: Annotated[str, Field(description="One sentence, for people.")]


class ErrorBody(BaseModel):
    """Body of every response with a status of 400 or more."""

    error: ErrorWords


class SessionReply(BaseModel):
    """Signed-in owner, and the CSRF token for requests that change something."""

    owner: str
    csrf: Annotated[
        str | None, Field(description="The X-CSRF-Token of requests that change something with the session cookie.")
    ]
    roles: Annotated[
        list[Role], Field(description="operator: sees all owners' jobs; priority: may set a priority above 0.")
    ]


class TargetPicture(BaseModel):
    """Colours of the target's cells."""

    width: int
    height: int
    rgb: Annotated[list[list[tuple[int, int, int]]], Field(description="Rows of cells, 0 to 255.")]


class CostReply(BaseModel):
    """Cost of a training, predicted from its configuration."""

    evaluations: Annotated[int, Field(description="Gate evaluations in the forward passes of all epochs.")]
    memory: Annotated[int, Field(description="Memory of the training in bytes.")]
    seconds: Annotated[int, Field(description="Time of the training on two cores; a GPU is faster.")]


class PreviewReply(BaseModel):
    """Preview of a job before it is submitted."""

    config: dict[str, Any]
    goal: Annotated[int, Field(description="Epochs, environment steps, or trials of a sweep.")]
    gates: int
    target: Annotated[TargetPicture | None, Field(description="null for a rule.")]
    changed: Annotated[
        dict[str, Any], Field(description="Fields that the target, rule, start or recipe changed, by path.")
    ]
    request: Annotated[dict[str, Any], Field(description="Options of the population and the end of training.")]
    trials: Annotated[int | None, Field(description="The most trials of a sweep, all of which the cost counts.")] = None
    notices: Annotated[list[str], Field(description="Warnings about the training.")]
    cost: CostReply


class JobList(BaseModel):
    """Page of jobs, by default the newest first."""

    jobs: list[JobReply]
    next: Annotated[int | None, Field(description="`before` of the next page; null on the last.")]


class Waiting(BaseModel):
    """Job in the queue."""

    id: str
    turn: Annotated[str | None, Field(description="Its position, in words; null: no present worker takes it.")]


QueueReply = create_model(
    "QueueReply", __doc__="Jobs in the queue.",
    waiting=Annotated[list[Waiting], Field(description="Jobs in the order in which workers start them.")],
)  # fmt: skip


class TagCount(BaseModel):
    """Tag, and the number of jobs that have the tag."""

    tag: str
    jobs: Annotated[int, Field(description="Number of jobs with it.")]


TagList = create_model("TagList", __doc__="All tags of jobs.", tags=list[TagCount])


class OwnerReply(BaseModel):
    """Jobs of an owner, and their disk space."""

    owner: str
    jobs: Annotated[dict[Status, int], Field(description="Number of jobs by status.")]
    bytes: Annotated[int, Field(description="Size of the jobs' files in bytes, updated every few seconds.")]
    quota: Annotated[int | None, Field(description="Quota in bytes; null: no limit but the disk.")]


OwnerList = create_model("OwnerList", __doc__="Owners of jobs by name, and always the caller.", owners=list[OwnerReply])


class MetricRow(BaseModel, extra="allow"):
    """Metrics of one epoch, as in metrics.jsonl; a row of a population also has a `seed`."""

    epoch: int
    soft_loss: float | None


class AgentRow(BaseModel, extra="allow"):
    """Metrics of agents after an iteration, as in metrics.jsonl."""

    steps: Annotated[int, Field(description="Environment steps so far, which count as epochs.")]
    mean_return: float | None
    score: Annotated[float | None, Field(description="Mean return of an evaluation; null without one.")]


class MetricRows(BaseModel):
    """Rows sorted by epoch, and for a population by seed within each epoch."""

    rows: list[MetricRow | AgentRow]
    next: Annotated[int | None, Field(description="The value of `after` for the next request; null: no more rows yet.")]


class Comparison(BaseModel):
    """Rows of several jobs, thinned to about 1000 epochs each, with preference for rows with an evaluation."""

    jobs: dict[str, list[MetricRow | AgentRow]]


class GateLayer(BaseModel):
    """Number of gates of each kind in a layer."""

    name: str
    counts: Annotated[list[int], Field(min_length=16, max_length=16, description="Number for each of `names`.")]


class GateEntry(BaseModel):
    """Number of gates by layer and kind at one evaluation; each gate counts as its most probable kind."""

    epoch: int
    layers: list[GateLayer]


class GateCounts(BaseModel):
    """History of the numbers of gates over the evaluations."""

    names: Annotated[list[str], Field(min_length=16, max_length=16)]
    history: Annotated[list[GateEntry], Field(description="By epoch, thinned to at most 200.")]


LogReply = create_model("LogReply", __doc__="End of the job's log.", text=str)
FileList = create_model("FileList", __doc__="Files of a job, by name.", files=list[Artefact])


class DeviceList(BaseModel):
    """Workers, and the memory of the server's machine."""

    devices: list[Worker]
    now: Annotated[float, Field(description="Seconds since 1970 by the server's clock, as in `seen`.")]
    memory: Annotated[int | None, Field(description="Memory of the machine in bytes; null: unknown.")]
    free_memory: int | None


class PresetReply(BaseModel):
    """Preset with its size and cost."""

    name: str
    about: str
    config: dict[str, Any]
    gates: int
    recipes: Annotated[list[str], Field(description="The recipes that a job may use; the first is the default.")]
    cost: CostReply


PresetList = create_model("PresetList", __doc__="Presets that can be trained.", presets=list[PresetReply])


class FieldReply(BaseModel):
    """Field of a configuration, or option of a request."""

    path: Annotated[str, Field(description="Path of the field, as in `set` of a job (optimizer.lr), or option name.")]
    section: Annotated[str, Field(description="Description of the field's section, or group of the option.")]
    kind: Literal["boolean", "integer", "number", "text", "list", "table"]
    about: Annotated[str, Field(description="Meaning of the field or option.")]
    limits: Annotated[str | None, Field(description="Allowed values, in words.")]
    names: Annotated[list[str], Field(description="Allowed names; empty: any value in the limits.")]
    usual: Annotated[str | None, Field(description="Default of an option.")] = None
    of_agents: Annotated[bool, Field(description="Whether an option applies to the training of agents.")] = True
    needs: Annotated[str | None, Field(description="Option that it requires.")] = None
    excludes: Annotated[list[str], Field(description="Options that it excludes.")] = []


FieldList = create_model(
    "FieldList", __doc__="Fields of a configuration, or options of a request.", fields=list[FieldReply]
)


class FormatReply(BaseModel):
    """Format that a circuit can be exported to."""

    name: str
    about: str


FormatList = create_model("FormatList", __doc__="Formats that a circuit can be exported to.", formats=list[FormatReply])
Health = create_model("Health", __doc__="The server is alive.", status=Literal["alive"])
Readiness = create_model("Readiness", __doc__="Jobs are taken.", status=Literal["ready"], workers=int)
