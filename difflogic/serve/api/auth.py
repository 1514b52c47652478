"""Who asks: a token in the Authorization header, or the session cookie of a page that signed in with one.

A cookie is `OWNER.RANDOM`. The store keeps a signature of it by the owner's token: a token that is changed or
withdrawn ends its sessions. The page's writes carry another signature of the cookie, which other sites cannot read.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from difflogic.serve.api.settings import ServeSettings, network_of
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.tokens import OPERATOR, PRIORITY, Tokens, digest
from difflogic.serve.errors import ApiError
from difflogic.serve.store.store import Store

Key = TypeVar("Key")
Value = TypeVar("Value")

COOKIE = "difflogic_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
UNKNOWN = "This token is not one of the server's."
MOST_FAILURES = 10
"""So many different wrong tokens from one address within a window are guesses, and so is the next."""
WINDOW_S = 60.0
ADDRESSES = 10_000
"""So many addresses are remembered; the one that failed longest ago is forgotten first."""


class Failures:
    """Different wrong tokens by address, an IPv6 one by its network of 64 bits, and right ones that came from there.

    A token is known by the first bytes of its hash: a forgotten script that sends one old token again and again is no
    guesser, and whoever sent a right one goes on undisturbed beside one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, OrderedDict[bytes, float]] = OrderedDict()
        self._right: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = threading.Lock()

    def is_guess(self, address: str, token: str) -> bool:
        """Whether a token may be one of many that are tried from an address: nothing of it is told before a while."""
        with self._lock:
            network, now = network_of(address), self._clock()
            times = self._wrong.get(network, OrderedDict()).values()
            recent = sum(now - each < WINDOW_S for each in times)
            return recent >= MOST_FAILURES and (network, digest(token)[:8]) not in self._right

    def note(self, address: str, token: str, is_right: bool) -> None:
        """Remember what came of a token from this address."""
        with self._lock:
            network, known_by = network_of(address), digest(token)[:8]
            if is_right:
                _newest(self._right, (network, known_by), None, ADDRESSES)
                return
            # An attacker with many addresses, or many tokens, must not fill the memory.
            _newest(self._wrong, network, self._wrong.get(network, OrderedDict()), ADDRESSES)
            _newest(self._wrong[network], known_by, self._clock(), MOST_FAILURES)


def _newest(entries: OrderedDict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Set an entry, as the last; the first is forgotten where there are more than `most`."""
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > most:
        entries.popitem(last=False)


@dataclass(frozen=True)
class Caller:
    """Whoever a request comes from."""

    owner: str
    csrf: str | None
    """The value that writes with this cookie must carry; None where a token was sent."""
    roles: frozenset[str]
    secret: str = field(repr=False)
    """The token or the cookie."""

    @property
    def sees(self) -> str | None:
        """The owner of the jobs that are the caller's to see and steer; None: everybody's."""
        return None if OPERATOR in self.roles else self.owner

    @property
    def may_hurry(self) -> bool:
        """Whether the caller may give a priority above 0."""
        return bool(self.roles & {OPERATOR, PRIORITY})


class Authenticator:
    """Finds the owner of a request by its token or its session, and holds up those who try tokens."""

    def __init__(self, store: Store, tokens: Tokens, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._store, self._tokens, self._settings, self._telemetry = store, tokens, settings, telemetry
        self._failures = Failures()

    async def caller(self, request: Request) -> Caller:
        """Find out who sent a request. Raises ApiError where it is nobody who may come in."""
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            token = token.strip() if scheme.lower() == "bearer" else ""
            owner = await self._owner(request, token)
            return Caller(owner, None, self._tokens.roles(owner), token)
        cookie = request.cookies.get(COOKIE)
        caller = None if cookie is None else self._of_cookie(cookie)
        if caller is None:
            raise _unauthorized("Sign in, or send a token in the header `Authorization: Bearer TOKEN`.")
        # A browser sends the cookie along with whatever another site makes it send. That site cannot read the answer of
        # GET /session, and so does not know the second value.
        if request.method not in SAFE:
            sent = request.headers.get(CSRF_HEADER, "")
            if caller.csrf is None or not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
                words = f"A request with a session cookie needs the header {CSRF_HEADER}, which GET /session returns."
                raise ApiError(403, "csrf", words)
        return caller

    def is_current(self, caller: Caller) -> bool:
        """Whether the caller would be let in again: the session has not ended, the token was not withdrawn."""
        if caller.csrf is None:
            return self._tokens.owner(caller.secret) == caller.owner
        return self._of_cookie(caller.secret) is not None

    async def sign_in(self, request: Request, token: str, response: Response) -> None:
        """Open a session for the token's owner, and set its cookie. Raises ApiError."""
        owner = await self._owner(request, token)
        # The store gets a keyed hash of the cookie alone. Whoever reads the database or a backup cannot sign in with
        # it.
        cookie = f"{owner}.{secrets.token_urlsafe(32)}"
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None:  # withdrawn just now
            raise _unauthorized(UNKNOWN)
        seconds = self._settings.session_s
        await to_thread.run_sync(self._store.open_session, signature, owner, seconds)
        response.set_cookie(
            COOKIE, cookie, max_age=int(seconds), path=self._path, secure=_is_encrypted(request), httponly=True,
            samesite="strict",
        )  # fmt: skip

    async def sign_out(self, request: Request, response: Response) -> None:
        """End the session of the request's cookie, if it has one."""
        cookie = request.cookies.get(COOKIE, "")
        signature = self._tokens.sign(cookie.partition(".")[0], f"session:{cookie}")
        if signature is not None:
            await to_thread.run_sync(self._store.close_session, signature)
        response.delete_cookie(COOKIE, path=self._path, httponly=True, samesite="strict")

    @property
    def _path(self) -> str:
        # Another service behind the same proxy does not get the cookie.
        return self._settings.root_path or "/"

    async def _owner(self, request: Request, token: str) -> str:
        address = request.client.host if request.client else ""
        # Before the look at the token: else whoever breaks off after a moment without an answer knows that the token is
        # wrong, and is not held up at all.
        if self._failures.is_guess(address, token):
            await self._wait(self._settings.guess_s)
        owner = self._tokens.owner(token)
        self._failures.note(address, token, owner is not None)
        if owner is None:
            self._telemetry.refused.inc()
            raise _unauthorized(UNKNOWN)
        return owner

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _of_cookie(self, cookie: str) -> Caller | None:
        owner = cookie.partition(".")[0]
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None or self._store.session_owner(signature) != owner:
            return None
        return Caller(owner, self._tokens.sign(owner, f"csrf:{cookie}"), self._tokens.roles(owner), cookie)


def _is_encrypted(request: Request) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy before us. Who claims so wrongly only harms himself."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})
