"""How a server is set up: where it listens, and the most that a job or an upload may ask for."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from difflogic.config.agent_presets import PRESETS
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
    owner_quota: int | None = None
    """The bytes that the jobs of one owner may take; None: all that the disk has."""


def _connections() -> int:
    """The most connections: the system's limit less what the store, pictures and workers need, at most 2000."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 400
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(2000, files - 256)) if files != resource.RLIM_INFINITY else 2000


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections clients may hold, and how long they may take for what they send."""

    all: int = field(default_factory=_connections)
    request_s: float = 15.0
    """Seconds for a request, from the connection or the last answer on, and for the TLS handshake: fewer, the more
    connections are open, and more by what comes at `rate`."""
    rate: int = 16 << 10
    """Bytes a second: what comes slower for long holds a connection for nothing."""
    streams: int = 200
    """Event streams of one owner: a page has two, and `difflogic watch` one."""
    write_s: float = 60.0
    """Seconds in which a client must take something of an answer that waits for it."""


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
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For is believed."""
    root_path: str = ""
    """What a proxy puts before every path, such as `/difflogic`."""
    environments: frozenset[str] = frozenset(each.environment.id for each in PRESETS.values())
    """Those of gymnasium in which jobs may train agents. They are code: a request names none that is not allowed."""
    tasks: frozenset[str] = frozenset()
    """Tasks in Python that jobs may be of, which are code as well."""
    tls: tuple[Path, Path] | None = None
    """The files of the certificate and of its key."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def address(self, port: int) -> str:
        """The URL under which the server is reached, where no proxy stands before it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{port}{self.root_path}"


def is_address(text: str) -> bool:
    """Whether this is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
