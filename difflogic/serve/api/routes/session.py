"""Routes that sign users of the web page in and out."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from difflogic.config.fields import section
from difflogic.config.request import Request as AnyRequest
from difflogic.config.request import option
from difflogic.serve.api import bodies
from difflogic.serve.api.context import ALWAYS, WRITES, CurrentCaller, ServiceContext, errors, reply
from difflogic.serve.api.replies import SessionReply

router = APIRouter(prefix="/session", tags=["session"])


@section
class SignIn(AnyRequest):
    """Token to sign in with."""

    token: str = option("One of the server's tokens", default="", group="session")


@router.post(
    "", status_code=204, responses=errors(400, 401, 413, 415, 421, 422, 503), openapi_extra=bodies.action_body(SignIn)
)
async def sign_in(request: Request, context: ServiceContext) -> Response:
    """Sign in with a token: the response sets a cookie that is valid for a week."""
    response = Response(status_code=204)
    await context.authenticator.sign_in(request, (await bodies.read_request(SignIn, request)).token, response)
    return response


@router.get("", response_model=SessionReply, responses=errors(*ALWAYS))
def who(caller: CurrentCaller) -> Any:
    """Return the signed-in owner, and the CSRF token that requests with the cookie need to change data."""
    return reply({"owner": caller.owner, "csrf": caller.csrf, "roles": sorted(caller.roles)})


@router.delete("", status_code=204, responses=errors(*ALWAYS, *WRITES))
async def sign_out(request: Request, context: ServiceContext, _caller: CurrentCaller) -> Response:
    """End the session of the cookie, and close the session's event streams."""
    response = Response(status_code=204)
    await context.authenticator.sign_out(request, response)
    context.feed.wake()
    return response
