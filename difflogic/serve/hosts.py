"""What a server is called. A browser that asks for another name was led astray by its owner (DNS rebinding)."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from difflogic.serve.settings import ServeSettings


class Hosts:
    """Addresses are never astray, and a server for others is called anything, unless it was given names."""

    def __init__(self, settings: ServeSettings) -> None:
        self._checks = settings.is_local or bool(settings.names)
        self._names = {name.lower() for name in ("localhost", settings.host, *settings.names)}

    def are_ours(self, host: str | None) -> bool:
        """Whether a request with this header is for us; one without it comes from no browser."""
        if host is None or not self._checks:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or is_address(name)


def is_address(text: str) -> bool:
    """Whether this is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
