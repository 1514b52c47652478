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
from typing import NamedTuple, TypeVar

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from difflogic.serve.api.settings import ServeSettings, network_of
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.api.tokens import OPERATOR, PRIORITY, Tokens, digest
from difflogic.serve.errors import ApiError
from difflogic.serve.store.access import SHARE
from difflogic.serve.store.jobs import UnknownJobError
from difflogic.serve.store.store import Store

Key = TypeVar("Key")
Value = TypeVar("Value")

COOKIE = "difflogic_session"
SHARED = "difflogic_share_"
"""How the cookies of links begin; the id of the job follows, so that a browser may have several."""
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
    only: str | None = None
    """The one job that a link opens to whoever has it, to be read; None: no link."""

    @property
    def sees(self) -> str | None:
        """The owner of the jobs that are the caller's to see and steer; None: everybody's."""
        return None if OPERATOR in self.roles else self.owner

    @property
    def may_hurry(self) -> bool:
        """Whether the caller may give a priority above 0."""
        return bool(self.roles & {OPERATOR, PRIORITY})


class _Opened(NamedTuple):
    job: str
    owner: str


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
            if SHARE.fullmatch(token):
                raise ApiError(403, "shared", "This link only lets you view one job.")
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

    async def reader(self, request: Request, job: str) -> Caller:
        """Find out who wants to read a job: an owner, or somebody with a link that opens it. Raises ApiError."""
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        token = sent.strip() if scheme.lower() == "bearer" and SHARE.fullmatch(sent.strip()) else None
        if token is None and not scheme:
            token = request.cookies.get(SHARED + job)
            session = self._of_cookie(request.cookies.get(COOKIE, ""))
            # Who is signed in, and opens a link to somebody else's job, reads that one by the link.
            if session is not None and (token is None or session.sees in (None, self._owner_of(job))):
                return session
        if token is None:
            return await self.caller(request)
        opened = await self._opened(request, token)
        return Caller(opened.owner, None, frozenset(), token, opened.job)

    def _owner_of(self, job: str) -> str | None:
        try:
            return self._store.job(job).owner
        except UnknownJobError:
            return None

    async def opened_by(self, request: Request, token: str) -> str:
        """The job that a link opens. Raises ApiError."""
        return (await self._opened(request, token)).job

    def keep_link(self, request: Request, job: str, token: str, response: Response) -> None:
        """Let the page read the job of a link from here on."""
        response.set_cookie(
            SHARED + job, token, max_age=int(self._settings.session_s), path=self._path,
            secure=_is_encrypted(request), httponly=True, samesite="strict",
        )  # fmt: skip

    async def _opened(self, request: Request, token: str) -> _Opened:
        address = request.client.host if request.client else ""
        if self._failures.is_guess(address, token):
            await self._wait(self._settings.guess_s)
        opened = self._link(token)
        self._failures.note(address, token, opened is not None)
        if opened is None:
            raise _unauthorized("This link is no longer valid: ask for another one.")
        return opened

    def _link(self, token: str) -> _Opened | None:
        """What a link opens, as long as the owner of the job is one of the server's."""
        found = self._store.opened_by(token)
        return None if found is None or not self._tokens.knows(found[1]) else _Opened(*found)

    def is_current(self, caller: Caller) -> bool:
        """Whether the caller would be let in again: the session or link has not ended, the token was not withdrawn."""
        if caller.only is not None:
            opened = self._link(caller.secret)
            return opened is not None and opened.job == caller.only
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
