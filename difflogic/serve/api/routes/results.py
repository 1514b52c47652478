"""Routes that return the results of a job: metrics, log, gates and files."""

import json
from base64 import b64decode
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import FileResponse, Response, StreamingResponse

from difflogic.config import dataset
from difflogic.core.gates import NAMES as GATES
from difflogic.runs import jsonl
from difflogic.runs.journal import JSONL
from difflogic.runs.jsonl import NOTHING
from difflogic.serve.api import artefacts
from difflogic.serve.api.context import ALWAYS, CurrentCaller, OwnJob, ServiceContext, errors, reply, reply_text
from difflogic.serve.api.replies import Comparison, FileList, GateCounts, LogReply, MetricRows
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import ID
from difflogic.system.files import tail as end_of

router = APIRouter(tags=["results"])

ROWS = 10_000
"""Maximum number of rows in one response, unless a single epoch of a large population has more."""
POINTS = 1000
"""Maximum number of epochs per job in a comparison; fewer for a population, since ROWS limits its rows."""
EVALUATIONS = 200
"""Maximum number of evaluations per response in a history of gates; more cannot be distinguished on a page."""
NAMES = json.dumps(GATES)
FILE_KINDS = dict.fromkeys([artefacts.OTHER, *artefacts.MEDIA.values()])
FOUND = errors(*ALWAYS, 404)


@router.get("/jobs/{job}/metrics", response_model=MetricRows, responses=FOUND)
def metrics(
    context: ServiceContext,
    job: OwnJob,
    after: Annotated[int, Query(ge=0, le=2**53, description="Return rows after this epoch.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Epochs.")] = 1000,
    attempt: Annotated[int | None, Query(ge=1, le=999, description="An attempt other than the job's own.")] = None,
) -> Any:
    """Return the rows of a job's metrics after an epoch."""
    epochs = min(limit, jsonl.epochs_in(ROWS, job.asked.population))
    folder = context.store.job_folder(job)
    folder = folder if attempt is None else replace(folder, attempt=attempt)
    rows = jsonl.after(folder.run / JSONL, after, epochs, job.asked.population)
    # Only a full response can be followed by more rows.
    following = rows.until if rows.epochs == epochs else "null"
    return reply_text(f'{{"rows":{rows.text},"next":{following}}}')


@router.get("/compare", response_model=Comparison, responses=FOUND)
def compare(
    context: ServiceContext,
    caller: CurrentCaller,
    ids: Annotated[
        str, Query(pattern=f"^{ID.pattern}(,{ID.pattern}){{0,15}}$", description="Ids, separated by commas.")
    ],
) -> Any:
    """Return thinned metric rows of several jobs, for a common chart."""
    jobs = [context.store.job(job, caller.sees) for job in dict.fromkeys(ids.split(","))]
    texts = []
    for job in jobs:
        path, population = context.store.job_folder(job).run / JSONL, job.asked.population
        most = min(POINTS, jsonl.epochs_in(ROWS, population))
        texts.append(f'"{job.id}":{jsonl.thinned(path, most, population)}')
    return reply_text(f'{{"jobs":{{{",".join(texts)}}}}}')


@router.get("/jobs/{job}/log", response_model=LogReply, responses=FOUND)
def log(
    context: ServiceContext, job: OwnJob, tail: Annotated[int, Query(ge=1, le=1 << 20, description="Bytes.")] = 1 << 16
) -> Any:
    """Return the end of a job's log."""
    text = b""
    with suppress(FileNotFoundError):
        text = end_of(context.store.job_folder(job.id).log, tail)
    return reply({"text": text.decode("utf-8", "replace")})


@router.get("/jobs/{job}/gates", response_model=GateCounts, responses=FOUND)
def gates(context: ServiceContext, job: OwnJob) -> Any:
    """Return the number of gates per layer and kind at each evaluation; in a population, those of the best model."""
    history = jsonl.thinned(context.store.job_folder(job).gates, EVALUATIONS)
    if history == NOTHING:
        raise ApiError(404, "no_evaluation", "The job has not been evaluated yet.")
    return reply_text(f'{{"names":{NAMES},"history":{history}}}')


@router.get("/jobs/{job}/files", response_model=FileList, responses=FOUND)
def files(context: ServiceContext, job: OwnJob) -> Any:
    """List the files of a job by name."""
    return reply({"files": [vars(artefact) for artefact in artefacts.listed(context.store.job_folder(job))]})


@router.get(
    "/jobs/{job}/files/{name}",
    response_class=FileResponse,
    responses={
        200: {"content": {kind: {} for kind in FILE_KINDS}, "description": "The file."},
        **FOUND,
        **errors(400, 416),
    },
)
def file(
    context: ServiceContext, job: OwnJob, name: Annotated[str, Path(pattern=artefacts.NAME.pattern, max_length=100)]
) -> Response:
    """Return a file of a job; browsers open drawings and pages, and save other files."""
    path = artefacts.find(context.store.job_folder(job), name)
    media_type = artefacts.media_type(name)
    if path is None and name == dataset.NAME and "data" in job.options:  # no worker has taken the job yet
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(b64decode(job.options["data"]), 200, headers, media_type)
    if path is None:
        message = f"Unknown file of the job {job.id}: GET /jobs/{job.id}/files lists all."
        raise ApiError(404, "no_file", message)
    if name in artefacts.PAGES:
        return FileResponse(path, 200, artefacts.PAGE_HEADERS, "text/html", content_disposition_type="inline")
    if path.suffix != artefacts.DRAWING:
        return FileResponse(path, media_type=media_type, filename=name)
    headers = {"Content-Security-Policy": artefacts.DRAWING_POLICY}
    return FileResponse(path, 200, headers, media_type, filename=name, content_disposition_type="inline")


@router.get(
    "/jobs/{job}/archive",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "All files."}, **FOUND},
)
def archive(context: ServiceContext, job: OwnJob) -> Response:
    """Return a zip of all files of a job."""
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.zip"'}
    return StreamingResponse(
        artefacts.zipped(context.store.job_folder(job), job.id), media_type="application/zip", headers=headers
    )
