"""Who may use the service: tokens, each of an owner, compared in constant time.

A file of tokens has a line `name:token` for each owner; empty lines and those that begin with `#` do not count.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from difflogic import files
from difflogic.errors import UsageError

OPERATOR = "operator"
"""Owner of the only token, where there is one."""
LEAST = 16
"""Characters of a token."""
GENERATED = "token"
"""Name of the file in the store that keeps a generated token."""
OWNER = re.compile(r"[A-Za-z0-9_-]{1,40}")
TOKEN = re.compile(rf"[!-~]{{{LEAST},200}}")


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
        self._digests = {owner: _digest(token) for owner, token in by_owner.items()}
        if len(set(self._digests.values())) < len(self._digests):
            raise UsageError("Two owners have the same token: give each one of its own.")

    def owner(self, token: str) -> str | None:
        """Whose token this is; every token is compared, whole, whichever fits."""
        found, digest = None, _digest(token)
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


def read(path: Path) -> Tokens:
    """The tokens in a file; one line without a name is the operator's. Raises UsageError."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise UsageError(f"Cannot read the tokens in {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Cannot read the tokens in {path}: it is not text in UTF-8.") from error
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


def generated(folder: Path) -> tuple[str, bool]:
    """The token kept in the store, and whether it was made now; the file is its owner's alone. Raises OSError."""
    path = folder / GENERATED
    if path.exists():
        return path.read_text(encoding="ascii").strip(), False
    token = secrets.token_urlsafe(32)
    before = os.umask(0o077)
    try:
        files.write_atomically(path, f"{token}\n".encode())
    finally:
        os.umask(before)
    return token, True
