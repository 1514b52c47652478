"""Define the jobs of the training service, for the store and the API.

    queued -> running -> done | failed | cancelled | paused

Users may resume a paused job, and retry a failed or cancelled job: the job is queued again, and continues from its
checkpoint.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

from difflogic.config.document import is_policy
from difflogic.config.fields import section
from difflogic.config.limits import FILE_NAME, HIDDEN, Limits, between, matching
from difflogic.config.request import JOB_ID, Request, SweepRequest, TrainRequest, option
from difflogic.errors import StoreError

Kind = Literal["train", "sweep", "simplify", "build", "prove", "export", "evaluate"]
Status = Literal["queued", "running", "paused", "done", "failed", "cancelled"]
Wanted = Literal["cancel", "pause", "requeue"]
Sort = Literal["newest", "name", "priority", "wrong", "gates"]

KINDS: tuple[Kind, ...] = get_args(Kind)
ON_DEVICES: tuple[Kind, ...] = ("train", "sweep")
"""Kinds of jobs that require devices; all other kinds are post-processing."""
SORTS: tuple[Sort, ...] = get_args(Sort)
STATUSES: tuple[Status, ...] = get_args(Status)
ENDED: tuple[Status, ...] = ("done", "failed", "cancelled")
"""Statuses of a job that is over."""
STATUS_AFTER: dict[Wanted | None, Status] = {
    "cancel": "cancelled",
    "pause": "paused",
    None: "queued",
    "requeue": "queued",
}
"""Mapping from a request to stop, or None, to the job's status after its worker has stopped."""
PRIORITIES = range(-10, 11)
# Lower case and no digits that look like letters: an id is read aloud, typed, and used as a folder on any file system.
ID = re.compile(JOB_ID)
"""Pattern of a job id, which is part of every path of the job."""
TAG = re.compile(rf"[^ ,{HIDDEN}]([^,{HIDDEN}]{{0,38}}[^ ,{HIDDEN}])?")
"""Pattern of a tag: up to 40 characters without commas, since a comma separates tags in an input field."""
TAGS = Limits(
    "at most 10 tags of up to 40 characters without commas",
    lambda tags: len(tags) <= 10 and all(tag.isprintable() and TAG.fullmatch(tag) for tag in tags),
    schema={"maxItems": 10, "items": {"type": "string", "pattern": f"^{TAG.pattern}$"}},
)
PRIORITY = between(PRIORITIES[0], PRIORITIES[-1])
ASKED = ("config", "request", "options")
"""Fields from a job's request that are stored in one JSON column, since no query uses them."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


class UnknownJobError(StoreError):
    """Error for a job that does not exist, or that belongs to another owner."""


class ConflictError(StoreError):
    """Error for an action that the job's state, or an earlier request, does not allow."""


class QueueFullError(ConflictError):
    """Error for an owner with too many queued jobs."""


class LeaseLostError(StoreError):
    """Error for a worker that has lost its lease on a job and must no longer write to the job's files."""


class UnavailableError(StoreError):
    """Error for a store that is temporarily unusable; the message contains no path, since clients may see it."""


class DiskFullError(UnavailableError):
    """Error for a store whose disk is full."""


class StoreLostError(UnavailableError, LeaseLostError):
    """Error for a database that was removed or replaced while open, so that all leases are lost."""


@section
class JobRequest(TrainRequest):
    """Request to a server for a training or a sweep, with its place in the queue."""

    sweep: SweepRequest | None = option("Train many times, with different values in some fields", group="queue")
    label: str | None = option(
        "The column of a table that a classifier learns",
        matching("text of 1 to 200 characters", r"[^\x00-\x1f]{1,200}"), group="table", metavar="COLUMN",
    )  # fmt: skip
    name: str | None = option("The job's name", FILE_NAME, group="queue", usual="the configuration's")
    priority: int = option("Jobs with a higher priority start first", PRIORITY, group="queue", default=0)
    tags: tuple[str, ...] = option("A word to search by", TAGS, group="queue", default=(), metavar="TAG")


@section
class EditRequest(Request):
    """Changes of a job; fields that are left out stay the same."""

    name: str | None = option("The job's name", FILE_NAME, group="edit")
    priority: int | None = option("Jobs with a higher priority start first", PRIORITY, group="edit")
    tags: tuple[str, ...] | None = option("Words to search by", TAGS, group="edit")


def trained(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the configuration that a job trains; for a sweep, the base configuration of its trials."""
    config = dict(config or {})
    return dict(config["config"]) if "over" in config else config


def goal_of(config: Mapping[str, Any] | None) -> int:
    """Return a configuration's number of epochs or, for agents, of environment steps or, for a sweep, of trials."""
    if config is None:
        return 0
    if "over" in config:
        return int(config["trials"])
    return int(config["steps"] if is_policy(config) else config["train"]["epochs"])


def new_id() -> str:
    """Return a random job id of 80 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(16))


@dataclass(frozen=True)
class JobSpec:
    """Specification of a new job or a clone."""

    kind: Kind
    name: str
    config: dict[str, Any] | None = None
    """Configuration of the automata or agents to train, as `to_dict()` returns it; for a sweep, its specification, with
    the base configuration of its trials as `config`; None for post-processing."""
    engine: str = "auto"
    """Engine named in the request, or `auto`."""
    request: dict[str, Any] = field(default_factory=dict)
    """Options of the population and of the end of training that differ from their defaults."""
    priority: int = 0
    source: str | None = None
    """Id of the job whose circuit is post-processed, or whose run initializes the training."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of post-processing, such as `{"formats": ["c"]}`; or of a training: `decide`, and `data` in base64."""
    tags: list[str] = field(default_factory=list)
    """Tags by which the owner finds the job."""
    parent: str | None = None
    """Id of a trial's sweep, or None for other jobs; trials are trained only while their sweep runs, and not listed."""


@dataclass(frozen=True, kw_only=True)
class JobRecord(JobSpec):
    """Row of the table `jobs`; the API returns its fields as JSON."""

    number: int
    """Consecutive number of the job in the order of submission, by which lists are sorted."""
    id: str
    owner: str
    status: Status
    wanted: Wanted | None
    """Pending request to stop the running job; None if there is none."""
    created: str
    """Time of submission in UTC, in ISO 8601 format, as are `started` and `ended`."""
    started: str | None
    """Time at which a worker first took the job."""
    ended: str | None
    lost_tries: int
    """Number of times that the job has lost its worker, which crashed or hung."""
    reason: str | None
    """Sentence that explains why the job failed or was queued again."""
    waits_for: str | None
    """Sentence that explains why no worker takes the queued job."""
    attempt: int
    """Number of the current attempt, from 1, or of the best attempt once the training is over; 0 without restarts.
    Rows, epochs, files and results are those of this attempt."""
    result: dict[str, Any] | None
    """Summary of a post-processing job (see `difflogic.serve.worker.follow_ups`), of the attempts of a training with
    restarts, or of a sweep (see `difflogic.serve.worker.sweeps`)."""
    device: str | None
    """Device of the job's current or last worker, such as `cpu` or `gpu:0`; an `auto` job stays on this device."""
    progress: int
    """Number of completed epochs (agents: environment steps; sweeps: trials)."""
    goal: int
    """Total number of epochs, steps or trials; with restarts, the number for the current attempt."""
    soft_loss: float | None
    """Soft loss in the last row, the lowest in a population; None without a row or if the loss is not finite."""
    hard_loss: int | None
    """Mismatches at the last evaluation, the fewest in a population; for a completed job, those of its best circuit."""
    solved: int
    """Models without a mismatch at the last evaluation; with `until_solved`, 1 if the circuit passed the test."""
    score: float | None
    """Mean return of the best agent at the last evaluation."""
    compared: int | None
    """Number of compared values per evaluation, of which `hard_loss` are wrong; None before the first evaluation."""
    active_gates: int | None
    """Number of two-input gates per cell, without dead gates and wires, of the best model at the last evaluation."""
    phase: str | None
    """Phase of a running job (see `difflogic.serve.worker.lease`)."""
    progress_per_s: float | None
    trained_s: float
    """Training time in seconds over all tries, to which the job's time limit applies; excludes time in the queue."""
    saved_progress: int
    """Value of `progress` at the newest checkpoint."""
    version: int
    """Version of the store after the job's last change."""

    @cached_property
    def asked(self) -> TrainRequest:
        """Value of `request` as a TrainRequest: options of the population and of the end of training."""
        return TrainRequest.from_dict(self.request)

    @property
    def is_over(self) -> bool:
        return self.status in ENDED

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON data without its samples, which may be longer than a list of jobs."""
        options = {name: value for name, value in self.options.items() if name != "data"}
        return {entry.name: getattr(self, entry.name) for entry in fields(self)} | {"options": options}

    def spec(self) -> JobSpec:
        """Return the specification for a clone of the job."""
        return replace(JobSpec(**{entry.name: getattr(self, entry.name) for entry in fields(JobSpec)}), parent=None)
