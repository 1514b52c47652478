"""What a job left: metrics, log, gates and files."""

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
from difflogic.serve.api.context import (
    ALWAYS,
    CurrentCaller,
    OwnJob,
    ServiceContext,
    errors,
    reply,
    reply_text,
)
from difflogic.serve.api.replies import Comparison, FileList, GateCounts, LogReply, MetricRows
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import ID
from difflogic.system.files import tail as end_of

router = APIRouter(tags=["results"])

ROWS = 10_000
"""The most rows in one answer, unless one epoch of a large population has more."""
POINTS = 1000
"""Epochs of one job in a comparison; of a population fewer, so that there are not more than ROWS."""
EVALUATIONS = 200
"""The most evaluations of a gate history in one answer; more cannot be told apart on a page."""
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
    """Rows of the metrics after an epoch."""
    epochs = min(limit, jsonl.epochs_in(ROWS, job.asked.population))
    folder = context.store.job_folder(job)
    folder = folder if attempt is None else replace(folder, attempt=attempt)
    found = jsonl.after(folder.run / JSONL, after, epochs, job.asked.population)
    # A full answer may have more behind it. One that is not full has reached the end of what there is now.
    follows = found.until if found.epochs == epochs else "null"
    return reply_text(f'{{"rows":{found.text},"next":{follows}}}')


@router.get("/compare", response_model=Comparison, responses=FOUND)
def compare(
    context: ServiceContext,
    caller: CurrentCaller,
    ids: Annotated[
        str, Query(pattern=f"^{ID.pattern}(,{ID.pattern}){{0,15}}$", description="Ids, separated by commas.")
    ],
) -> Any:
    """Rows of several jobs, few enough to be drawn over each other."""
    jobs = [context.store.job(each, caller.sees) for each in dict.fromkeys(ids.split(","))]
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
    """The end of what the job's workers wrote."""
    text = b""
    with suppress(FileNotFoundError):
        text = end_of(context.store.job_folder(job.id).log, tail)
    return reply({"text": text.decode("utf-8", "replace")})


@router.get("/jobs/{job}/gates", response_model=GateCounts, responses=FOUND)
def gates(context: ServiceContext, job: OwnJob) -> Any:
    """Which gates each layer was made of, evaluation by evaluation, of a population in the best model."""
    found = jsonl.thinned(context.store.job_folder(job).gates, EVALUATIONS)
    if found == NOTHING:
        raise ApiError(404, "no_evaluation", "There was no evaluation yet.")
    return reply_text(f'{{"names":{NAMES},"history":{found}}}')


@router.get("/jobs/{job}/files", response_model=FileList, responses=FOUND)
def files(context: ServiceContext, job: OwnJob) -> Any:
    """The files of the job that can be fetched, by name."""
    return reply({"files": [vars(each) for each in artefacts.listed(context.store.job_folder(job))]})


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
    """One of the job's files, as it is: a drawing to be opened, all others to be saved."""
    found = artefacts.find(context.store.job_folder(job), name)
    media_type = artefacts.media_type(name)
    if found is None and name == dataset.NAME and "data" in job.options:  # no worker has begun with it
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(b64decode(job.options["data"]), 200, headers, media_type)
    if found is None:
        words = f"The job {job.id} has no file of this name: GET /jobs/{job.id}/files lists them."
        raise ApiError(404, "no_file", words)
    if name in artefacts.PAGES:
        return FileResponse(found, 200, artefacts.PAGE_HEADERS, "text/html", content_disposition_type="inline")
    if found.suffix != artefacts.DRAWING:
        return FileResponse(found, media_type=media_type, filename=name)
    headers = {"Content-Security-Policy": artefacts.DRAWING_POLICY}
    return FileResponse(found, 200, headers, media_type, filename=name, content_disposition_type="inline")


@router.get(
    "/jobs/{job}/archive",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "All files."}, **FOUND},
)
def archive(context: ServiceContext, job: OwnJob) -> Response:
    """All files of a job, in one zip."""
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.zip"'}
    return StreamingResponse(
        artefacts.zipped(context.store.job_folder(job), job.id), media_type="application/zip", headers=headers
    )
