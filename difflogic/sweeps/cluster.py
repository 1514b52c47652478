"""Trials on the machines of a Ray cluster: each is a task of Ray's, which finds room for it and starts lost ones again.

A task takes its folder from the machine of the sweep and brings it back, now and then and at its end, through Ray's
object store: no path is shared, and a task whose machine was lost goes on from its last checkpoint elsewhere.

Ray counts GPUs that have CUDA, and by numbers that Vulkan and Metal do not know. So a machine's adapters are a resource
of their own, `ray start --resources '{"adapter": 2}'`, and which of them a task gets, a file lock decides.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import filelock

from difflogic.devices import open as devices
from difflogic.errors import UsageError, first_line
from difflogic.runs.folder import LOCK
from difflogic.sweeps import trial
from difflogic.sweeps.trial import Outcome, Task
from difflogic.system.cluster import connected
from difflogic.system.files import TEMPORARY, replace_folder
from difflogic.train.signals import Stop

ADAPTER = "adapter"
"""The resource, one for each GPU adapter of a machine."""
SAVED_S = 10.0
"""Seconds between two checkpoints that are brought home."""
TRIES = 10
"""So often Ray starts a task again whose machine or process was lost."""


class RayWorkers:
    """Trains tasks wherever the cluster has a processor core, or for the device `gpu` an adapter."""

    def __init__(self, address: str | None, device: str = "cpu", saved_s: float = SAVED_S) -> None:
        """Raises UsageError without Ray, such a cluster, or what a trial needs there."""
        self._device, self._saved_s, self._open = device, saved_s, set[Any]()
        found = connected(f"ray:{address or ''}", "A sweep on a Ray cluster")
        self._ray = cast("Any", found)
        offered = ADAPTER if device == "gpu" else "CPU"
        needs = {"num_cpus": 1} | ({"resources": {ADAPTER: 1}} if device == "gpu" else {})
        # Made once: tasks of one function take turns in one warm process, those of many begin many.
        self._work = self._ray.remote(max_retries=TRIES, **needs)(work)
        self.size = int(self._ray.cluster_resources().get(offered, 0))
        if not self.size:
            self._ray.shutdown()
            raise UsageError(
                f"No machine of the Ray cluster offers {offered}: begin each with ray start "
                + ("--resources '{\"adapter\": 1}', 1 for each GPU." if device == "gpu" else "--num-cpus of 1 or more.")
            )

    def begin(self, folder: Path) -> None:
        """Keep the trials' folders in this one."""
        here = self._ray.get_runtime_context().get_node_id()
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        self._home = self._ray.remote(num_cpus=0, scheduling_strategy=strategy)(Home).remote(folder.resolve())

    def submit(self, task: Task) -> Future[Outcome]:
        """Train it where there is room, in the order of asking."""
        found: Future[Outcome] = Future()
        ref = self._work.remote(task, self._device, self._home, self._saved_s)
        self._open.add(ref)

        def ended(done: Future[Outcome]) -> None:
            self._open.discard(ref)
            error = done.exception()
            if error is None:
                found.set_result(done.result())
            elif isinstance(error, self._ray.exceptions.TaskCancelledError):
                found.set_result(Outcome("interrupted"))
            else:
                found.set_result(Outcome("failed", error=f"Ray lost the trial: {first_line(error)}"))

        ref.future().add_done_callback(ended)
        return found

    def close(self, at_once: bool = False) -> None:
        """Wait for what is asked for; `at_once`: for nothing, its last checkpoints are at home."""
        left = list(self._open)
        for ref in left if at_once else []:
            self._ray.cancel(ref)
        if left:
            self._ray.wait(left, num_returns=len(left), timeout=60.0 if at_once else None)
        self._ray.shutdown()


class Home:
    """An actor on the machine of the sweep: trials leave their folders here, and find them again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, name: str, packed: bytes) -> None:
        """A trial's folder, in place of what was there: whole or not at all."""
        place = self._folder / name
        made = place.with_name(place.name + TEMPORARY)
        shutil.rmtree(made, ignore_errors=True)
        unpack(packed, made)
        replace_folder(made, place)

    def kept(self, name: str) -> bytes | None:
        """The files that a trial left."""
        place = self._folder / name
        return pack(place) if place.exists() else None


def pack(folder: Path) -> bytes:
    """The files of a folder as one piece."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for place, folders, files in os.walk(folder):
            # Those of moments, of which nothing inside is looked at either: they may be gone by then.
            folders[:] = [name for name in folders if not name.endswith(TEMPORARY)]
            for name in [*folders, *files]:
                if not name.endswith((LOCK, TEMPORARY)):
                    file.write(each := Path(place, name), each.relative_to(folder))
    return buffer.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """The inverse of `pack`, into a new folder; nothing lands outside it."""
    # Not a tar file: the early releases of Python 3.11 cannot keep those from writing elsewhere, zipfile always does.
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        file.extractall(folder)


def work(task: Task, device: str, home: Any, saved_s: float) -> Outcome:
    """The task of Ray's: a trial on one core, or on an adapter that nobody else has."""
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="difflogic-") as place, _taken(device) as selector:
        folder = Path(place) / "run"
        # Not ray.get: while a task waits there, Ray gives its core away and begins one more process for the next task.
        kept = home.kept.remote(task.folder).future().result()
        if kept is not None:
            unpack(kept, folder)
        sent = time.monotonic()

        def saved() -> None:
            nonlocal sent
            if time.monotonic() - sent >= saved_s:
                home.keep.remote(task.folder, pack(folder))
                sent = time.monotonic()

        outcome = trial.run(task, folder, selector, Stop(), saved)
        if folder.exists():
            home.keep.remote(task.folder, pack(folder)).future().result()
        return outcome


@contextmanager
def _taken(device: str) -> Iterator[str]:
    """A selector: of `gpu` an adapter of this machine that no other task has, hardware first."""
    if device != "gpu":
        yield device
        return
    adapters = devices.gpu_adapters()
    while True:
        for each in adapters:
            lock = filelock.FileLock(Path(tempfile.gettempdir()) / f"difflogic-adapter-{each.index}.lock")
            try:
                with lock.acquire(blocking=False):
                    yield f"gpu:{each.index}"
                    return
            except filelock.Timeout:
                continue
        time.sleep(0.2)  # Ray was told of more adapters than there are
