"""Jobs: submitted, listed, steered, and made from others."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from difflogic.serve import bodies
from difflogic.serve.context import ALWAYS, WRITES, Asks, Context, Here, Mine, errors, reply, reply_text
from difflogic.serve.documented import job_body
from difflogic.serve.drafting import Drawn, shown_target
from difflogic.serve.faults import ApiError
from difflogic.serve.jobs import ID, Draft, Job, Kind, Status
from difflogic.serve.schemas import (
    Edit,
    EvaluateRequest,
    ExportRequest,
    JobList,
    JobRequest,
    Preview,
    SimplifyRequest,
)

router = APIRouter(prefix="/jobs", tags=["jobs"])

MOST = 200
"""Jobs in one answer."""
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$",
        description="The same key and body make one job, however often they are sent.",
    ),
]  # fmt: skip
MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": Job, "description": "The job that this Idempotency-Key made before."},
    201: {"model": Job, "description": "The job, in the queue.", "headers": {
        "Location": {"description": "The job's address.", "schema": {"type": "string"}},
    }},
}  # fmt: skip
STEERING = errors(*ALWAYS, *WRITES, 404, 409)
"""Of every address that steers a job."""


@router.post("", status_code=201, responses={**MADE, **errors(*ALWAYS, *WRITES, 409, 415)}, openapi_extra=job_body())
async def submit(request: Request, here: Here, asks: Asks, key: Key = None) -> Response:
    """Queue a job: a preset or a configuration, as JSON, or as a form with `job` and pictures."""
    job, created = await _drawn(request, here, lambda drawn: _submit(here, asks.owner, drawn.draft, key))
    return _made(job, created)


@router.post("/preview", response_model=Preview, responses=errors(*ALWAYS, *WRITES, 415), openapi_extra=job_body())
async def preview(request: Request, here: Here, _asks: Asks) -> Response:
    """What the same request would train, and what the circuit would see; nothing is kept."""
    return reply(await _drawn(request, here, _previewed))


async def _drawn(request: Request, here: Context, use: Any) -> Any:
    """What `use` makes of the request, in a thread of its own."""
    async with bodies.submission(request) as form:
        wanted = bodies.checked(JobRequest, form.job)

        def work() -> Any:
            with bodies.on_disk(form.pictures) as paths:
                return use(Drawn(wanted, paths, here.settings.caps))

        return await to_thread.run_sync(work)


def _previewed(drawn: Drawn) -> dict[str, Any]:
    cost = drawn.cost
    return {
        "config": drawn.config.to_dict(),
        "epochs": drawn.config.train.epochs,
        "gates": drawn.config.model.gates,
        "target": shown_target(drawn.config),
        "changed": drawn.fields,
        "cost": cost.to_dict(),
    }


def _submit(here: Context, owner: str, draft: Draft, key: str | None) -> tuple[Job, bool]:
    return here.store.submit(owner, draft, key, most=here.settings.caps.jobs)


def _made(job: Job, created: bool = True) -> Response:
    return reply(job.to_dict(), 201 if created else 200, {"Location": f"/api/v1/jobs/{job.id}"})


@router.get("", response_model=JobList, responses=errors(*ALWAYS))
def jobs(
    here: Here,
    asks: Asks,
    status: Status | None = None,
    kind: Kind | None = None,
    source: Annotated[str | None, Query(pattern=f"^{ID.pattern}$", description="Follow-ups of this job.")] = None,
    q: Annotated[str | None, Query(max_length=100, description="A part of the name or id.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="`next` of the page before.")] = None,
) -> Any:
    """Your jobs, the newest first."""
    found = here.store.texts(asks.owner, limit + 1, status=status, kind=kind, source=source, text=q, before=before)
    more, shown = len(found) > limit, found[:limit]
    follows = shown[-1][0] if more else "null"
    return reply_text(f'{{"jobs":[{",".join(text for _, text in shown)}],"next":{follows}}}')


@router.get("/{job}", response_model=Job, responses=errors(*ALWAYS, 404))
async def read(mine: Mine) -> Any:
    """One job."""
    return reply(mine.to_dict())


@router.patch("/{job}", response_model=Job, responses=STEERING)
def edit(here: Here, asks: Asks, mine: Mine, body: Edit) -> Any:
    """Give a job another name or priority."""
    return reply(here.store.edit(mine.id, asks.owner, body.name, body.priority).to_dict())


@router.delete("/{job}", status_code=204, responses=STEERING)
def delete(here: Here, asks: Asks, mine: Mine) -> Response:
    """Forget a job that does not run, and delete its files."""
    here.store.delete(mine.id, asks.owner)
    return Response(status_code=204)


@router.post("/{job}/cancel", response_model=Job, responses=STEERING)
def cancel(here: Here, asks: Asks, mine: Mine) -> Any:
    """Stop a job: at once where it waits, else after the epochs under way, with a checkpoint."""
    return reply(here.store.ask(mine.id, "cancel", asks.owner).to_dict())


@router.post("/{job}/pause", response_model=Job, responses=STEERING)
def pause(here: Here, asks: Asks, mine: Mine) -> Any:
    """Stop a job with a checkpoint, from which `resume` goes on."""
    return reply(here.store.ask(mine.id, "pause", asks.owner).to_dict())


@router.post("/{job}/resume", response_model=Job, responses=STEERING)
def resume(here: Here, asks: Asks, mine: Mine) -> Any:
    """Queue a paused job again."""
    return reply(here.store.resume(mine.id, asks.owner).to_dict())


@router.post("/{job}/retry", response_model=Job, responses=STEERING)
def retry(here: Here, asks: Asks, mine: Mine) -> Any:
    """Queue a failed or cancelled job again; it goes on from its checkpoint."""
    return reply(here.store.retry(mine.id, asks.owner).to_dict())


@router.post("/{job}/clone", status_code=201, responses={201: MADE[201], **STEERING})
def clone(here: Here, asks: Asks, mine: Mine) -> Response:
    """Queue a new job that is to do the same."""
    draft = Draft(
        kind=mine.kind, name=mine.name, config=mine.config, engine=mine.engine, population=mine.population,
        stop_when_solved=mine.stop_when_solved, priority=mine.priority, source=mine.source, options=mine.options,
    )  # fmt: skip
    return _made(*_submit(here, asks.owner, draft, None))


@router.post("/{job}/simplify", status_code=201, responses={201: MADE[201], **STEERING})
def simplify(here: Here, asks: Asks, mine: Mine, body: SimplifyRequest | None = None) -> Response:
    """Queue a job that makes the circuit of this one smaller."""
    return _follow(here, asks.owner, mine, "simplify", (body or SimplifyRequest()).model_dump())


@router.post("/{job}/export", status_code=201, responses={201: MADE[201], **STEERING})
def export(here: Here, asks: Asks, mine: Mine, body: ExportRequest) -> Response:
    """Queue a job that writes the circuit of this one in other formats."""
    return _follow(here, asks.owner, mine, "export", body.model_dump())


@router.post("/{job}/evaluate", status_code=201, responses={201: MADE[201], **STEERING})
def evaluate(here: Here, asks: Asks, mine: Mine, body: EvaluateRequest | None = None) -> Response:
    """Queue a job that tests the circuit of this one far beyond its training."""
    return _follow(here, asks.owner, mine, "evaluate", (body or EvaluateRequest()).model_dump())


SOURCES: dict[Kind, tuple[Kind, ...]] = {
    "simplify": ("train",),
    "export": ("train", "simplify"),
    "evaluate": ("train",),
}
"""Kinds of jobs whose circuit a follow-up takes."""


def _follow(here: Context, owner: str, source: Job, kind: Kind, options: dict[str, Any]) -> Response:
    if source.kind not in SOURCES[kind]:
        kinds = " or ".join(SOURCES[kind])
        raise ApiError(409, "no_circuit", f"The job {source.id} is of kind {source.kind}: {kind} works on {kinds}.")
    if source.saved_epoch == 0 if source.kind == "train" else source.status != "done":
        raise ApiError(409, "no_circuit", f"The job {source.id} has no circuit yet: let it work first.")
    draft = Draft(kind=kind, name=source.name, source=source.id, options=options, priority=source.priority)
    return _made(*_submit(here, owner, draft, None))
