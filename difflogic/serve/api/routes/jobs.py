"""Routes that submit, list and control jobs, and create jobs from other jobs."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from difflogic.config import agent_shape
from difflogic.config.document import is_policy
from difflogic.config.fields import plain
from difflogic.config.follow_ups import REQUESTS, HardenRequest
from difflogic.config.harden import hardening
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import Request as AnyRequest
from difflogic.config.schema import Config
from difflogic.config.values import Size
from difflogic.errors import UsageError
from difflogic.serve.api import bodies
from difflogic.serve.api.agents import check_controller, check_environment
from difflogic.serve.api.auth import Caller
from difflogic.serve.api.context import ALWAYS, WRITES, Context, CurrentCaller, OwnJob, ServiceContext, errors, reply
from difflogic.serve.api.replies import JobList, PreviewReply
from difflogic.serve.api.submission import Submission, check_cost, check_task, draws_samples
from difflogic.serve.api.sweeps import submitted
from difflogic.serve.api.words import JobReply, can_build, reply_of
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import ID, EditRequest, JobRecord, JobRequest, JobSpec, Kind, Sort, Status, trained

router = APIRouter(prefix="/jobs", tags=["jobs"])

MOST = 200
"""Maximum number of jobs in one response."""
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$",
        description="Requests with the same key and body make one job only, even if they are sent again.",
    ),
]  # fmt: skip
MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": JobReply, "description": "The job that an earlier request with this Idempotency-Key made."},
    201: {"model": JobReply, "description": "The job, in the queue.", "headers": {
        "Location": {"description": "The job's address.", "schema": {"type": "string"}},
    }},
}  # fmt: skip
STEERING = errors(*ALWAYS, *WRITES, 404, 409)
"""Error responses of all routes that control a job, such as cancel or pause."""
MAKING = STEERING | errors(507)
"""Error responses of all routes that create a job from another job."""


@router.post(
    "", status_code=201, responses={**MADE, **errors(*ALWAYS, *WRITES, 409, 415, 507)}, openapi_extra=bodies.job_body()
)
async def submit(request: Request, context: ServiceContext, caller: CurrentCaller, key: Key = None) -> Response:
    """Queue a job: a preset or a configuration, as JSON, or as a form with `job` and files."""
    return await _with_submission(
        request, context, lambda job: _created(context, *_submit(context, caller, job.spec, key, job.spec.priority))
    )


@router.post(
    "/preview", response_model=PreviewReply, responses=errors(*ALWAYS, *WRITES, 415), openapi_extra=bodies.job_body()
)
async def preview(request: Request, context: ServiceContext, _caller: CurrentCaller) -> Response:
    """Return the configuration, target and cost of a job without queueing the job."""
    return await _with_submission(request, context, lambda job: reply(job.preview()))


async def _with_submission(request: Request, context: Context, use: Callable[[Submission], Response]) -> Response:
    """Return the response of `use` to a request's submission, whose images are read in a thread."""
    async with bodies.submission(request) as (job, uploads):
        job_request = bodies.request_of(JobRequest, job)

        def work() -> Response:
            with bodies.on_disk(uploads) as paths:
                return use(submitted(job_request, paths, context.settings))

        # Malicious images and samples may take seconds, so a few separate threads process them.
        limiter = context.picture_threads if uploads or draws_samples(job_request) else None
        return await to_thread.run_sync(work, limiter=limiter)


def _submit(
    context: Context,
    caller: Caller,
    spec: JobSpec,
    key: str | None = None,
    priority: int = 0,
    origin: JobRecord | None = None,
) -> tuple[JobRecord, bool]:
    """Queue a job and return it with True, or return the earlier job with this idempotency `key` and False.

    `priority` is the priority in the request, which is refused if it is not permitted; a priority copied from another
    job is lowered to 0 instead. The job belongs to the owner of its source or of the cloned job `origin`, if any.
    """
    _check_priority(caller, priority)
    owner = caller.owner if origin is None else origin.owner
    if not caller.may_hurry:
        spec = replace(spec, priority=min(spec.priority, 0))
    if spec.source is not None:
        source = context.store.job(spec.source, caller.sees)
        owner = source.owner
        _check_source(source, spec.kind)
        if spec.config is not None and source.config is not None:
            _check_shape(source.config, spec.config)
    config = trained(spec.config)
    if is_policy(config):  # also for a clone, since the operator's settings may have changed
        check_environment(PolicyConfig.from_dict(config), context.settings)
    else:
        check_task(config.get("plugin", {}).get("name"), context.settings)
    if key is None or not context.store.knows_key(owner, key):  # a repeated request gets the earlier job
        context.usage.check(owner, context.settings.caps.owner_quota)
    return context.store.submit(owner, spec, key, most=context.settings.caps.jobs)


def _check_priority(caller: Caller, priority: int) -> None:
    if priority > 0 and not caller.may_hurry:
        message = "The priority of your jobs must be at most 0: ask the server's operator for permission for more."
        raise ApiError(403, "priority", message)


def _job_data(context: Context, job: JobRecord) -> dict[str, Any]:
    return reply_of(job, context.turns().get(job.id) if job.status == "queued" else None)


def _created(context: Context, job: JobRecord, is_new: bool = True) -> Response:
    location = f"{context.settings.root_path}/api/v1/jobs/{job.id}"
    return reply(_job_data(context, job), 201 if is_new else 200, {"Location": location})


@router.get("", response_model=JobList, responses=errors(*ALWAYS))
def jobs(
    context: ServiceContext,
    caller: CurrentCaller,
    status: Status | None = None,
    kind: Kind | None = None,
    source: Annotated[str | None, Query(pattern=f"^{ID.pattern}$", description="Only follow-ups of this job.")] = None,
    owner: Annotated[str | None, Query(max_length=40, description="Only this owner's jobs; for operators.")] = None,
    tag: Annotated[str | None, Query(max_length=40, description="Only jobs with this tag.")] = None,
    q: Annotated[str | None, Query(max_length=100, description="Text in the name or id.")] = None,
    sort: Sort = "newest",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="The value of `next` on the page before.")] = None,
) -> Any:
    """List your jobs (an operator's: all jobs), the newest first, or sorted by name, priority, wrong cells or gates."""
    if owner is not None and caller.sees not in (None, owner):
        return reply({"jobs": [], "next": None})
    filters = {"status": status, "kind": kind, "source": source, "tag": tag, "text": q}
    page = context.store.jobs(caller.sees or owner, limit + 1, before=before, sort=sort, **filters)
    # If there is one job more than requested, another page follows.
    following = page[limit - 1].number if len(page) > limit else None
    return reply({"jobs": [_job_data(context, job) for job in page[:limit]], "next": following})


@router.get("/{job}", response_model=JobReply, responses=errors(*ALWAYS, 404))
async def read(context: ServiceContext, job: OwnJob) -> Any:
    """Return a job."""
    # Finding the turn of a job in the queue takes longer than starting a thread.
    return reply(await to_thread.run_sync(_job_data, context, job) if job.status == "queued" else reply_of(job))


@router.patch(
    "/{job}", response_model=JobReply, responses=STEERING | errors(415), openapi_extra=bodies.action_body(EditRequest)
)
async def edit(request: Request, context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Change a job's name, priority or tags."""
    changes = await bodies.read_request(EditRequest, request)
    if changes.priority != job.priority:  # a priority that an operator has set may be sent unchanged
        _check_priority(caller, changes.priority or 0)
    edited = await to_thread.run_sync(partial(context.store.edit, job.id, caller.sees, **changes.to_dict()))
    return reply(await to_thread.run_sync(_job_data, context, edited))


@router.delete("/{job}", status_code=204, responses=STEERING)
def delete(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Delete a job that is not running, and its files."""
    context.store.delete(job.id, caller.sees)
    return Response(status_code=204)


@router.post("/{job}/cancel", response_model=JobReply, responses=STEERING)
def cancel(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Cancel a job: immediately if queued, otherwise after its current epochs, with a checkpoint."""
    return reply(_job_data(context, context.store.ask(job.id, "cancel", caller.sees)))


@router.post("/{job}/pause", response_model=JobReply, responses=STEERING)
def pause(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Pause a job with a checkpoint, from which `resume` continues."""
    return reply(_job_data(context, context.store.ask(job.id, "pause", caller.sees)))


@router.post("/{job}/resume", response_model=JobReply, responses=STEERING)
def resume(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Queue a paused job again."""
    return reply(_job_data(context, context.store.resume(job.id, caller.sees)))


@router.post("/{job}/retry", response_model=JobReply, responses=STEERING)
def retry(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Queue a failed or cancelled job again, which continues from its checkpoint."""
    return reply(_job_data(context, context.store.retry(job.id, caller.sees)))


@router.post("/{job}/clone", status_code=201, responses={201: MADE[201], **MAKING})
def clone(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Queue a new job with the same specification."""
    return _created(context, *_submit(context, caller, job.spec(), origin=job))


def _add_action(action: Any, part: type[AnyRequest]) -> None:
    """Add the route of an action that creates a job from another job; `part` is the class of its request."""

    async def make(request: Request, context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
        action_request = await bodies.read_request(part, request)

        def work() -> Response:
            if isinstance(action_request, HardenRequest):
                spec = _hardened(context, job, action_request)
            else:
                spec = _follow_up(context, job, action, action_request)
            return _created(context, *_submit(context, caller, spec))

        return await to_thread.run_sync(work)

    about = (part.__doc__ or "").replace("JOB", "this job")
    responses = {201: MADE[201], **MAKING, **errors(415)}
    router.add_api_route(
        f"/{{job}}/{action}", make, methods=["POST"], status_code=201, name=action, description=about,
        responses=responses, openapi_extra=bodies.action_body(part),
    )  # fmt: skip


for _action, _part in REQUESTS.items():
    _add_action(_action, _part)


def _hardened(context: Context, job: JobRecord, request: HardenRequest) -> JobSpec:
    """Return the specification of a training that continues `job` until its unconverged gates have converged."""
    _check_source(job, "train")
    if job.config is None:
        raise ApiError(409, "no_circuit", f"The job {job.id} has no configuration to continue.")
    if is_policy(job.config):
        message = "Agents use discrete gates from the first step: they have no unconverged gates to harden."
        raise ApiError(409, "no_circuit", message)
    try:
        config = hardening(Config.from_dict(job.config), request.search, request.epochs)
    except UsageError as error:
        raise ApiError(422, "invalid_config", one_sentence(str(error))) from error
    check_cost(config, 1, context.settings.caps)
    return JobSpec(
        "train",
        job.name,
        config.to_dict(),
        job.engine,
        # Training ends at the first correct evaluation: from then on, gates may converge without changing the circuit.
        {"stop_when_solved": 1},
        priority=job.priority,
        source=job.id,
        options={name: text for name, text in job.options.items() if name == "data"} | {"decide": not request.search},
        tags=job.tags,
    )


SOURCES: dict[Kind, tuple[Kind, ...]] = {
    "train": ("train",),
    "sweep": (),
    "simplify": ("train", "sweep", "build"),
    "build": ("train",),
    "prove": ("train", "sweep", "simplify"),
    "export": ("train", "sweep", "simplify", "build"),
    "evaluate": ("train", "sweep"),
}
"""Mapping from the kind of a new job to the kinds that its source job may have."""


def _check_source(source: JobRecord, kind: Kind) -> None:
    """Raise ApiError if a job of this `kind` cannot use the circuit of `source`."""
    if source.kind not in SOURCES[kind]:
        kinds = " or ".join(SOURCES[kind])
        raise ApiError(
            409, "no_circuit", f"Expected a job of kind {kinds} for {kind}, but {source.id} is of kind {source.kind}."
        )
    # A training has a circuit from its first checkpoint on; any other job has one when it is done.
    if source.saved_progress == 0 if source.kind == "train" else source.status != "done":
        raise ApiError(
            409, "no_circuit", f"The job {source.id} is {source.status} and has no circuit: choose a job that has one."
        )


def _check_shape(source: dict[str, Any], config: dict[str, Any]) -> None:
    """Raise ApiError if `source` and `config` differ in shape, so that training cannot use the gates of `source`."""
    if is_policy(source) or is_policy(config):
        if (difference := agent_shape.difference(config, source)) is not None:
            raise ApiError(409, "other_shape", f"`init_from` requires agents of the same shape: {difference}.")
        return
    ours, theirs = ([model["channels"], model["kernels"], model["perceive"]["widths"], model["update"]["widths"]]
                    for model in (config["model"], source["model"]))  # fmt: skip
    if ours != theirs:
        message = (
            "`init_from` requires a circuit of the same shape: expected channels, kernels and widths of both networks "
            f"{ours}, got {theirs}."
        )
        raise ApiError(409, "other_shape", message)


def _follow_up(context: Context, source: JobRecord, kind: Kind, request: AnyRequest) -> JobSpec:
    """Return the specification of a post-processing job of this `kind` for the circuit of `source`."""
    options = {name: str(value) if isinstance(value, Size) else plain(value) for name, value in vars(request).items()}
    if kind == "build" and not can_build(source):
        raise ApiError(409, "no_circuit", "No circuit can be built for this task: train it instead.")
    if is_policy(trained(source.config)) and kind != "evaluate":
        if kind == "prove":
            raise ApiError(409, "no_circuit", "Only simplified controllers can be proved: simplify the job first.")
        check_controller(context.store.job_folder(source).run, options)
    if options.get("every_start") and source.kind == "simplify":
        message = "`every_start` is only for trainings, not for simplified circuits: omit it."
        raise ApiError(422, "invalid_request", message)
    return JobSpec(kind, source.name, source=source.id, options=options, priority=source.priority, tags=source.tags)
