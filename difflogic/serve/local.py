"""Find the servers that this user runs on this machine, with their addresses and generated tokens."""

import ipaddress
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from difflogic.errors import UsageError
from difflogic.serve.api.settings import ServeSettings, is_address, is_loopback
from difflogic.serve.store.presence import Presence, is_gone
from difflogic.system.cache import Entry, JsonCache, user_cache

SERVERS = JsonCache("servers")
"""Cache file with the address of each server and the path of its generated token, by port."""


@contextmanager
def findable(settings: ServeSettings, port: int, token: Path | None) -> Iterator[None]:
    """Register a server for this user's commands until the context ends; `token` is the path of its generated token."""
    if is_address(settings.host) and ipaddress.ip_address(settings.host).is_unspecified:  # all addresses
        settings = replace(settings, host="::1" if ":" in settings.host else "127.0.0.1")
    entry = {"address": settings.address(port), "host": platform.node()}
    with ExitStack() as stack:
        with suppress(OSError):  # without a writable cache, the user must set address and token
            stack.enter_context(closing(Presence(user_cache(), f"server-{port}")))
            SERVERS.write(str(port), entry | ({} if token is None else {"token": str(token.resolve())}))
            stack.callback(SERVERS.drop, str(port))
        yield


def running_server() -> str | None:
    """Return the address of this user's server on this machine, or None. Raises UsageError for several servers."""
    addresses = sorted({address for entry in _running().values() if (address := str(entry.get("address", "")))})
    if len(addresses) > 1:
        raise UsageError(f"Several servers are running, {', '.join(addresses)}: set DIFFLOGIC_SERVER to one of them.")
    return addresses[0] if addresses else None


def token_of(address: str) -> str | None:
    """Return the generated token of the server at `address`, or None if it is not a server of this user."""
    parts = urlsplit(address)
    entry = _running().get(str(parts.port)) if is_loopback(parts.hostname or "") else None
    with suppress(OSError, KeyError, TypeError):
        return None if entry is None else Path(entry["token"]).read_text(encoding="ascii").strip()
    return None


def _running() -> dict[str, Entry]:
    """Return the entries of all servers that run on this machine, by port."""
    with suppress(OSError):
        status = SERVERS.path.stat()
        # A token is sent to the address in this file: no other user may have written it.
        if os.name != "posix" or (status.st_uid == os.getuid() and not status.st_mode & 0o022):
            return {port: entry for port, entry in SERVERS.read().items() if _is_running(port, entry)}
    return {}


def _is_running(port: str, entry: Entry) -> bool:
    """Return whether an entry's server still holds its lock; a killed server leaves its entry, but not its lock."""
    is_here = entry.get("host") == platform.node() and is_loopback(urlsplit(str(entry.get("address"))).hostname or "")
    return is_here and port.isdecimal() and not is_gone(user_cache(), f"server-{port}")
