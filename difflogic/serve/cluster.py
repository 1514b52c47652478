"""The machines of a Ray cluster as workers: `difflogic serve --workers ray`.

Ray places an actor for each device of each machine, carries what it asks and its files, and tells when it is lost. The
actor is a worker as on this machine, and its supervisor is too: it sees the end of its workers, expires them, and
starts others. Whose a job is, is a matter of leases as ever. What differs is how a worker begins, and its store: see
`difflogic.serve.worker.remote_store`. A machine that joins later gets workers when it is seen.

Each machine looks for its own GPUs. Ray counts those that have CUDA, and by other numbers than wgpu does.
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
"""Seconds between two looks for machines that have come or gone."""
KILL_S = 60.0
"""Seconds within which Ray ends an actor, or gives up its machine."""
CALLS = 64
"""Calls of workers that the store's side answers at once."""
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
        # Ray puts the current folder of the process that connects first on its workers' `sys.path`.
        with contextlib.chdir(sys.prefix):
            ray.init(address or "auto", namespace="difflogic", log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        place = f"at {address}" if address else "on this machine"
        raise UsageError(
            f"There is no Ray cluster {place}: start one with `ray start --head`, or give ray:HOST:PORT."
        ) from error
    return ray


class WorkerActor:
    """The actor of one device of a machine."""

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
        """Do jobs of the store behind this actor until `stop` is called."""
        os.environ.update(environment)
        os.umask(0o077)
        # Nothing here has to last, also not on a container's own mount: what a job has become is sent as it comes.
        os.environ[mount.ALLOW] = "1"
        with TemporaryDirectory(prefix="difflogic-worker-", ignore_cleanup_errors=True) as folder:
            remote = RemoteStore(partial(_asked, store), Path(folder), host)
            self._worker = WorkerProcess(remote, name, slot.device, slot.engines, limits, max_memory)
            self._worker.run()

    def stop(self) -> None:
        """Let `work` save, hand back its job and end."""
        if self._worker is not None:
            self._worker.stopping = True


def _asked(actor: Any, method: str, *given: Any) -> Any:
    """The answer of another actor. Raises what its method raises; what Ray raises where it is lost ends the worker."""
    from ray.exceptions import RayTaskError

    try:
        # Not ray.get: while an actor waits there, Ray lends its core to others.
        return getattr(actor, method).remote(*given).future().result()
    except RayTaskError as error:
        raise error.cause from None


class _ActorChild:
    """A worker on a machine of the cluster, as its supervisor sees it."""

    def __init__(self, ray: Any, store: Any, actor: Any, work: Any, name: str, device: str) -> None:
        self._ray, self._store, self._actor, self._work = ray, store, actor, work
        self.name, self.device = name, device
        self.how = ""

    @property
    def status(self) -> int | None:
        if not self._ray.wait([self._work], timeout=0)[0]:
            return None
        try:
            self._ray.get(self._work)
        except Exception as error:  # noqa: BLE001  whatever ended it ended it alone
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
    """Workers on the machines of a Ray cluster: each on every device that is meant, wherever there is one."""

    def __init__(
        self,
        ray: Any,
        folder: Path,
        devices: Sequence[str] = (known.AUTO,),
        max_memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        engines: Sequence[str] = (),
    ) -> None:
        """`ray`: connected, and let go of by the caller. `devices`: of each machine. `engines`: of each worker,
        where each core has one; without any each device has one, as on this machine.
        """
        self._ray, self._engines = ray, list(engines)
        super().__init__(folder, devices, max_memory=max_memory, environment=environment)
        here = ray.get_runtime_context().get_node_id()
        # Where it is lost its locks are too, its workers end, and Ray begins another for those that follow them.
        how = {"num_cpus": 0, "max_concurrency": CALLS, "max_restarts": -1}
        self._actor = ray.remote(**how, scheduling_strategy=self._on(here))(StoreActor).remote(folder.resolve())
        self._machines: dict[str, str] = {}
        """The names of the machines that are there, by their nodes."""
        self._asked: dict[str, Any] = {}
        """Machines that were asked for their devices, and have not answered yet."""
        self._looked = 0.0

    def open_slots(self) -> list[Slot]:
        return []

    def refresh(self) -> None:
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            self._look()
        except Exception as error:  # noqa: BLE001  Ray's own; the next look may do better
            log_event("cluster", logging.ERROR, why=first_line(error))

    def _look(self) -> None:
        """Ask the machines that have come for their devices, and forget those that have gone."""
        # A head that was begun with --num-cpus 0 is not to compute.
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        there = {node["NodeID"]: node["NodeManagerHostname"] for node in nodes}
        for node in there.keys() - self._machines.keys():
            ask = self._ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=self._on(node))(_devices)
            self._asked[node] = ask.remote(self._devices)
        for node in self._machines.keys() - there.keys():
            log_event("machine lost", logging.WARNING, node=node, host=self._machines[node])
            self._asked.pop(node, None)
        self._machines = there
        # Its worker is expired first, which the slot sees.
        self._slots = [slot for slot in self._slots if slot.node in there or slot.child is not None]
        for node, answer in list(self._asked.items()):
            if self._ray.wait([answer], timeout=0)[0]:
                del self._asked[node]
                self._join(node, *self._ray.get(answer))

    def _join(self, node: str, version: str, devices: list[str], trouble: str | None) -> None:
        about: dict[str, Any] = {"node": node, "host": self._machines[node]}
        # A run that goes on elsewhere must be computed alike, and both must mean the same by a job.
        if version != __version__:
            why = f"It has difflogic {version} and this server {__version__}: use the same version."
            log_event("machine refused", logging.ERROR, **about, why=why)
            return
        if trouble is not None:
            log_event("trouble with GPUs", logging.WARNING, **about, why=trouble)
        log_event("machine joined", **about, devices=devices)
        if not self._engines:
            self.add(*(Slot(device, known.engines_of(device, devices), node) for device in devices))
            return
        cores = next(int(each["Resources"].get("CPU", 0)) for each in self._ray.nodes() if each["NodeID"] == node)
        every = [place for each in devices for place in [each] * (1 if each.startswith("gpu") else cores)]
        self.add(*(Slot(place, self._engines, node) for place in every))

    def start_worker(self, slot: Slot) -> Child:
        name = f"{slot.node[:8]}-{slot.device.replace(':', '-')}-{secrets.token_hex(4)}"
        # Two calls at once: one that works, and one that says when it is over.
        strategy = self._on(slot.node)
        kind = self._ray.remote(max_restarts=0, max_concurrency=2, num_cpus=1, scheduling_strategy=strategy)
        actor = kind(WorkerActor).remote()
        host = self._machines.get(slot.node, slot.node[:8])
        about = slot, name, host, self.limits, self._max_memory, dict(self.environment or {})
        work = actor.work.remote(self._actor, *about)
        return _ActorChild(self._ray, self._actor, actor, work, name, slot.device)

    def _end(self) -> None:
        super()._end()
        self._ray.kill(self._actor)

    def _on(self, node: str) -> Any:
        return self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def _devices(meant: Sequence[str]) -> tuple[str, list[str], str | None]:
    """Return the version of difflogic on this machine, its devices, and a warning about its GPUs."""
    return __version__, *known.usable(meant)
