"""A Ray cluster, where somebody asks for one."""

from __future__ import annotations

from typing import Any

from difflogic.errors import MissingPackagesError, UsageError


def connect(address: str | None, what: str) -> Any:
    """The module ray, connected to the cluster at an address; None: to the one that this machine is in.

    `what` needs it, say "A sweep". Raises MissingPackagesError, UsageError.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackagesError.of(what, "ray", error.name) from error
    try:
        ray.init(address or "auto", namespace="difflogic", log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise UsageError(
            f"There is no Ray cluster {where}: start one with `ray start --head`, or give ray:HOST:PORT."
        ) from error
    return ray
