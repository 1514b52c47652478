"""A job of the training service, as the store keeps it and the API shows it.

    queued -> running -> done | failed | cancelled | paused

A paused job is resumed to the queue and goes on from its checkpoint; a failed or cancelled one is retried so.
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
"""What workers of devices do; the rest follows up."""
SORTS: tuple[Sort, ...] = get_args(Sort)
STATUSES: tuple[Status, ...] = get_args(Status)
ENDED: tuple[Status, ...] = ("done", "failed", "cancelled")
"""Nothing happens any more to a job that is so, unless someone asks."""
STATUS_AFTER: dict[Wanted | None, Status] = {
    "cancel": "cancelled",
    "pause": "paused",
    None: "queued",
    "requeue": "queued",
}
"""The status of a job that its worker left, by what someone asked of it meanwhile."""
PRIORITIES = range(-10, 11)
# Lower case and no digits that look like letters: an id is read aloud, typed, and used as a folder on any file system.
ID = re.compile(JOB_ID)
"""Every path of a job is made of an id that matches whole."""
TAG = re.compile(rf"[^ ,{HIDDEN}]([^,{HIDDEN}]{{0,38}}[^ ,{HIDDEN}])?")
"""A tag: up to 40 characters without commas, which part tags where they are typed."""
TAGS = Limits(
    "at most 10 tags of up to 40 characters without commas",
    lambda tags: len(tags) <= 10 and all(tag.isprintable() and TAG.fullmatch(tag) for tag in tags),
    schema={"maxItems": 10, "items": {"type": "string", "pattern": f"^{TAG.pattern}$"}},
)
PRIORITY = between(PRIORITIES[0], PRIORITIES[-1])
ASKED = ("config", "request", "options")
"""What was asked for, as far as nothing is looked for by it: the store keeps it as one column."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


class UnknownJobError(StoreError):
    """There is no such job, or it is someone else's."""


class ConflictError(StoreError):
    """The job's state, or an earlier request, forbids this."""


class QueueFullError(ConflictError):
    """Too many jobs of one owner wait."""


class LeaseLostError(StoreError):
    """The job was given to another worker: whoever held it must touch it no more."""


class UnavailableError(StoreError):
    """The store cannot be used just now. Its sentence names no path, so that everybody may read it."""


class DiskFullError(UnavailableError):
    """The disk of the store has no room."""


class StoreLostError(UnavailableError, LeaseLostError):
    """The database is not the one that was opened any more. What was held under it is held no more."""


@section
class JobRequest(TrainRequest):
    """A request to a server is one for training, perhaps many times, with its place in the queue."""

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
    """What to change of a job; what is left out stays."""

    name: str | None = option("The job's name", FILE_NAME, group="edit")
    priority: int | None = option("Jobs with a higher priority start first", PRIORITY, group="edit")
    tags: tuple[str, ...] | None = option("Words to search by", TAGS, group="edit")


def trained(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration that a job trains; of a sweep that of its trials, but for their own values."""
    found = dict(config or {})
    return dict(found["config"]) if "over" in found else found


def goal_of(config: Mapping[str, Any] | None) -> int:
    """What a configuration has to train; of agents environment steps, of a sweep trials."""
    if config is None:
        return 0
    if "over" in config:
        return int(config["trials"])
    return int(config["steps"] if is_policy(config) else config["train"]["epochs"])


def new_id() -> str:
    """A random job id, 80 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(16))


@dataclass(frozen=True)
class JobSpec:
    """What a job is to do, as it was asked for: all that a new job needs, and what a clone of it takes over."""

    kind: Kind
    name: str
    config: dict[str, Any] | None = None
    """`to_dict()` of what to train, automata or agents; of a sweep its specification, whose `config` is that of each
    trial but for its own values; None for follow-ups."""
    engine: str = "auto"
    """The engine that was asked for."""
    request: dict[str, Any] = field(default_factory=dict)
    """How many models are trained, and until when: those options of a request that are not as they would be anyway."""
    priority: int = 0
    source: str | None = None
    """The job whose circuit a follow-up works on, or a training begins with."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of a follow-up, as `{"formats": ["c"]}`; of a training `decide`, or `data`: its samples in base64."""
    tags: list[str] = field(default_factory=list)
    """Words by which its owner finds it again, among others that have the same."""
    parent: str | None = None
    """Of a trial: the sweep that it belongs to. It is trained while that runs, and listed nowhere."""


@dataclass(frozen=True, kw_only=True)
class JobRecord(JobSpec):
    """One row of the store; the fields are those of the JSON."""

    number: int
    """Counted up with every submission: lists go by it."""
    id: str
    owner: str
    status: Status
    wanted: Wanted | None
    """What someone asked of it while it runs."""
    created: str
    """ISO 8601 in UTC, as are `started` and `ended`."""
    started: str | None
    """When a worker first took it."""
    ended: str | None
    lost_tries: int
    """How often its worker was lost, by a crash or a hang."""
    reason: str | None
    """One sentence: why it failed, or waits again."""
    waits_for: str | None
    """One sentence: why no worker that is there takes it."""
    attempt: int
    """The attempt that a training with attempts is in, counted from 1, and once it is over the best one; 0 without
    attempts. Rows, epochs, files and all results are this attempt's."""
    result: dict[str, Any] | None
    """What a follow-up found, in short: see `difflogic.serve.worker.follow_ups`. Of a training with restarts, what came
    of each attempt so far; of a sweep its best trial, see `difflogic.serve.worker.sweeps`."""
    device: str | None
    """The device of the worker that has it or had it last: `cpu`, `gpu:0`; an `auto` job stays on it."""
    progress: int
    """How far it is: epochs, of agents environment steps, of a sweep trials that are over."""
    goal: int
    """All that it has to do of these; with restarts what was left to this attempt."""
    soft_loss: float | None
    """The soft loss of the last row, of a population the lowest; None also where it was not finite."""
    hard_loss: int | None
    """Wrong values at the last evaluation, of a population the fewest; once the job is done, its best circuit's."""
    solved: int
    """Models without a wrong value at the last evaluation; of one until solved, whether its circuit passed the test."""
    score: float | None
    """Of agents: the mean return of the best one's last evaluation."""
    compared: int | None
    """Values that an evaluation compares, of which `hard_loss` are wrong; None before the first one."""
    active_gates: int | None
    """Gates per cell of the best model at the last evaluation: two-input gates, without dead gates and wires."""
    phase: str | None
    """What a running job does: see `difflogic.serve.worker.lease`."""
    progress_per_s: float | None
    trained_s: float
    """Seconds for which workers trained it, over all tries: a limit of time counts them, and no time in the queue."""
    saved_progress: int
    """How far it was at the newest checkpoint."""
    version: int
    """The version of its last change. Changes are counted over the whole store, so that one number says what was
    seen."""

    @cached_property
    def asked(self) -> TrainRequest:
        """The options of its request."""
        return TrainRequest.from_dict(self.request)

    @property
    def is_over(self) -> bool:
        return self.status in ENDED

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, without its samples, which may be as long as all else of a whole list."""
        options = {name: value for name, value in self.options.items() if name != "data"}
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"options": options}

    def spec(self) -> JobSpec:
        """What was asked for, for another job that is to do the same."""
        return replace(JobSpec(**{each.name: getattr(self, each.name) for each in fields(JobSpec)}), parent=None)
