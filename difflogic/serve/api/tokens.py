"""The owners of a server and their tokens.

A file of tokens has a line for each owner; empty lines and those that begin with `#` do not count.

    ann: TOKEN              sees and steers her own jobs
    ben priority: TOKEN     may also give them a priority above 0
    cas operator: TOKEN     sees and steers everybody's

The file is looked at again whenever it has changed. One that cannot be used is said in the log, and changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from difflogic.errors import UsageError
from difflogic.serve.log import log_event
from difflogic.system import files

Role = Literal["operator", "priority"]
ROLES: tuple[Role, ...] = get_args(Role)
OPERATOR, PRIORITY = ROLES
"""The role that sees everybody's jobs, also the owner of a token without a name; and that of priorities above 0."""
LEAST = 16
"""The least characters of a token."""
GENERATED = "token"
"""Name of the file in the store that keeps a generated token."""
OWNER = re.compile(r"[A-Za-z0-9_-]{1,40}")
TOKEN = re.compile(rf"[!-~]{{{LEAST},200}}")


class _Known(NamedTuple):
    digest: bytes
    roles: frozenset[str]


class Tokens:
    """The owners, their roles and their tokens, of which only hashes are compared."""

    def __init__(self, by_owner: Mapping[str, str], roles: Mapping[str, Collection[str]] | None = None) -> None:
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
        self._known = {
            owner: _Known(digest(token), frozenset((roles or {}).get(owner, ()))) for owner, token in by_owner.items()
        }
        if len({each.digest for each in self._known.values()}) < len(self._known):
            raise UsageError("Two owners have the same token: give each one of its own.")
        self._path: Path | None = None
        self._mark: tuple[int, ...] | None = None
        """What the file at `_path` looked like before it was last read."""
        self._lock = threading.Lock()

    @classmethod
    def single(cls, token: str) -> Tokens:
        """The tokens of a server with one, which may do everything."""
        return cls({OPERATOR: token}, {OPERATOR: [OPERATOR]})

    @classmethod
    def of_file(cls, path: Path) -> Tokens:
        """The tokens in a file, as it is at any time; one line without a name is the operator's. Raises UsageError."""
        mark = _mark_of(path)
        tokens = _read(path)
        tokens._path, tokens._mark = path, mark
        return tokens

    def owner(self, token: str) -> str | None:
        """Return the owner of a token, or None; every known token is compared, whole, whichever fits."""
        found, sent = None, digest(token)
        # No early exit: the time it takes must not tell whose token was nearly right.
        for owner, known in self._current().items():
            if hmac.compare_digest(known.digest, sent):
                found = owner
        return found

    def roles(self, owner: str) -> frozenset[str]:
        """What an owner may do besides; nothing where there is no such owner."""
        known = self._current().get(owner)
        return frozenset() if known is None else known.roles

    def sign(self, owner: str, text: str) -> str | None:
        """Hexadecimal digits that nobody makes without the owner's token; None where there is no such owner."""
        known = self._current().get(owner)
        return None if known is None else hmac.new(known.digest, text.encode(), hashlib.sha256).hexdigest()

    def _current(self) -> Mapping[str, _Known]:
        if self._path is not None:
            self._reread(self._path)
        return self._known

    def _reread(self, path: Path) -> None:
        """Take over what is in the file where it changed; where that cannot be used, the log says why, once."""
        with self._lock:
            # The mark is taken before the file is read: what is written meanwhile is another change.
            mark, before = _mark_of(path), self._mark
            self._mark = mark
            if mark == before:
                return
            try:
                self._known = _read(path)._known  # all owners in one assignment: nobody meets half of a file
                log_event("tokens", owners=len(self._known))
            except UsageError as error:
                log_event("tokens", logging.ERROR, why=f"{error} The earlier tokens stay valid.")


def _mark_of(path: Path) -> tuple[int, ...] | None:
    """Return what shows that a file has changed; None if it cannot be seen."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


def _read(path: Path) -> Tokens:
    """The tokens in a file. Raises UsageError."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except OSError as error:
        raise UsageError(f"Cannot read the tokens in {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Cannot read the tokens in {path}: it is not text in UTF-8.") from error
    lines = [line for line in lines if line and not line.startswith("#")]
    try:
        # A file with nothing but a token is that of a server with one owner.
        return Tokens.single(lines[0]) if len(lines) == 1 and ":" not in lines[0] else _of_lines(lines)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _of_lines(lines: list[str]) -> Tokens:
    by_owner: dict[str, str] = {}
    roles: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        before, colon, token = line.partition(":")
        owner, *words = before.split() or [""]
        if not colon or owner in by_owner:
            raise UsageError(f"Token {number} is not name:token with a name of its own.")
        if not set(words) <= set(ROLES):  # not quoted: it may be a token at the wrong place
            raise UsageError(f"Token {number}: expected nothing, {' or '.join(ROLES)} between the name and the colon.")
        by_owner[owner], roles[owner] = token.strip(), words
    return Tokens(by_owner, roles)


def digest(token: str) -> bytes:
    """The hash under which a token is known."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def generated_token(folder: Path) -> Path:
    """The file in the store with a token that is made where there is none; it is its owner's alone. Raises OSError."""
    path = folder / GENERATED
    if not path.exists():
        # Never readable for others, not even for the moment between making the file and changing its mode.
        before = os.umask(0o077)
        try:
            files.write_atomically(path, f"{secrets.token_urlsafe(32)}\n".encode())
        finally:
            os.umask(before)
    return path
