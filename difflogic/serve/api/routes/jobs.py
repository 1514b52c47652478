"""Jobs: submitted, listed, steered, and made from others."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

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
from difflogic.serve.api.agents import check_alike, check_controller, check_environment
from difflogic.serve.api.auth import Caller
from difflogic.serve.api.context import ALWAYS, WRITES, Context, CurrentCaller, OwnJob, ServiceContext, errors, reply
from difflogic.serve.api.replies import JobList, PreviewReply
from difflogic.serve.api.submission import Submission, check_cost, check_task, draws_samples
from difflogic.serve.api.sweeps import submitted
from difflogic.serve.api.words import JobReply, can_build, told
from difflogic.serve.errors import ApiError, one_sentence
from difflogic.serve.store.jobs import ID, EditRequest, JobRecord, JobRequest, JobSpec, Kind, Sort, Status, trained

router = APIRouter(prefix="/jobs", tags=["jobs"])

MOST = 200
"""The most jobs in one answer."""
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
"""The errors of every address that steers a job..."""
MAKING = STEERING | errors(507)
"""...and of those that make another one of it."""


@router.post(
    "", status_code=201, responses={**MADE, **errors(*ALWAYS, *WRITES, 409, 415, 507)}, openapi_extra=bodies.job_body()
)
async def submit(request: Request, context: ServiceContext, caller: CurrentCaller, key: Key = None) -> Response:
    """Queue a job: a preset or a configuration, as JSON, or as a form with `job` and files."""
    return await _with_submission(
        request, context, lambda found: _made(context, *_submit(context, caller, found.spec, key, found.spec.priority))
    )


@router.post(
    "/preview", response_model=PreviewReply, responses=errors(*ALWAYS, *WRITES, 415), openapi_extra=bodies.job_body()
)
async def preview(request: Request, context: ServiceContext, _caller: CurrentCaller) -> Response:
    """What the same request would train, and what the circuit would see; nothing is kept."""
    return await _with_submission(request, context, lambda found: reply(found.preview()))


async def _with_submission(request: Request, context: Context, use: Callable[[Submission], Response]) -> Response:
    """What `use` makes of the request, in a thread of its own."""
    # What is made of the body reads pictures and computes, and so goes to a thread.
    async with bodies.submission(request) as (job, uploads):
        wanted = bodies.asked(JobRequest, job)

        def work() -> Response:
            with bodies.on_disk(uploads) as paths:
                return use(submitted(wanted, paths, context.settings))

        # Pictures and samples take seconds where someone wants them to: those that wait hold up nothing else.
        limiter = context.picture_threads if uploads or draws_samples(wanted) else None
        return await to_thread.run_sync(work, limiter=limiter)


def _submit(
    context: Context,
    caller: Caller,
    spec: JobSpec,
    key: str | None = None,
    wanted: int = 0,
    origin: JobRecord | None = None,
) -> tuple[JobRecord, bool]:
    """A new job; `wanted`: the priority that was asked for, where it was not taken from another job.

    `origin`: the job that it is a copy of. What is made of a job belongs to that job's owner, also where an operator
    asked for it.
    """
    _check_priority(caller, wanted)
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
    if is_policy(config):  # of a copy too: what the operator allows may have changed
        check_environment(PolicyConfig.from_dict(config), context.settings)
    else:
        check_task(config.get("plugin", {}).get("name"), context.settings)
    if key is None or not context.store.knows_key(owner, key):  # whoever repeats a request gets the job of then
        context.usage.check(owner, context.settings.caps.owner_quota)
    return context.store.submit(owner, spec, key, most=context.settings.caps.jobs)


def _check_priority(caller: Caller, wanted: int) -> None:
    if wanted > 0 and not caller.may_hurry:
        raise ApiError(403, "priority", "You may give your jobs a priority of at most 0: ask whoever runs the server.")


def _told(context: Context, job: JobRecord) -> dict[str, Any]:
    return told(job, context.turns().get(job.id) if job.status == "queued" else None)


def _made(context: Context, job: JobRecord, created: bool = True) -> Response:
    location = f"{context.settings.root_path}/api/v1/jobs/{job.id}"
    return reply(_told(context, job), 201 if created else 200, {"Location": location})


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
    """Your jobs, an operator's everybody's, the newest first or in another order: by name, wrong cells, gates."""
    if owner is not None and caller.sees not in (None, owner):
        return reply({"jobs": [], "next": None})
    filters = {"status": status, "kind": kind, "source": source, "tag": tag, "text": q, "before": before, "sort": sort}
    found = context.store.jobs(caller.sees or owner, limit + 1, **filters)
    # One more than was asked for was read: its presence says that there is another page.
    follows = found[limit - 1].number if len(found) > limit else None
    return reply({"jobs": [_told(context, job) for job in found[:limit]], "next": follows})


@router.get("/{job}", response_model=JobReply, responses=errors(*ALWAYS, 404))
async def read(context: ServiceContext, job: OwnJob) -> Any:
    """One job, as it is now."""
    # Whoever waits is looked for among all that wait, which takes longer than to hand it to a thread.
    return reply(await to_thread.run_sync(_told, context, job) if job.status == "queued" else told(job))


@router.patch(
    "/{job}", response_model=JobReply, responses=STEERING | errors(415), openapi_extra=bodies.action_body(EditRequest)
)
async def edit(request: Request, context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Give a job another name or priority, or other tags."""
    asked = await bodies.told(EditRequest, request)
    if asked.priority != job.priority:  # who changes the name alone may send the rest as it is
        _check_priority(caller, asked.priority or 0)

    def work() -> Response:
        return reply(_told(context, context.store.edit(job.id, caller.sees, **asked.to_dict())))

    return await to_thread.run_sync(work)


@router.delete("/{job}", status_code=204, responses=STEERING)
def delete(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Forget a job that does not run, and delete its files."""
    context.store.delete(job.id, caller.sees)
    return Response(status_code=204)


@router.post("/{job}/cancel", response_model=JobReply, responses=STEERING)
def cancel(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Stop a job: at once where it waits, else after the epochs under way, with a checkpoint."""
    return reply(_told(context, context.store.ask(job.id, "cancel", caller.sees)))


@router.post("/{job}/pause", response_model=JobReply, responses=STEERING)
def pause(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Stop a job with a checkpoint, from which `resume` goes on."""
    return reply(_told(context, context.store.ask(job.id, "pause", caller.sees)))


@router.post("/{job}/resume", response_model=JobReply, responses=STEERING)
def resume(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Queue a paused job again."""
    return reply(_told(context, context.store.resume(job.id, caller.sees)))


@router.post("/{job}/retry", response_model=JobReply, responses=STEERING)
def retry(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Any:
    """Queue a failed or cancelled job again; it goes on from its checkpoint."""
    return reply(_told(context, context.store.retry(job.id, caller.sees)))


@router.post("/{job}/clone", status_code=201, responses={201: MADE[201], **MAKING})
def clone(context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
    """Queue a new job that is to do the same."""
    return _made(context, *_submit(context, caller, job.spec(), origin=job))


def _add_action(action: Any, part: type[AnyRequest]) -> None:
    """The address that makes a job of another one."""

    async def make(request: Request, context: ServiceContext, caller: CurrentCaller, job: OwnJob) -> Response:
        asked = await bodies.told(part, request)

        def work() -> Response:
            if isinstance(asked, HardenRequest):
                spec = _hardened(context, job, asked)
            else:
                spec = _follow_up(context, job, action, asked)
            return _made(context, *_submit(context, caller, spec))

        return await to_thread.run_sync(work)

    about = (part.__doc__ or "").replace("JOB", "this job")
    responses = {201: MADE[201], **MAKING, **errors(415)}
    router.add_api_route(
        f"/{{job}}/{action}", make, methods=["POST"], status_code=201, name=action, description=about,
        responses=responses, openapi_extra=bodies.action_body(part),
    )  # fmt: skip


for _action, _part in REQUESTS.items():
    _add_action(_action, _part)


def _hardened(context: Context, job: JobRecord, asked: HardenRequest) -> JobSpec:
    """A training that goes on from the circuit of this one, until its unconverged gates are decided."""
    _check_source(job, "train")
    if job.config is None:
        raise ApiError(409, "no_circuit", f"The job {job.id} has no configuration to continue with.")
    if is_policy(job.config):
        words = "Agents use discrete gates from the first step: they have no unconverged gates to harden."
        raise ApiError(409, "no_circuit", words)
    try:
        config = hardening(Config.from_dict(job.config), asked.search, asked.epochs)
    except UsageError as error:
        raise ApiError(422, "invalid_config", one_sentence(str(error))) from error
    check_cost(config, 1, context.settings.caps)
    return JobSpec(
        "train",
        job.name,
        config.to_dict(),
        job.engine,
        # One right evaluation is all that is wanted: what is undecided then is decided without changing the circuit.
        {"stop_when_solved": 1},
        priority=job.priority,
        source=job.id,
        options={name: text for name, text in job.options.items() if name == "data"} | {"decide": not asked.search},
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
"""Kinds of jobs whose circuit a job of each kind takes."""


def _check_source(source: JobRecord, kind: Kind) -> None:
    """Raises ApiError where a job of this kind cannot take its circuit."""
    if source.kind not in SOURCES[kind]:
        kinds = " or ".join(SOURCES[kind])
        raise ApiError(409, "no_circuit", f"The job {source.id} is of kind {source.kind}: {kind} works on {kinds}.")
    # A training has a circuit from its first checkpoint on, also while it runs; a simplification only when it is done.
    if source.saved_progress == 0 if source.kind == "train" else source.status != "done":
        raise ApiError(409, "no_circuit", f"The job {source.id} has no circuit yet: let it work first.")


def _check_shape(lender: dict[str, Any], config: dict[str, Any]) -> None:
    """Raises ApiError where the gates of a circuit are none for another: its worker would find out hours later."""
    if is_policy(lender) or is_policy(config):
        check_alike(lender, config)
        return
    ours, theirs = ([each["channels"], each["kernels"], each["perceive"]["widths"], each["update"]["widths"]]
                    for each in (config["model"], lender["model"]))  # fmt: skip
    if ours != theirs:
        words = (
            "init_from needs a training with a circuit of the same shape: channels, kernels and the widths of both "
            f"networks should be {ours}, those of that job are {theirs}."
        )
        raise ApiError(409, "other_shape", words)


def _follow_up(context: Context, source: JobRecord, kind: Kind, asked: AnyRequest) -> JobSpec:
    """A job of this kind on the circuit of this one."""
    options = {name: str(value) if isinstance(value, Size) else plain(value) for name, value in vars(asked).items()}
    if kind == "build" and not can_build(source):
        raise ApiError(409, "no_circuit", "No circuit is built for its task without training.")
    if is_policy(trained(source.config)) and kind != "evaluate":
        if kind == "prove":
            raise ApiError(409, "no_circuit", "A controller is proved equal to another: simplify it, and prove that.")
        check_controller(context.store.job_folder(source).run, options)
    if options.get("every_start") and source.kind == "simplify":
        words = "every_start is only for trainings: a simplified circuit is proved equal to its original."
        raise ApiError(422, "invalid_request", words)
    return JobSpec(kind, source.name, source=source.id, options=options, priority=source.priority, tags=source.tags)
