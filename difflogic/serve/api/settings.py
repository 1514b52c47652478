"""Define the settings of a server, such as its address and its limits for jobs, uploads and connections."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from difflogic.config.agent_presets import PRESETS
from difflogic.system.memory import physical_memory

MEGABYTE = 1 << 20


def default_memory() -> int:
    """Return three quarters of the machine's memory in bytes, or 4 GiB if the memory is unknown."""
    # A quarter is left for the server, the system and other programs.
    memory = physical_memory()
    return 4 << 30 if memory is None else memory * 3 // 4


@dataclass(frozen=True)
class Caps:
    """Limits for each job, upload and owner."""

    epochs: int = 1_000_000
    population: int = 1024
    hours: float = 48.0
    """Maximum predicted hours per job, at `cost.EVALUATIONS_PER_S` gate evaluations per second."""
    memory: int = field(default_factory=default_memory)
    """Maximum predicted memory per job, in bytes."""
    upload: int = 8 * MEGABYTE
    """Maximum size of a request with files, in bytes."""
    body: int = MEGABYTE
    """Maximum size of any other request, in bytes."""
    pixels: int = 2048 * 2048
    """Maximum number of pixels in an image before it is scaled down."""
    jobs: int = 10_000
    """Maximum number of queued jobs per owner."""
    owner_quota: int | None = None
    """Disk space in bytes at which an owner's jobs have used up their quota; None for no limit."""


def _connections() -> int:
    """Return the maximum number of connections, from 16 to 2000: the limit of open files minus a reserve."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 400
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(2000, files - 256)) if files != resource.RLIM_INFINITY else 2000


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on the number of connections and on the time of clients."""

    all: int = field(default_factory=_connections)
    request_s: float = 15.0
    """Maximum seconds for the TLS handshake, and for a client to send a request after connecting or after the previous
    response; less with many open connections, more for a body that arrives at `rate`."""
    rate: int = 16 << 10
    """Minimum rate of a request body in bytes per second."""
    streams: int = 200
    """Maximum number of event streams per owner; a web page uses two, and `difflogic watch` one."""
    write_s: float = 60.0
    """Maximum seconds for a client to read a part of a response that is ready to be sent."""


@dataclass(frozen=True)
class ServeSettings:
    """Settings that the server's operator chooses."""

    host: str = "127.0.0.1"
    port: int = 8765
    caps: Caps = field(default_factory=Caps)
    names: tuple[str, ...] = ()
    """Host names, besides IP addresses and `localhost`, that browsers may use for the server."""
    session_s: float = 7 * 24 * 3600.0
    """Seconds after which a user has to sign in again in a browser."""
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For header is trusted."""
    root_path: str = ""
    """Prefix that a proxy adds to every path, such as `/difflogic`."""
    environments: frozenset[str] = frozenset(preset.environment.id for preset in PRESETS.values())
    """Gymnasium environments in which jobs may train agents, a fixed list since environments run code."""
    tasks: frozenset[str] = frozenset()
    """Tasks in Python that jobs may train, a fixed list since tasks run code."""
    tls: tuple[Path, Path] | None = None
    """Paths of the TLS certificate and of its key, or None for a server without TLS."""

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the server."""
        return is_loopback(self.host)

    def address(self, port: int) -> str:
        """Return the server's URL with the port `port`, as seen without a proxy."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{port}{self.root_path}"


def is_address(text: str) -> bool:
    """Return whether `text` is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether `host` is `localhost` or a loopback address of this machine."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
