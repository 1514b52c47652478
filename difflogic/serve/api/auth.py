"""Who asks: a token in the Authorization header, or the session cookie of a page that signed in with one.

A cookie is `OWNER.RANDOM`. The store keeps a signature of it by the owner's token: a token that is changed or
withdrawn ends its sessions. The page's writes carry another signature of the cookie, which other sites cannot read.

A file of tokens has a line `name:token` for each owner; empty lines and those that begin with `#` do not count.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import os
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from difflogic.errors import UsageError
from difflogic.serve.api.settings import ServeSettings, is_address, is_loopback
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.errors import ApiError
from difflogic.serve.store.store import Store
from difflogic.system import files

COOKIE = "difflogic_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
UNKNOWN = "This token is not one of the server's."
OPERATOR = "operator"
"""Owner of the only token, where there is one."""
LEAST = 16
"""The least characters of a token."""
GENERATED = "token"
"""Name of the file in the store that keeps a generated token."""
OWNER = re.compile(r"[A-Za-z0-9_-]{1,40}")
TOKEN = re.compile(rf"[!-~]{{{LEAST},200}}")
MOST_FAILURES = 10
"""The most wrong tokens from one address within a window."""
WINDOW_S = 60.0
ADDRESSES = 10_000
"""So many addresses are remembered; the one that failed longest ago is forgotten first."""


class Tokens:
    """The owners and their tokens, of which only hashes are compared."""

    def __init__(self, by_owner: Mapping[str, str]) -> None:
        """Raises UsageError for names and tokens that cannot be used; no token is ever in its sentence."""
        if not by_owner:
            raise UsageError("There is no token in it: expected lines name:token.")
        for owner, token in by_owner.items():
            if not OWNER.fullmatch(owner):
                raise UsageError(f"The owner {owner!r} must be 1 to 40 letters, digits, - and _.")
            if not TOKEN.fullmatch(token):
                raise UsageError(
                    f"The token of {owner} must be {LEAST} to 200 visible ASCII characters: make one with "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'."
                )
        # Digests have one length, so that comparing them tells nothing about a token's length.
        self._digests = {owner: _digest(token) for owner, token in by_owner.items()}
        if len(set(self._digests.values())) < len(self._digests):
            raise UsageError("Two owners have the same token: give each one of its own.")

    def owner(self, token: str) -> str | None:
        """Return the owner of a token, or None; every known token is compared, whole, whichever fits."""
        found, digest = None, _digest(token)
        # No early exit: the time it takes must not tell whose token was nearly right.
        for owner, known in self._digests.items():
            if hmac.compare_digest(known, digest):
                found = owner
        return found

    def sign(self, owner: str, text: str) -> str | None:
        """Hexadecimal digits that nobody makes without the owner's token; None where there is no such owner."""
        key = self._digests.get(owner)
        return None if key is None else hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_tokens(path: Path) -> Tokens:
    """The tokens in a file; one line without a name is the operator's. Raises UsageError."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except OSError as error:
        raise UsageError(f"Cannot read the tokens in {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Cannot read the tokens in {path}: it is not text in UTF-8.") from error
    # A file with nothing but a token is that of a server with one owner.
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) == 1 and ":" not in lines[0]:
        return Tokens({OPERATOR: lines[0]})
    by_owner: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        owner, colon, token = line.partition(":")
        if not colon or owner.strip() in by_owner:
            raise UsageError(f"Token {number} of {path} is not name:token with a name of its own.")
        by_owner[owner.strip()] = token.strip()
    try:
        return Tokens(by_owner)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def generated_token(folder: Path) -> tuple[str, bool]:
    """The token kept in the store, and whether it was made now; the file is its owner's alone. Raises OSError."""
    path = folder / GENERATED
    if path.exists():
        return path.read_text(encoding="ascii").strip(), False
    token = secrets.token_urlsafe(32)
    # Never readable for others, not even for the moment between making the file and changing its mode.
    before = os.umask(0o077)
    try:
        files.write_atomically(path, f"{token}\n".encode())
    finally:
        os.umask(before)
    return token, True


class Failures:
    """Wrong tokens by address, an IPv6 one by its network of 64 bits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> int:
        """Whole seconds until this address may try again; 0 where it may."""
        with self._lock:
            times = self._times.get(_network(address), deque[float]())
            now = self._clock()
            # An example: wrong tokens at 0, 1, ..., 9 s. At 10 s there are ten within a minute, and the first of them
            # leaves the window at 60 s: wait 50 s.
            recent = [each for each in times if now - each < WINDOW_S]
            return 0 if len(recent) < MOST_FAILURES else math.ceil(recent[-MOST_FAILURES] + WINDOW_S - now)

    def add(self, address: str) -> None:
        """Note that this address has sent a wrong token."""
        with self._lock:
            group = _network(address)
            self._times.setdefault(group, deque(maxlen=MOST_FAILURES)).append(self._clock())
            self._times.move_to_end(group)
            # An attacker with many addresses must not fill the memory.
            while len(self._times) > ADDRESSES:
                self._times.popitem(last=False)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    # Whoever has one IPv6 address has its whole network of 2^64, and could take a new one for each try.
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))


@dataclass(frozen=True)
class Caller:
    """Whoever a request comes from."""

    owner: str
    csrf: str | None
    """The value that writes with this cookie must carry; None where a token was sent."""


class Authenticator:
    """Finds the owner of a request by its token or its session, and counts wrong tokens."""

    def __init__(self, store: Store, tokens: Tokens, settings: ServeSettings, telemetry: Telemetry) -> None:
        self._store, self._tokens, self._settings, self._telemetry = store, tokens, settings, telemetry
        self._failures = Failures()

    def caller(self, request: Request) -> Caller:
        """Find out who sent a request. Raises ApiError where it is nobody who may come in."""
        header = request.headers.get("authorization")
        if header is not None:
            scheme, _, token = header.partition(" ")
            return Caller(self._owner(request, token.strip() if scheme.lower() == "bearer" else ""), None)
        cookie = request.cookies.get(COOKIE)
        caller = None if cookie is None else self._of_cookie(cookie)
        if caller is None:
            raise _unauthorized("Sign in, or send a token in the header `Authorization: Bearer TOKEN`.")
        # A browser sends the cookie along with whatever another site makes it send. That site cannot read the answer of
        # GET /session, and so does not know the second value.
        if request.method not in SAFE:
            sent = request.headers.get(CSRF_HEADER, "")
            if caller.csrf is None or not hmac.compare_digest(caller.csrf.encode(), sent.encode()):
                raise ApiError(
                    403, "csrf", f"A write with a session cookie needs the header {CSRF_HEADER}, as GET /session says."
                )
        return caller

    def sign_in(self, request: Request, token: str, response: Response) -> None:
        """Open a session for the token's owner, and set its cookie. Raises ApiError."""
        owner = self._owner(request, token)
        # The store gets a keyed hash of the cookie alone. Whoever reads the database or a backup cannot sign in with
        # it.
        cookie = f"{owner}.{secrets.token_urlsafe(32)}"
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None:  # withdrawn just now
            raise _unauthorized(UNKNOWN)
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
            raise _unauthorized(UNKNOWN)
        return owner

    def _of_cookie(self, cookie: str) -> Caller | None:
        owner = cookie.partition(".")[0]
        signature = self._tokens.sign(owner, f"session:{cookie}")
        if signature is None or self._store.session_owner(signature) != owner:
            return None
        return Caller(owner, self._tokens.sign(owner, f"csrf:{cookie}"))


def _address(request: Request) -> str:
    """The address that a request comes from, by what a proxy on this machine saw where it passed it on."""
    peer = request.client.host if request.client else ""
    # The last entry was added by the proxy next to us. Those before it are what clients claim, and are not believed;
    # nor is the header at all where no proxy on this machine sent it.
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    return forwarded if is_loopback(peer) and is_address(forwarded) else peer


def _is_encrypted(request: Request) -> bool:
    """Whether the browser speaks TLS, with us or with a proxy before us. Who claims so wrongly only harms himself."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})
