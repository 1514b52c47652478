"""A sweep on this machine or on a Ray cluster, from its beginning to its end, or on from where it was left.

It is a queue of its own, in the folder `queue` of the sweep, with a supervisor that has workers for its trials; on a
server a sweep is a job, and its trials are in the server's queue (`difflogic.serve.worker.sweeps`). When all trials are
over, the queue is removed.
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
"""The id of the sweep in its queue, where it has no row."""
ENGINES = ("auto", "gpu", "reference")
"""What trials may ask for: every worker takes them all, also where a sweep goes on elsewhere than it began."""
ONE_THREAD = {"NUMBA_NUM_THREADS": "1"}
"""A process for each core: threads of each would only wait for those of the others."""


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
        what: A preset of automata or agents, a configuration, or a whole specification, without `over` and `how`.
        over: Values by the path of their field: a list, a range of seeds, or text as `--over` takes it.
        out: A new folder; None: `runs/sweep-NAME-DATE-TIME`.
        devices: As `gpu:0`, `cpu`; none: the hardware GPUs, else the processor.
        workers: Processes on the processor, None: one for each core. Or a Ray cluster: `ray` for the one that this
            machine is in, `ray:HOST:PORT`.
        observer: Is told of each trial that is over.
        stop: May end it early; without it the first Ctrl-C or SIGTERM does.
        how: `metric`, `method`, `trials`, `set` (fields that all trials have changed, by their paths), `recipe`,
            `population`, `restarts`, `until_solved`, `within`, `sampler_seed`, `ahead`: see docs/how-to/sweeps.md.

    Returns:
        The sweep: its trials as a table, and the best one.

    Raises:
        UsageError: The specification contradicts itself, or (ConfigError) a field is beyond its limits.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
        MissingPackagesError: Optuna or Ray is needed and not there.
    """
    if not isinstance(what, Spec):
        what = Spec.of(over=over or {}, **{"preset" if isinstance(what, str) else "config": what}, **how)
    elif over is not None or how:
        raise UsageError("A whole specification says everything: give it without over and how.")
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
    """Continue the sweep in a folder, bit for bit on the same devices and drivers, or extend it.

    Args:
        folder: Of the sweep.
        trials: More than it has, to extend it; None: as many.
        devices: As for `sweep`.
        workers: As for `sweep`.
        observer: Hears of each trial that is over.
        stop: May end it early.

    Returns:
        The sweep.

    Raises:
        RunFolderError: The folder has no sweep, or is in use. All that `sweep` raises besides.
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
        with StopSignals() if stop is None else nullcontext(stop) as asked, opening as (described, out):
            # What lies here is a queue of this sweep alone, for as long as that is under way, on any mount.
            os.environ[mount.ALLOW] = "1"
            store = Store.open(out / QUEUE, durable=False)
            engine = _engine(places) if described.is_policy else "auto"
            size = len(places) if ray is None else int(ray.cluster_resources().get("CPU", 0))
            course = Course(
                described, out, TrialJobs(store, out, SWEEP, engine, size=size), observer or SweepObserver()
            )
            slots = [Slot(each, list(ENGINES)) for each in places]
            with (
                Supervisor(store.folder, environment=ONE_THREAD, slots=slots)
                if ray is None
                else ClusterSupervisor(ray, store.folder, places, environment=ONE_THREAD, engines=ENGINES)
            ):
                done = course.go(asked)
            table.write(done)
            if done.interrupted is None:
                store.close()
                # Under another name nobody finds it, who might put a file in it meanwhile.
                shutil.rmtree(store.folder.rename(out / f"{QUEUE}{TEMPORARY}"))
            return done
    finally:
        if ray is not None:
            ray.shutdown()


def _places(asked: Sequence[str], workers: int | str | None) -> list[str]:
    """A device for each process: every GPU that is asked for once, `cpu` once for each core, or `workers` times.

    Without any: the hardware GPUs, else the processor. On a cluster that of each machine, `cpu` or `gpu`. Raises
    UsageError for words that are no devices, or no workers, DeviceError for GPUs that cannot be used.
    """
    for each in asked:
        if devices_here.parse(each)[0] == "auto":
            raise UsageError("auto is not a device: give --devices gpu:0,gpu:1,cpu, or leave it out.")
    if isinstance(workers, str):
        if workers.partition(":")[0] != RAY:
            raise UsageError(f"--workers is a number of processes, ray or ray:HOST:PORT, got {workers!r}.")
        if len(asked) > 1 or ":" in "".join(asked):
            raise UsageError("On a Ray cluster --devices must be cpu or gpu: each machine looks for its own.")
        return list(asked) or ["cpu"]
    found = list(asked) or [f"gpu:{index}" for index in devices_here.hardware_gpus()] or ["cpu"]
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}.")
    for each in sorted(set(found)):
        if each.startswith("gpu"):
            devices_here.open_engine(each)  # one that is not there is found out here, and not by as many failures
    on_cpu = workers or cores()
    return [place for each in found for place in [each] * (1 if each.startswith("gpu") else on_cpu)]


def _engine(places: Sequence[str]) -> str:
    """What trials of agents ask for, which are trained on the processor where nobody asks for anything else."""
    return "gpu" if any(each.startswith("gpu") for each in places) else "reference" if "reference" in places else "auto"
