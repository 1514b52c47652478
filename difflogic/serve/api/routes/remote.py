"""What workers on other machines ask for: a job under a lease, its files, signs of life, and its end.

The lease is the one that workers of this machine have, and only its holder writes: every file is put in its place
within a transaction that has looked at the lease. Files are sent before the progress that names them, so that a job
whose machine is lost goes on from a checkpoint that is here, whole.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio import open_file, to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import Field, JsonValue, StringConstraints

import difflogic
from difflogic.runs.folder import LOCK
from difflogic.serve.api import bodies
from difflogic.serve.api.context import ALWAYS, WRITES, Context, CurrentCaller, Id, ServiceContext, errors, reply
from difflogic.serve.api.schemas import Strict
from difflogic.serve.api.tokens import OPERATOR, WORKER
from difflogic.serve.errors import ApiError
from difflogic.serve.store import job_file
from difflogic.serve.store.jobs import JobRecord, LeaseLostError
from difflogic.serve.store.leases import ELSEWHERE, PROGRESS
from difflogic.serve.store.presence import NAME
from difflogic.system.files import TEMPORARY, sync_folder

PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
"""A folder or file of a job: none is hidden, and none leads elsewhere."""
DEEPEST = 5
MOST_LEASE_S = 600.0
"""The longest that a worker may be silent."""

WorkerName = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[ -~]{1,100}$")]
Column = Annotated[str, StringConstraints(pattern=f"^({'|'.join(sorted(PROGRESS))})$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
"""Whole numbers that the database holds."""
Seconds = Annotated[float, Field(gt=0, le=MOST_LEASE_S, strict=False, allow_inf_nan=False)]


class RemoteWorker(Strict):
    """A worker on another machine, and what it trains."""

    name: WorkerName
    device: Word
    host: Word
    version: Word
    engines: Annotated[list[Word], Field(min_length=1, max_length=20)]


class ClaimRequest(Strict):
    """A worker without a job asks for one."""

    lease_s: Seconds
    claim: Annotated[
        Word | None, Field(description="Any name. A claim that is sent again with the same name gets the same job.")
    ] = None


class Progress(Strict):
    """What a holder says of its job: columns, as `Store.heartbeat` takes them."""

    lease: Count
    progress: Annotated[dict[Column, Count | float | str | dict[str, JsonValue] | None], Field(default_factory=dict)]


class Heartbeat(Progress):
    """A heartbeat of a worker that holds a job."""

    worker: WorkerName
    lease_s: Seconds
    memory: Count | None = None


class Ending(Progress):
    """How a job ended."""

    status: Literal["done", "failed"]
    reason: Annotated[str | None, Field(max_length=1000)] = None


async def remote_worker(caller: CurrentCaller) -> None:
    """Let those in whose token may train jobs. Raises ApiError."""
    if not {WORKER, OPERATOR} & caller.roles:
        words = "This token may not train jobs: its line in the server's file of tokens must say `name worker:token`."
        raise ApiError(403, "no_worker", words)


router = APIRouter(
    prefix="/remote", tags=["workers"], dependencies=[Depends(remote_worker)], route_class=bodies.JsonRoute
)
SENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {bodies.BINARY: {}}, "description": "The file."},
    **errors(*ALWAYS, 403, 404, 409),
}
FILE = {
    "requestBody": {"required": True, "content": {bodies.BINARY: {"schema": {"type": "string", "format": "binary"}}}}
}
WRITTEN = errors(*ALWAYS, *WRITES, 404, 409, 415)
Lease = Annotated[int, Query(ge=1, le=2**53, description="The number of the lease.")]


@contextmanager
def _lease_errors() -> Iterator[None]:
    try:
        yield
    except LeaseLostError as error:
        raise ApiError(409, "lease_lost", str(error)) from error


@router.put("/workers/{name}", status_code=204, responses=WRITTEN)
def register(context: ServiceContext, name: WorkerName, body: RemoteWorker) -> Response:
    """List a worker; it counts as gone when nothing is heard of it for a minute."""
    # A run that goes on elsewhere must go on bit for bit, and both must mean the same by a job.
    if body.version != difflogic.__version__:
        words = f"This server is difflogic {difflogic.__version__}, the worker {body.version}: use the same version."
        raise ApiError(409, "other_version", words)
    device = f"{body.host}/{body.device}"
    context.store.register_worker(name, device, body.device, ELSEWHERE, body.engines, body.host)
    return Response(status_code=204)


@router.delete("/workers/{name}", status_code=204, responses=WRITTEN)
def unregister(context: ServiceContext, name: WorkerName) -> Response:
    """Take a worker from the list that ends in good order, and holds no job."""
    context.store.unregister_worker(name)
    return Response(status_code=204)


@router.post("/workers/{name}/claim", responses=WRITTEN)
def claim(context: ServiceContext, name: WorkerName, body: ClaimRequest) -> Any:
    """The next job for a worker, under a lease, with the files that it has; `null` where there is none.

    The same claim, sent again because its answer was lost, gets the same job under the same lease.
    """
    store = context.store
    worker = next((each for each in store.workers() if each.name == name), None)
    if worker is None:
        raise ApiError(409, "no_worker", f"There is no worker {name}: register it first.")
    store.mark_seen(name)
    claimed = None if store.is_full() else store.claim(name, worker.device, worker.engines, body.lease_s, body.claim)
    if claimed is None:
        return reply(None)
    job, lease = claimed
    source = None if job.source is None else store.job(job.source, job.owner)
    folders = {"files": store.job_folder(job.id).path}
    if source is not None:
        folders["source_files"] = store.job_folder(source).run
    known = {key: _listed(folder) for key, folder in folders.items()}
    return reply({"job": job.to_dict(), "lease": lease, "source": source and source.to_dict(), **known})


@router.post("/jobs/{job}/heartbeat", responses=WRITTEN)
def heartbeat(context: ServiceContext, job: Id, body: Heartbeat) -> Any:
    """Prolong a lease, and say how far the job is; the answer says what somebody asked of it."""
    with _lease_errors():
        answer = context.store.heartbeat(job, body.lease, body.lease_s, body.memory, **body.progress)
    return reply({"wanted": answer.wanted, "watched": answer.watched})


@router.post("/jobs/{job}/finish", status_code=204, responses=WRITTEN)
def finish(context: ServiceContext, job: Id, body: Ending) -> Response:
    """End a job as done or failed."""
    with _lease_errors():
        context.store.finish(job, body.lease, body.status, body.reason, **body.progress)
    return Response(status_code=204)


@router.post("/jobs/{job}/release", status_code=204, responses=WRITTEN)
def release(context: ServiceContext, job: Id, body: Progress) -> Response:
    """Hand a job back in good order: it becomes what somebody asked for, else it waits for the next worker."""
    with _lease_errors():
        context.store.release(job, body.lease, **body.progress)
    return Response(status_code=204)


@router.get("/jobs/{job}/files/{path:path}", response_class=FileResponse, responses=SENT)
def download(context: ServiceContext, job: Id, path: str, lease: Lease) -> Response:
    """A file of a job that the worker holds."""
    _held(context, job, lease)
    return _sent(context.store.job_folder(job).path, path)


@router.get("/jobs/{job}/source/{path:path}", response_class=FileResponse, responses=SENT)
def download_source(context: ServiceContext, job: Id, path: str, lease: Lease) -> Response:
    """A file of the run that a job begins with."""
    record = _held(context, job, lease)
    if record.source is None:
        raise ApiError(404, "no_file", f"The job {job} does not start from another job's circuit.")
    return _sent(context.store.job_folder(context.store.job(record.source, record.owner)).run, path)


@router.put("/jobs/{job}/files/{path:path}", status_code=204, responses=WRITTEN, openapi_extra=FILE)
async def upload(
    request: Request,
    context: ServiceContext,
    job: Id,
    path: str,
    lease: Lease,
    offset: Annotated[
        int | None,
        Query(
            ge=0,
            le=2**53,
            description="The body is appended after this many bytes. Without it, the body is the whole file.",
        ),
    ] = None,
) -> Response:
    """A file of a job, whole, or what was added to it."""
    if bodies.kind(request) != bodies.BINARY:
        raise ApiError(415, "unsupported_media_type", f"The body must be {bodies.BINARY}.")
    folder = context.store.job_folder(job).path
    target = _confined(folder, path)
    incoming = folder / f".{secrets.token_hex(8)}{TEMPORARY}"
    try:
        async with await open_file(incoming, "xb") as file:
            # Outside of the transaction: however slowly the body comes, nobody waits for it.
            async for block in request.stream():
                await file.write(block)
            await file.flush()
            await to_thread.run_sync(os.fsync, file.wrapped.fileno())
        await to_thread.run_sync(_place, context, job, lease, incoming, target, offset)
    except FileNotFoundError as error:
        raise ApiError(404, "no_job", f"There is no job {job!r}.") from error
    finally:
        await to_thread.run_sync(incoming.unlink, True)
    return Response(status_code=204)


@router.delete("/jobs/{job}/files/{path:path}", status_code=204, responses=WRITTEN)
def remove(context: ServiceContext, job: Id, path: str, lease: Lease) -> Response:
    """Delete a file that the worker has no more."""
    target = _confined(context.store.job_folder(job).path, path)
    with _lease_errors(), context.store.held(job, lease):
        target.unlink(missing_ok=True)
    return Response(status_code=204)


def _place(context: Context, job: str, lease: int, incoming: Path, target: Path, offset: int | None) -> None:
    with _lease_errors(), context.store.held(job, lease):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if offset is None:
            incoming.replace(target)
            sync_folder(target.parent)
            return
        if not target.exists() or target.stat().st_size != offset:
            raise ApiError(409, "other_offset", "The file has a different length on the server: send the whole file.")
        with target.open("ab") as file:
            file.write(incoming.read_bytes())


def _held(context: Context, job: str, lease: int) -> JobRecord:
    with _lease_errors(), context.store.held(job, lease):
        return context.store.job(job)


def _sent(folder: Path, path: str) -> Response:
    target = _confined(folder, path)
    if not target.is_file():
        raise ApiError(404, "no_file", f"The job has no file {path[:80]!r}.")
    return FileResponse(target, media_type=bodies.BINARY)


def _confined(folder: Path, path: str) -> Path:
    """The file of this name in a job's folder. Raises ApiError."""
    parts = path.split("/")
    if len(parts) > DEEPEST or not all(map(_is_shared, parts)):
        raise ApiError(404, "no_file", f"No job has a file {path[:80]!r}.")
    return folder.joinpath(*parts)


def _is_shared(name: str) -> bool:
    """Whether a file is the worker's business: the record of the job is the store's."""
    return bool(PART.fullmatch(name)) and not name.startswith(job_file.NAME) and name != LOCK


def _listed(folder: Path) -> list[str]:
    """The files of a folder that a worker needs."""
    names = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return [each.as_posix() for each in names if all(map(_is_shared, each.parts)) and each.suffix != TEMPORARY]
