"""The machines of a Ray cluster as workers: `difflogic serve --workers ray`.

On each machine an actor does what `difflogic worker URL` does. Ray says which machines there are, starts the actors,
and tells when one is lost; whose a job is, is a matter of leases as ever (`difflogic.serve.remote`). Ray restarts no
actor by itself: a machine that is back gets a new one, which takes jobs like any other.

Each machine looks for its own GPUs. Ray counts those that have CUDA, and by other numbers than wgpu does.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from difflogic.serve import remote
from difflogic.serve.api.tokens import WORKER, Tokens
from difflogic.serve.log import log_event
from difflogic.serve.worker import devices as known
from difflogic.system.cluster import connect

RAY = "ray"
"""What is asked for with --workers, and the name under which the token of the machines is one of the server's."""
POLL_S = 1.0
AGAIN_S = 5.0
"""Seconds before an actor that ended is started once more."""
PATIENCE_S = 60.0
"""Seconds in which the machines save and hand back, when the server ends."""


class Machine:
    """The actor on one machine."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def work(self, server: str, token: str, devices: Sequence[str], name: str) -> None:
        """Train the server's jobs until `stop` is called; as difflogic.serve.remote.work."""
        os.umask(0o077)
        with remote.Home(server, token) as home:
            remote.work(home, known.of_this_machine(devices), self._over, name=name)

    def stop(self) -> None:
        """Let `work` end."""
        self._over.set()


class Cluster:
    """Keeps an actor at work on every machine of a cluster, from `start` to `close`."""

    def __init__(self, address: str | None, devices: Sequence[str] = (known.AUTO,)) -> None:
        """`address`: of the cluster, None: the one that this machine is in. `devices`: of each machine.

        Raises UsageError without Ray or such a cluster.
        """
        ray = connect(address, "A worker on a Ray cluster")
        self._ray, self._devices = ray, list(devices)
        self._lost: Callable[[str], None] = lambda name: None
        self._server = self._token = ""
        self._working: dict[str, tuple[Any, Any]] = {}
        """The actor of each node, and its call that lasts as long as it works."""
        self._due: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster")

    @property
    def is_here(self) -> bool:
        """Whether this machine is all of the cluster."""
        return len({node["NodeManagerAddress"] for node in self._ray.nodes() if node["Alive"]}) < 2

    @property
    def address(self) -> str:
        """How the machines call this one."""
        return str(self._ray.util.get_node_ip_address())

    def start(self, server: str, tokens: Tokens, lost: Callable[[str], None]) -> None:
        """Have the machines work for the server at this address, with a token that is added to its tokens.

        `lost` hears the beginning of the names of workers whose machine is gone.
        """
        self._server, self._token, self._lost = server, secrets.token_urlsafe(32), lost
        tokens.add(RAY, self._token, WORKER)
        self._thread.start()

    def close(self) -> None:
        """Let the machines save and hand back what they have."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        for actor, _ in self._working.values():
            actor.stop.remote()
        calls = [call for _, call in self._working.values()]
        if calls:
            self._ray.wait(calls, num_returns=len(calls), timeout=PATIENCE_S)
        self._ray.shutdown()

    def _run(self) -> None:
        while not self._over.wait(POLL_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  Ray's own; the next look may do better
                log_event("cluster", logging.ERROR, why=str(error).strip().splitlines()[-1])

    def _look(self) -> None:
        """Start an actor on every machine that has none, and let go of those that ended."""
        # A head that was begun with --num-cpus 0 is not to compute.
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        alive = {node["NodeID"] for node in nodes}
        for node, (_, call) in list(self._working.items()):
            if node not in alive or self._ray.wait([call], timeout=0)[0]:
                del self._working[node]
                self._due[node] = time.monotonic() + AGAIN_S
                log_event("machine lost" if node not in alive else "machine ended", logging.WARNING, node=node[:8])
                self._lost(f"{remote.REMOTE}{node[:8]}")
        for node in alive - set(self._working):
            if time.monotonic() >= self._due.get(node, 0.0):
                self._begin(node)

    def _begin(self, node: str) -> None:
        here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        # Two calls at once: one that works, and one that says when it is over.
        kind = self._ray.remote(max_restarts=0, max_concurrency=2, num_cpus=1, scheduling_strategy=here)(Machine)
        actor = kind.remote()
        self._working[node] = actor, actor.work.remote(self._server, self._token, self._devices, node[:8])
        log_event("machine begun", node=node[:8])
