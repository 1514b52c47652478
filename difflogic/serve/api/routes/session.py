"""Signing in and out on the page."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from difflogic.serve.context import ALWAYS, WRITES, Asks, Here, errors, reply
from difflogic.serve.schemas import SessionReply, SignIn

router = APIRouter(prefix="/session", tags=["session"])


@router.post("", status_code=204, responses=errors(400, 401, 408, 413, 421, 422, 429, 503))
def sign_in(request: Request, here: Here, body: SignIn) -> Response:
    """Sign in with a token: the answer sets a cookie that lasts a week."""
    response = Response(status_code=204)
    here.door.sign_in(request, body.token, response)
    return response


@router.get("", response_model=SessionReply, responses=errors(*ALWAYS))
def who(asks: Asks) -> Any:
    """Who is signed in, and what writes with the cookie must carry."""
    return reply({"owner": asks.owner, "csrf": asks.csrf})


@router.delete("", status_code=204, responses=errors(*ALWAYS, *WRITES))
def sign_out(request: Request, here: Here, _asks: Asks) -> Response:
    """End the session of the cookie."""
    response = Response(status_code=204)
    here.door.sign_out(request, response)
    return response
