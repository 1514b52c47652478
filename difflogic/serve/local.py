"""The servers of this user on this machine: commands find the tokens that these made, and need not be told them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from difflogic.serve.api.settings import is_loopback
from difflogic.serve.store.presence import Presence, is_gone
from difflogic.system.cache import JsonCache, user_cache

SERVERS = JsonCache("servers")
"""The file with the token of each server, by its port."""


@contextmanager
def findable(port: int, token: Path | None) -> Iterator[None]:
    """Let the commands of this user find the token that a server made, as long as this lasts; None: it made none."""
    with ExitStack() as stack:
        if token is not None:
            with suppress(OSError):  # where the user's cache cannot be written, the token is set by hand
                stack.enter_context(closing(Presence(user_cache(), _name(port))))
                SERVERS.write(str(port), {"token": str(token.resolve())})
                stack.callback(SERVERS.drop, str(port))
        yield


def token_of(address: str) -> str | None:
    """The token of the server at an address, where it is one of this user's; None where nobody knows it."""
    parts = urlsplit(address)
    found = SERVERS.read().get(str(parts.port)) if is_loopback(parts.hostname or "") else None
    # A server that was killed left its entry: whoever has its port now may be anybody, and gets no token.
    if found is None or is_gone(user_cache(), _name(parts.port or 0)):
        return None
    with suppress(OSError):
        return Path(found["token"]).read_text(encoding="ascii").strip()
    return None


def _name(port: int) -> str:
    return f"server-{port}"
