"""A Ray cluster, where somebody asks for one."""

from __future__ import annotations

from typing import Any

from difflogic.errors import MissingPackagesError, UsageError

RAY = "ray"
"""What is asked for with --workers."""


def connected(where: str, what: str) -> Any | None:
    """The module ray, connected to the cluster that `where` names: `ray` that of this machine, `ray:HOST:PORT`.

    None where it is anything else. `what` needs it, say "A sweep". Raises MissingPackagesError, UsageError.
    """
    name, _, address = where.partition(":")
    if name != RAY:
        return None
    try:
        import ray
    except ImportError as error:
        raise MissingPackagesError.of(what, "ray", error.name) from error
    try:
        ray.init(address or "auto", namespace="difflogic", log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        place = f"at {address}" if address else "on this machine"
        raise UsageError(
            f"There is no Ray cluster {place}: start one with `ray start --head`, or give ray:HOST:PORT."
        ) from error
    return ray
