"""Run workers on the machines of a Ray cluster: `difflogic serve --workers ray`.

Ray starts an actor for each device of each machine, transfers its calls and files, and reports its loss. Workers,
supervisor and leases are the same as on a single machine, except that a worker runs in a Ray actor and accesses the
store remotely (`difflogic.serve.worker.remote_store`). A machine that joins later also gets workers.

Each machine lists its own GPUs, since Ray counts only GPUs with CUDA, and numbers them differently from wgpu.
"""

import contextlib
import logging
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from difflogic.errors import MissingPackagesError, UsageError, first_line
from difflogic.serve.log import log_event
from difflogic.serve.store import mount
from difflogic.serve.worker import devices as known
from difflogic.serve.worker.lease import WorkerLimits
from difflogic.serve.worker.remote_store import RemoteStore, StoreActor
from difflogic.serve.worker.supervisor import Child, Slot, Supervisor
from difflogic.serve.worker.worker import WorkerProcess
from difflogic.version import __version__

LOOK_S = 1.0
"""Seconds between checks for machines that have joined or left."""
KILL_S = 60.0
"""Maximum seconds to wait until Ray has ended an actor or reported the loss of its machine."""
CALLS = 64
"""Maximum number of calls from workers that the store's actor processes simultaneously."""
RAY = "ray"
"""Value of `--workers` for a cluster."""


def connected(where: str, user: str) -> Any | None:
    """Return the module ray, connected to `where` (`ray` for this machine, or `ray:HOST:PORT`), or None for other text.

    `user` is the feature that requires Ray, such as "A sweep". Raises MissingPackagesError or UsageError.
    """
    name, _, address = where.partition(":")
    if name != RAY:
        return None
    try:
        import ray
    except ImportError as error:
        raise MissingPackagesError.of(user, "ray", error.name) from error
    try:
        # Ray puts the current folder of the process that connects first on its workers' `sys.path`.
        with contextlib.chdir(sys.prefix):
            ray.init(address or "auto", namespace="difflogic", log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        place = f"at {address}" if address else "on this machine"
        raise UsageError(
            f"No Ray cluster found {place}: start one with `ray start --head`, or give ray:HOST:PORT."
        ) from error
    return ray


class WorkerActor:
    """Ray actor that runs the worker of one device."""

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None

    def work(
        self,
        store: Any,
        slot: Slot,
        name: str,
        host: str,
        limits: WorkerLimits,
        max_memory: int | None,
        environment: Mapping[str, str],
    ) -> None:
        """Run the jobs of the StoreActor `store` until `stop` is called."""
        os.environ.update(environment)
        os.umask(0o077)
        # Any mount is allowed, since the files here are only temporary: they are sent to the store.
        os.environ[mount.ALLOW] = "1"
        with TemporaryDirectory(prefix="difflogic-worker-", ignore_cleanup_errors=True) as folder:
            remote = RemoteStore(partial(_call, store), Path(folder), host)
            self._worker = WorkerProcess(remote, name, slot.device, slot.engines, limits, max_memory)
            self._worker.run()

    def stop(self) -> None:
        """Ask `work` to save its job, release it and end."""
        if self._worker is not None:
            self._worker.stopping = True


def _call(actor: Any, method: str, *arguments: Any) -> Any:
    """Call a method of another actor. Raises its errors; if the actor is lost, Ray's error ends this worker."""
    from ray.exceptions import RayTaskError

    try:
        # `ray.get` is not used, since Ray would meanwhile give this actor's core to other actors.
        return getattr(actor, method).remote(*arguments).future().result()
    except RayTaskError as error:
        raise error.cause from None


class _ActorChild:
    """Handle with which the supervisor controls a worker on a machine of the cluster."""

    def __init__(self, ray: Any, store: Any, actor: Any, work: Any, name: str) -> None:
        self._ray, self._store, self._actor, self._work = ray, store, actor, work
        self.name, self.how = name, ""

    @property
    def status(self) -> int | None:
        if not self._ray.wait([self._work], timeout=0)[0]:
            return None
        try:
            self._ray.get(self._work)
        except Exception as error:  # noqa: BLE001  the supervisor goes on after any error of a worker
            self.how = f"its worker was lost ({first_line(error)})"
            return 1
        self.how = "its worker ended with exit status 0"
        return 0

    def ask_to_stop(self) -> None:
        self._actor.stop.remote()

    def kill(self) -> None:
        self._ray.kill(self._actor)
        self._ray.wait([self._work], timeout=KILL_S)
        self.close()

    def close(self) -> None:
        self._store.forget.remote(self.name)


class ClusterSupervisor(Supervisor):
    """Supervisor of the workers on all machines of a Ray cluster."""

    def __init__(
        self,
        ray: Any,
        folder: Path,
        devices: Sequence[str] = (known.AUTO,),
        max_memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        engines: Sequence[str] = (),
    ) -> None:
        """Set up workers for `devices` on each machine of the cluster to which the module `ray` is connected.

        With `engines`, each core and each GPU has a worker that offers these engines; otherwise each device has one.
        """
        self._ray, self._engines = ray, list(engines)
        # There are no slots yet: `refresh` adds those of each machine.
        super().__init__(folder, devices, max_memory=max_memory, environment=environment, slots=())
        node = ray.get_runtime_context().get_node_id()
        # If the actor is lost, its locks are free and its workers end. Ray starts another actor for later workers.
        options = {"num_cpus": 0, "max_concurrency": CALLS, "max_restarts": -1}
        self._actor = ray.remote(**options, scheduling_strategy=self._on(node))(StoreActor).remote(folder.resolve())
        self._machines: dict[str, str] = {}
        """Host names of the current machines, by node id."""
        self._asked: dict[str, Any] = {}
        """Pending requests for the devices of new machines, by node id."""
        self._looked = 0.0

    def refresh(self) -> None:
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            self._look()
        except Exception as error:  # noqa: BLE001  errors of Ray; the next check may succeed
            log_event("cluster", logging.ERROR, why=first_line(error))

    def _look(self) -> None:
        """Request the devices of new machines, add slots for listed devices, and remove machines that have left."""
        # A head node that was started with --num-cpus 0 gets no workers.
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        present = {node["NodeID"]: node["NodeManagerHostname"] for node in nodes}
        for node in present.keys() - self._machines.keys():
            ask = self._ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=self._on(node))(_devices)
            self._asked[node] = ask.remote(self._devices)
        for node in self._machines.keys() - present.keys():
            log_event("machine lost", logging.WARNING, node=node, host=self._machines[node])
            self._asked.pop(node, None)
        self._machines = present
        # The slot of a lost machine is kept until the store has expired its worker and queued the job again.
        self._slots = [slot for slot in self._slots if slot.node in present or slot.child is not None]
        for node, answer in list(self._asked.items()):
            if self._ray.wait([answer], timeout=0)[0]:
                del self._asked[node]
                self._join(node, *self._ray.get(answer))

    def _join(self, node: str, version: str, devices: list[str], trouble: str | None) -> None:
        about: dict[str, Any] = {"node": node, "host": self._machines[node]}
        # A run may continue on another machine, so all machines need the same version to compute the same results.
        if version != __version__:
            why = f"Expected difflogic {__version__}, as on this server, got {version}: install the same version."
            log_event("machine refused", logging.ERROR, **about, why=why)
            return
        if trouble is not None:
            log_event("trouble with GPUs", logging.WARNING, **about, why=trouble)
        log_event("machine joined", **about, devices=devices)
        if not self._engines:
            self.add(*(Slot(device, known.engines_of(device, devices), node) for device in devices))
            return
        cores = next(int(other["Resources"].get("CPU", 0)) for other in self._ray.nodes() if other["NodeID"] == node)
        for device in devices:
            self.add(*(Slot(device, self._engines, node) for _ in range(1 if device.startswith("gpu") else cores)))

    def start_worker(self, slot: Slot) -> Child:
        name = f"{slot.node[:8]}-{slot.device.replace(':', '-')}-{secrets.token_hex(4)}"
        # The actor processes two calls at the same time: `work` and `stop`.
        strategy = self._on(slot.node)
        kind = self._ray.remote(max_restarts=0, max_concurrency=2, num_cpus=1, scheduling_strategy=strategy)
        actor = kind(WorkerActor).remote()
        host = self._machines.get(slot.node, slot.node[:8])
        settings = self.limits, self._max_memory, dict(self.environment or {})
        work = actor.work.remote(self._actor, slot, name, host, *settings)
        return _ActorChild(self._ray, self._actor, actor, work, name)

    def _end(self) -> None:
        super()._end()
        self._ray.kill(self._actor)

    def _on(self, node: str) -> Any:
        return self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def _devices(devices: Sequence[str]) -> tuple[str, list[str], str | None]:
    """Return this machine's version of difflogic, its usable devices, and a warning about its GPUs or None."""
    return __version__, *known.usable(devices)
