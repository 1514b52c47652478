"""Authenticate requests by a token in the Authorization header, or by the session cookie of a signed-in browser.

A cookie is `OWNER.RANDOM`. The store has the cookie's HMAC, with the owner's token as key, so that a new token ends
all old sessions. A request that has a cookie and changes data also needs the CSRF token, which other sites cannot read.
"""

import hmac
import secrets
from dataclasses import dataclass, field

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.tokens import OPERATOR, PRIORITY, Tokens
from difflogic.serve.errors import ApiError
from difflogic.serve.store.store import Store

COOKIE = "difflogic_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
UNKNOWN = "Unknown token: use one of the server's tokens."


@dataclass(frozen=True)
class Caller:
    """Authenticated sender of a request."""

    owner: str
    csrf: str | None
    """CSRF token that requests with the session cookie require to change data; None for a request with a token."""
    roles: frozenset[str]
    secret: str = field(repr=False)
    """Token or cookie sent with the request."""

    @property
    def sees(self) -> str | None:
        """Owner whose jobs the caller may see and control, or None for the jobs of all owners."""
        return None if OPERATOR in self.roles else self.owner

    @property
    def may_hurry(self) -> bool:
        """True if the caller may set a priority above 0."""
        return bool(self.roles & {OPERATOR, PRIORITY})


class Authenticator:
    """Authentication of requests by token or session."""

    def __init__(self, store: Store, tokens: Tokens, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._store, self._tokens, self._settings, self._telemetry = store, tokens, settings, telemetry
        self._path = settings.root_path or "/"  # other services behind the same proxy do not get the cookie

    async def caller(self, request: Request) -> Caller:
        """Return the sender of a request. Raises ApiError if the token or cookie is missing or invalid."""
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            token = token.strip() if scheme.lower() == "bearer" else ""
            owner = self._owner(token)
            return Caller(owner, None, self._tokens.roles(owner), token)
        cookie = request.cookies.get(COOKIE)
        caller = None if cookie is None else self._of_cookie(cookie)
        if caller is None:
            raise _unauthorized("Sign in, or send a token in the header `Authorization: Bearer TOKEN`.")
        # Another site can make a browser send the cookie, but cannot read GET /session, which returns the CSRF token.
        if request.method not in SAFE:
            csrf = request.headers.get(CSRF_HEADER, "")
            if caller.csrf is None or not hmac.compare_digest(caller.csrf.encode(), csrf.encode()):
                message = f"A request with a session cookie requires the header {CSRF_HEADER} from GET /session."
                raise ApiError(403, "csrf", message)
        return caller

    def is_current(self, caller: Caller) -> bool:
        """Return whether the token or session of `caller` is still valid."""
        if caller.csrf is None:
            return self._tokens.owner(caller.secret) == caller.owner
        return self._of_cookie(caller.secret) is not None

    async def sign_in(self, request: Request, token: str, response: Response) -> None:
        """Open a session for the owner of `token`, and set its cookie in `response`. Raises ApiError."""
        owner = self._owner(token)
        # The store gets only a keyed hash: a reader of the database or a backup cannot sign in with it.
        cookie = f"{owner}.{secrets.token_urlsafe(32)}"
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None:  # the token was removed since `_owner` looked it up
            raise _unauthorized(UNKNOWN)
        seconds = self._settings.session_s
        await to_thread.run_sync(self._store.open_session, signature, owner, seconds)
        # TLS ends at this server or at a proxy. A client that sends a false header only harms itself.
        is_encrypted = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
        response.set_cookie(
            COOKIE, cookie, max_age=int(seconds), path=self._path, secure=is_encrypted, httponly=True,
            samesite="strict",
        )  # fmt: skip

    async def sign_out(self, request: Request, response: Response) -> None:
        """End the session of the request's cookie, if any, and delete the cookie from the browser."""
        cookie = request.cookies.get(COOKIE, "")
        signature = self._tokens.sign(cookie.partition(".")[0], f"session:{cookie}")
        if signature is not None:
            await to_thread.run_sync(self._store.close_session, signature)
        response.delete_cookie(COOKIE, path=self._path, httponly=True, samesite="strict")

    def _owner(self, token: str) -> str:
        # A token cannot be guessed: it has at least 16 characters, and a generated token has 256 random bits.
        owner = self._tokens.owner(token)
        if owner is None:
            self._telemetry.refused.inc()
            raise _unauthorized(UNKNOWN)
        return owner

    def _of_cookie(self, cookie: str) -> Caller | None:
        owner = cookie.partition(".")[0]
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None or self._store.session_owner(signature) != owner:
            return None
        return Caller(owner, self._tokens.sign(owner, f"csrf:{cookie}"), self._tokens.roles(owner), cookie)


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})
