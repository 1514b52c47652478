"""Who asks: a token in the Authorization header, or the session cookie of a page that signed in with one.

A cookie is `OWNER.RANDOM`. The store keeps a signature of it by the owner's token: a token that is changed or
withdrawn ends its sessions. The page's writes carry another signature of the cookie, which other sites cannot read.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from difflogic.serve.failures import Failures
from difflogic.serve.faults import ApiError
from difflogic.serve.hosts import is_address
from difflogic.serve.settings import ServeSettings, is_loopback
from difflogic.serve.store import Store
from difflogic.serve.telemetry import Telemetry
from difflogic.serve.tokens import Tokens

COOKIE = "difflogic_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Caller:
    """Whoever a request comes from."""

    owner: str
    csrf: str | None
    """What writes with this cookie must carry; None where a token was sent."""


class Door:
    """Lets in who has a token."""

    def __init__(self, store: Store, tokens: Tokens, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._store, self._tokens, self._settings, self._telemetry = store, tokens, settings, telemetry
        self._failures = Failures()

    def caller(self, request: Request) -> Caller:
        """Raises ApiError where it is nobody who may come in."""
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            return Caller(self._owner(request, token.strip() if scheme.lower() == "bearer" else ""), None)
        cookie = request.cookies.get(COOKIE)
        caller = None if cookie is None else self._of_cookie(cookie)
        if caller is None:
            raise _unauthorized("Sign in, or send a token in the header `Authorization: Bearer TOKEN`.")
        if request.method not in SAFE:
            sent = request.headers.get(CSRF_HEADER, "")
            if caller.csrf is None or not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
                raise ApiError(
                    403, "csrf", f"A write with a session cookie needs the header {CSRF_HEADER}, as GET /session says."
                )
        return caller

    def sign_in(self, request: Request, token: str, response: Response) -> None:
        """A session for the token's owner, as a cookie. Raises ApiError."""
        owner = self._owner(request, token)
        cookie = f"{owner}.{secrets.token_urlsafe(32)}"
        signature = self._tokens.sign(owner, f"session:{cookie}")
        assert signature is not None
        seconds = self._settings.session_s
        self._store.open_session(signature, owner, seconds)
        response.set_cookie(
            COOKIE, cookie, max_age=int(seconds), path="/", secure=_is_encrypted(request), httponly=True,
            samesite="strict",
        )  # fmt: skip

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of the request's cookie, if it has one."""
        cookie = request.cookies.get(COOKIE, "")
        signature = self._tokens.sign(cookie.partition(".")[0], f"session:{cookie}")
        if signature is not None:
            self._store.close_session(signature)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")

    def _owner(self, request: Request, token: str) -> str:
        address = _address(request)
        wait = self._failures.wait_s(address)
        if wait:
            raise ApiError(
                429, "too_many_failures", f"Too many wrong tokens from here: try again in {wait} seconds.",
                {"Retry-After": str(wait)},
            )  # fmt: skip
        owner = self._tokens.owner(token)
        if owner is None:
            self._failures.add(address)
            self._telemetry.refused.inc()
            raise _unauthorized("This token is not one of the server's.")
        return owner

    def _of_cookie(self, cookie: str) -> Caller | None:
        owner = cookie.partition(".")[0]
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None or self._store.session_owner(signature) != owner:
            return None
        return Caller(owner, self._tokens.sign(owner, f"csrf:{cookie}"))


def _address(request: Request) -> str:
    """Where a request comes from; of one that a proxy on this machine passed on, the address that this one saw."""
    peer = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    return forwarded if is_loopback(peer) and is_address(forwarded) else peer


def _is_encrypted(request: Request) -> bool:
    """As far as the browser: a proxy before us may speak TLS. Who claims so wrongly only harms himself."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})
