"""Run or resume a sweep on this machine or on a Ray cluster.

The sweep has its own queue in its folder `queue`, and a supervisor with workers for its trials. The queue is removed
when all trials are over. On a server, by contrast, a sweep is a job whose trials are in the server's queue
(`difflogic.serve.worker.sweeps`).
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.devices import open as devices_here
from difflogic.errors import UsageError
from difflogic.serve.cluster import RAY, ClusterSupervisor, connected
from difflogic.serve.store import mount
from difflogic.serve.store.store import Store
from difflogic.serve.worker.supervisor import Slot, Supervisor
from difflogic.serve.worker.trial_jobs import TrialJobs
from difflogic.sweeps import table
from difflogic.sweeps.course import Course, Sweep, SweepObserver, opened
from difflogic.sweeps.spec import Spec
from difflogic.system.files import TEMPORARY
from difflogic.system.processor import cores
from difflogic.train.signals import Stop, StopSignals

QUEUE = "queue"
SWEEP = "a" * 16
"""Id of the sweep to which the trials refer; the queue has no row for the sweep itself."""
ENGINES = ("auto", "gpu", "reference")
"""Engines that every worker offers, so that each can train any trial, even if the sweep moves to another machine."""
ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}
"""Environment variables of the workers: one thread each, since each core has a process."""


def sweep(
    what: str | Config | PolicyConfig | Spec,
    over: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    devices: Sequence[str] = (),
    workers: int | str | None = None,
    observer: SweepObserver | None = None,
    stop: Stop | None = None,
    **how: Any,
) -> Sweep:
    """Train many runs that differ in some fields, and compare them.

    Args:
        what: Preset, configuration of automata or agents, or complete specification, which excludes `over` and `how`.
        over: Mapping from the path of a field to its values: a list, a range of seeds, or text as for `--over`.
        out: New folder for the sweep, or None for `runs/sweep-NAME-DATE-TIME`.
        devices: Devices such as `gpu:0` or `cpu`; by default the hardware GPUs, otherwise the processor.
        workers: Number of processes on the processor, None for one per core, or a Ray cluster: `ray` on this machine,
            or `ray:HOST:PORT`.
        observer: Observer that receives each trial that has ended.
        stop: Request to end the sweep early, or None to end it at the first Ctrl-C or SIGTERM.
        how: `metric`, `method`, `trials`, `set` (values of fields for all trials, by path), `recipe`,
            `population`, `restarts`, `until_solved`, `within`, `sampler_seed`, `ahead`: see docs/how-to/sweeps.md.

    Returns:
        The sweep: its trials as a table, and the best trial.

    Raises:
        UsageError: The specification contradicts itself, or (ConfigError) a field is outside its limits.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
        MissingPackagesError: Optuna or Ray is required, but not installed.
    """
    if not isinstance(what, Spec):
        what = Spec.of(over=over or {}, **{"preset" if isinstance(what, str) else "config": what}, **how)
    elif over is not None or how:
        extra = ", ".join([*(["over"] if over is not None else []), *how])
        raise UsageError(f"The specification is complete, so other options cannot be added: omit {extra}.")
    opening = opened(what, None if out is None else Path(out))
    return _run(opening, devices, workers, observer, stop)


def resume_sweep(
    folder: Path | str,
    trials: int | None = None,
    devices: Sequence[str] = (),
    workers: int | str | None = None,
    observer: SweepObserver | None = None,
    stop: Stop | None = None,
) -> Sweep:
    """Continue or extend the sweep in `folder`; results are bit-identical on the same devices and drivers.

    Args:
        folder: Folder of the sweep.
        trials: New total number of trials, to extend the sweep, or None for the current number.
        devices: Devices, as for `sweep`.
        workers: Workers, as for `sweep`.
        observer: Observer that receives each trial that has ended.
        stop: Request to end the sweep early, as for `sweep`.

    Returns:
        The sweep.

    Raises:
        NotFoundError: The folder does not contain a sweep; also all errors of `sweep`.
    """
    return _run(opened(None, Path(folder), trials), devices, workers, observer, stop)


def _run(
    opening: AbstractContextManager[tuple[Spec, Path]],
    devices: Sequence[str],
    workers: int | str | None,
    observer: SweepObserver | None,
    stop: Stop | None,
) -> Sweep:
    ray = connected(workers, "A sweep on a Ray cluster") if isinstance(workers, str) else None
    try:
        places = _places(devices, workers)
        with StopSignals() if stop is None else nullcontext(stop) as stopping, opening as (described, out):
            # The queue is temporary, and may be on any mount.
            os.environ[mount.ALLOW] = "1"
            store = Store.open(out / QUEUE, durable=False)
            engine = _engine(places) if described.is_policy else "auto"
            size = len(places) if ray is None else int(ray.cluster_resources().get("CPU", 0))
            course = Course(
                described, out, TrialJobs(store, out, SWEEP, engine, size=size), observer or SweepObserver()
            )
            slots = [Slot(place, list(ENGINES)) for place in places]
            with (
                Supervisor(store.folder, environment=ONE_THREAD, slots=slots)
                if ray is None
                else ClusterSupervisor(ray, store.folder, places, environment=ONE_THREAD, engines=ENGINES)
            ):
                done = course.go(stopping)
            table.write(done)
            if done.interrupted is None:
                store.close()
                # The queue is renamed first, so that no worker writes into it meanwhile.
                shutil.rmtree(store.folder.rename(out / f"{QUEUE}{TEMPORARY}"))
            return done
    finally:
        if ray is not None:
            ray.shutdown()


def _places(devices: Sequence[str], workers: int | str | None) -> list[str]:
    """Return the device of each process: a GPU once, `cpu` once per core or `workers` times.

    The default is the hardware GPUs, otherwise the processor. On a cluster, return the kind of device, `cpu` or `gpu`.
    Raises UsageError for invalid devices or workers, or DeviceError for unusable GPUs.
    """
    if any(devices_here.parse(device)[0] == "auto" for device in devices):
        raise UsageError("--devices must be a list such as gpu:0,gpu:1,cpu, got auto: omit it for the default.")
    if isinstance(workers, str):
        if workers.partition(":")[0] != RAY:
            raise UsageError(f"--workers must be a number of processes, ray or ray:HOST:PORT, got {workers!r}.")
        if len(devices) > 1 or ":" in "".join(devices):
            raise UsageError(f"--devices must be cpu or gpu on a Ray cluster, got {','.join(devices)}.")
        return list(devices) or ["cpu"]
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    devices = list(devices) or [f"gpu:{index}" for index in devices_here.hardware_gpus()] or ["cpu"]
    gpus = [device for device in devices if device.startswith("gpu")]
    for gpu in sorted(set(gpus)):
        devices_here.open_engine(gpu)  # a missing GPU is reported here, and not by each trial
    return [place for device in devices for place in [device] * (1 if device in gpus else workers or cores())]


def _engine(places: Sequence[str]) -> str:
    """Return the engine that trials of agents request, since by default the processor would train them."""
    is_gpu = any(place.startswith("gpu") for place in places)
    return "gpu" if is_gpu else "reference" if "reference" in places else "auto"
