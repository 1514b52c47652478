"""How a server is set up: where it listens, and the most that a job or an upload may ask for."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from difflogic.system.memory import physical_memory

MEGABYTE = 1 << 20


def default_memory() -> int:
    """Three quarters of the machine's, 4 GB where it does not tell."""
    # A quarter is left for the server, the system and whoever else uses the machine.
    memory = physical_memory()
    return 4 << 30 if memory is None else memory * 3 // 4


@dataclass(frozen=True)
class Caps:
    """The most that one job, one upload or one owner may ask for."""

    epochs: int = 1_000_000
    population: int = 1024
    hours: float = 48.0
    """The hours that a job takes, predicted at `cost.EVALUATIONS_PER_S`."""
    memory: int = field(default_factory=default_memory)
    """The bytes that one job takes, as predicted."""
    upload: int = 8 * MEGABYTE
    """The bytes of a request with files."""
    body: int = MEGABYTE
    """The bytes of any other request."""
    pixels: int = 2048 * 2048
    """The pixels of a picture, before it is made smaller."""
    jobs: int = 10_000
    """The jobs that one owner may have in the queue."""


@dataclass(frozen=True)
class ServeSettings:
    """What the application has to know of the operator's wishes."""

    host: str = "127.0.0.1"
    port: int = 8765
    caps: Caps = field(default_factory=Caps)
    names: tuple[str, ...] = ()
    """The names by which browsers may ask for the server, besides addresses and `localhost`."""
    session_s: float = 7 * 24 * 3600.0
    """Seconds until a browser has to sign in again."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_address(text: str) -> bool:
    """Whether this is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
