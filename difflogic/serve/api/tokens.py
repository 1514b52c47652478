"""Map the tokens of a server to the owners of its jobs.

A token file has a line for each owner; empty lines and lines that begin with `#` are ignored.

    ann: TOKEN              sees and controls her own jobs
    ben priority: TOKEN     may also set a priority above 0 for his jobs
    cas operator: TOKEN     sees and controls the jobs of all owners

A changed file is read again. If the new file is invalid, the error is logged and the earlier tokens remain valid.
"""

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
from typing import Literal, NamedTuple, Self, get_args

from difflogic.errors import UsageError
from difflogic.serve.log import log_event
from difflogic.system import files

Role = Literal["operator", "priority"]
ROLES: tuple[Role, ...] = get_args(Role)
OPERATOR, PRIORITY = ROLES
"""Role that sees the jobs of all owners, and role that may set priorities above 0; a single token is an operator's."""
LEAST = 16
"""Minimum number of characters in a token."""
GENERATED = "token"
"""Name of the file in the store's folder that contains the generated token."""
OWNER = re.compile(r"[A-Za-z0-9_-]{1,40}")
TOKEN = re.compile(rf"[!-~]{{{LEAST},200}}")


class _Known(NamedTuple):
    digest: bytes
    roles: frozenset[str]


class Tokens:
    """Owners with their roles and with the hashes of their tokens."""

    def __init__(self, by_owner: Mapping[str, str], roles: Mapping[str, Collection[str]] | None = None) -> None:
        """Hash the tokens in `by_owner`. Raises UsageError for invalid names or tokens, without quoting a token."""
        if not by_owner:
            raise UsageError("Expected one or more lines NAME:TOKEN, got none.")
        for owner, token in by_owner.items():
            if not OWNER.fullmatch(owner):
                raise UsageError(f"The name of an owner must be 1 to 40 letters, digits, - and _, got {owner!r}.")
            if not TOKEN.fullmatch(token):
                raise UsageError(
                    f"The token of {owner} must be {LEAST} to 200 visible ASCII characters: create one with "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'."
                )
        # All digests have the same length, so that a comparison does not reveal a token's length.
        self._known = {
            owner: _Known(digest(token), frozenset((roles or {}).get(owner, ()))) for owner, token in by_owner.items()
        }
        if len({known.digest for known in self._known.values()}) < len(self._known):
            raise UsageError("Two owners have the same token: give each owner a different token.")
        self._path: Path | None = None
        self._mark: tuple[int, ...] | None = None
        """State of the file at `_path` before it was last read, as returned by `_mark_of`."""
        self._lock = threading.Lock()

    @classmethod
    def single(cls, token: str) -> Self:
        """Return the tokens of a server whose only token is the operator's."""
        return cls({OPERATOR: token}, {OPERATOR: [OPERATOR]})

    @classmethod
    def of_file(cls, path: Path) -> "Tokens":
        """Return the tokens in a file, which is read again whenever it changes. Raises UsageError."""
        mark = _mark_of(path)
        tokens = _read(path)
        tokens._path, tokens._mark = path, mark
        return tokens

    def owner(self, token: str) -> str | None:
        """Return the owner of a token, or None for an unknown token."""
        sent = digest(token)
        match: str | None = None
        # All tokens are compared, without an early exit, so that the time does not reveal whose token was nearly right.
        for owner, known in self._current().items():
            if hmac.compare_digest(known.digest, sent):
                match = owner
        return match

    def roles(self, owner: str) -> frozenset[str]:
        """Return the roles of an owner, or an empty set for an unknown owner."""
        entry = self._current().get(owner)
        return frozenset() if entry is None else entry.roles

    def sign(self, owner: str, text: str) -> str | None:
        """Return the hexadecimal HMAC of `text` with the owner's token as key, or None for an unknown owner."""
        entry = self._current().get(owner)
        return None if entry is None else hmac.new(entry.digest, text.encode(), hashlib.sha256).hexdigest()

    def _current(self) -> Mapping[str, _Known]:
        """Return the owners, after reading the file again if it has changed; log the error of an invalid file once."""
        if self._path is None:
            return self._known
        with self._lock:
            # The mark is computed before the file is read, so that a write during the read counts as another change.
            before, self._mark = self._mark, _mark_of(self._path)
            if self._mark != before:
                try:
                    self._known = _read(self._path)._known
                    log_event("tokens", owners=len(self._known))
                except UsageError as error:
                    log_event("tokens", logging.ERROR, why=f"{error} The earlier tokens remain valid.")
            return self._known


def _mark_of(path: Path) -> tuple[int, ...] | None:
    """Return a file's modification time, size and inode, which differ after a change, or None for a missing file."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


def _read(path: Path) -> Tokens:
    """Return the tokens in a file. Raises UsageError."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except OSError as error:
        raise UsageError(f"Cannot read the tokens in {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Cannot read the tokens in {path}: expected text in UTF-8.") from error
    lines = [line for line in lines if line and not line.startswith("#")]
    try:
        # A file that contains only a token belongs to a server with one owner.
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
            raise UsageError(f"Entry {number} must be NAME:TOKEN with a unique name.")
        if not set(words) <= set(ROLES):  # the words are not quoted, since one may be a token at the wrong place
            raise UsageError(f"Entry {number} has an unknown role: use {' or '.join(ROLES)}, or none before the colon.")
        by_owner[owner], roles[owner] = token.strip(), words
    return Tokens(by_owner, roles)


def digest(token: str) -> bytes:
    """Return the SHA-256 hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def generated_token(folder: Path) -> Path:
    """Return the path of the private file with the generated token; create it if missing. Raises OSError."""
    path = folder / GENERATED
    if not path.exists():
        # With this mask, the file is private from its creation on.
        before = os.umask(0o077)
        try:
            files.write_atomically(path, f"{secrets.token_urlsafe(32)}\n".encode())
        finally:
            os.umask(before)
    return path
