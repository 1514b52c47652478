"""Signing in and out on the page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from difflogic.serve.api.bodies import JsonRoute
from difflogic.serve.api.context import ALWAYS, WRITES, CurrentCaller, ServiceContext, errors, reply
from difflogic.serve.api.replies import SessionReply

router = APIRouter(prefix="/session", tags=["session"], route_class=JsonRoute)


class SignIn(BaseModel):
    """The token to sign in with, one of the server's."""

    model_config = ConfigDict(extra="forbid", strict=True)

    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


@router.post("", status_code=204, responses=errors(400, 401, 413, 415, 421, 422, 503))
async def sign_in(request: Request, context: ServiceContext, body: SignIn) -> Response:
    """Sign in with a token: the answer sets a cookie that lasts a week."""
    response = Response(status_code=204)
    await context.authenticator.sign_in(request, body.token, response)
    return response


@router.get("", response_model=SessionReply, responses=errors(*ALWAYS))
def who(caller: CurrentCaller) -> Any:
    """Who is signed in, and what writes with the cookie must carry."""
    return reply({"owner": caller.owner, "csrf": caller.csrf, "roles": sorted(caller.roles)})


@router.delete("", status_code=204, responses=errors(*ALWAYS, *WRITES))
async def sign_out(request: Request, context: ServiceContext, _caller: CurrentCaller) -> Response:
    """End the session of the cookie, and its streams of events."""
    response = Response(status_code=204)
    await context.authenticator.sign_out(request, response)
    context.feed.wake()
    return response
