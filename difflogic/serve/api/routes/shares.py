"""Links that open one job to whoever has them, to be read: made, listed, revoked, and used."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from difflogic.serve.api.bodies import JsonRoute
from difflogic.serve.api.context import ALWAYS, WRITES, CurrentCaller, OwnJob, ServiceContext, errors, reply
from difflogic.serve.api.replies import LinkReply, ShareList, ShareMade
from difflogic.serve.api.schemas import LinkRequest, ShareRequest
from difflogic.serve.store.jobs import ID

router = APIRouter(tags=["links"], route_class=JsonRoute)

DAY_S = 24 * 3600.0
SHARING = errors(*ALWAYS, *WRITES, 404, 409)


@router.post("/jobs/{job}/shares", status_code=201, response_model=ShareMade, responses=SHARING | errors(415))
def share(context: ServiceContext, _caller: CurrentCaller, job: OwnJob, body: ShareRequest | None = None) -> Any:
    """Make a link that opens this job, its pictures, files and events to whoever has it, and nothing else."""
    asked = body or ShareRequest()
    seconds = None if asked.days is None else asked.days * DAY_S
    made, token = context.store.share(job.id, asked.label or "", seconds)
    return reply({"share": vars(made), "token": token, "path": f"#/shared/{job.id}/{token}"}, 201)


@router.get("/jobs/{job}/shares", response_model=ShareList, responses=errors(*ALWAYS, 404))
def shares(context: ServiceContext, job: OwnJob) -> Any:
    """The links that open this job."""
    return reply({"shares": [vars(each) for each in context.store.shares(job.id)]})


@router.delete("/jobs/{job}/shares/{share}", status_code=204, responses=SHARING)
async def unshare(
    context: ServiceContext,
    _caller: CurrentCaller,
    job: OwnJob,
    share: Annotated[str, Path(pattern=f"^{ID.pattern}$", description="The id of a link.")],
) -> Response:
    """Revoke a link: it opens nothing any more, and its streams of events end."""
    context.store.unshare(job.id, share)
    context.feed.wake()
    return Response(status_code=204)


@router.post("/session/link", response_model=LinkReply, responses=errors(400, 401, 408, 413, 415, 421, 422, 503))
async def open_link(request: Request, context: ServiceContext, body: LinkRequest) -> Response:
    """Open a link on the page: the answer sets a cookie that reads its job."""
    job = await context.authenticator.opened_by(request, body.token)
    response = reply({"job": job})
    context.authenticator.keep_link(request, job, body.token, response)
    return response
