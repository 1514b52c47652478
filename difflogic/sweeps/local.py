"""Trials on this machine: a process for each processor core and each GPU, kept warm from trial to trial."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from pathlib import Path

from difflogic.devices import open as devices
from difflogic.errors import UsageError
from difflogic.sweeps import trial
from difflogic.sweeps.trial import Outcome, Task
from difflogic.system.processor import cores
from difflogic.train.signals import WATCHED, Stop

TRIES = 2
"""A process that is killed, say by a system out of memory, has its trial tried once more, from its checkpoint."""
SPAWN = multiprocessing.get_context("spawn")


def places(asked: Sequence[str], workers: int | None = None) -> list[str]:
    """A selector for each process: every GPU that is asked for once, `cpu` once for each core, or `workers` times.

    Without any: the hardware GPUs, else the processor. Raises UsageError for words that are no devices, or no workers.
    """
    for each in asked:
        if devices.parse(each)[0] == "auto":
            raise UsageError("auto is not a device: give --devices gpu:0,gpu:1,cpu, or leave it out.")
    found = list(asked) or [f"gpu:{index}" for index in devices.hardware_gpus()] or ["cpu"]
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    on_cpu = workers or cores()
    return [place for each in found for place in [each] * (1 if each.startswith("gpu") else on_cpu)]


class LocalWorkers:
    """Trains tasks in processes of its own, each on one place, as `places` gives them."""

    def __init__(self, selectors: Sequence[str]) -> None:
        self._over = SPAWN.Event()
        self._free: queue.SimpleQueue[tuple[str, ProcessPoolExecutor]] = queue.SimpleQueue()
        self.size = len(selectors)
        for selector in selectors:
            self._free.put((selector, self._process()))
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="sweep")

    def begin(self, folder: Path) -> None:
        """Keep the trials' folders in this one."""
        self._folder = folder

    def submit(self, task: Task) -> Future[Outcome]:
        """Train it where there is room, in the order of asking."""
        return self._threads.submit(self._run, task)

    def _run(self, task: Task) -> Outcome:
        selector, process = self._free.get()
        try:
            for _ in range(TRIES):
                try:
                    return process.submit(_work, task, self._folder / task.folder, selector).result()
                except BrokenProcessPool:
                    process = self._process()
            return Outcome("failed", error="Its process was killed twice.")
        finally:
            self._free.put((selector, process))

    def _process(self) -> ProcessPoolExecutor:
        """One process, which begins at once: it loads for as long as a short trial takes."""
        process = ProcessPoolExecutor(1, SPAWN, _begin, (self._over,))
        process.submit(int)
        return process

    def close(self, at_once: bool = False) -> None:
        """Wait for what is asked for; `at_once`: for the epochs under way, which are saved."""
        if at_once:
            self._over.set()
        self._threads.shutdown(cancel_futures=at_once)
        for _ in range(self.size):
            self._free.get()[1].shutdown()


_stop = Stop()
"""Of a worker process: asks its trial to end when the sweep does."""


def _begin(over: Event) -> None:
    """First of all in a worker process."""
    # Ctrl-C and SIGTERM, which a whole group may get, are for the sweep alone: it lets its workers save.
    for number in WATCHED:
        signal.signal(number, signal.SIG_IGN)
    # One process a core: threads of each would only wait for those of the others.
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    for watch in (_end_with_sweep, _end_with_parent):
        threading.Thread(target=watch, args=(over,), daemon=True).start()


def _end_with_sweep(over: Event) -> None:
    over.wait()
    _stop.ask("the sweep was stopped")


def _end_with_parent(over: Event) -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        # At once: files are whole at every moment, and the folder has to be free for who resumes.
        os._exit(1)


def _work(task: Task, folder: Path, selector: str) -> Outcome:
    return trial.run(task, folder, selector, _stop)
