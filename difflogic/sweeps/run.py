"""A sweep from its beginning to its end, or on from where it was left: see `difflogic.sweeps`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config
from difflogic.errors import UsageError
from difflogic.sweeps import local, table
from difflogic.sweeps.cluster import RayWorkers
from difflogic.sweeps.course import Course, Sweep, SweepObserver, Workers, opened
from difflogic.sweeps.local import LocalWorkers
from difflogic.sweeps.spec import Spec
from difflogic.train.signals import Stop, StopSignals


def sweep(
    what: str | Config | PolicyConfig | Spec,
    over: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    on: str = "local",
    devices: Sequence[str] = (),
    workers: int | None = None,
    observer: SweepObserver | None = None,
    stop: Stop | None = None,
    **how: Any,
) -> Sweep:
    """Train many runs that differ in some fields, and compare them.

    Processes are begun for it, so a script calls it below `if __name__ == "__main__":`.

    Args:
        what: A preset of automata or agents, a configuration, or a whole specification, without `over` and `how`.
        over: Values by the path of their field: a list, a range of seeds, or text as `--over` takes it.
        out: A new folder; None: `runs/sweep-NAME-DATE-TIME`.
        on: `local`, or a Ray cluster: `ray` for the one that this machine is in, `ray:HOST:PORT`.
        devices: As `gpu:0`, `cpu`; none: the hardware GPUs, else the processor.
        workers: Processes on the processor; None: one for each core.
        observer: Is told of each trial that is over.
        stop: May end it early; without it the first Ctrl-C or SIGTERM does.
        how: `metric`, `method`, `trials`, `set` (fields that all trials have changed, by their paths), `recipe`,
            `population`, `restarts`, `until_solved`, `within`, `sampler_seed`, `ahead`: see docs/how-to/sweeps.md.

    Returns:
        The sweep: its trials as a table, and the best one.

    Raises:
        UsageError: The specification contradicts itself, or (ConfigError) a field is beyond its limits.
        RunFolderError: The folder is not empty, is in use, or cannot be written.
        MissingPackagesError: Optuna is needed and not there.
    """
    if not isinstance(what, Spec):
        what = Spec.of(over=over or {}, **{"preset" if isinstance(what, str) else "config": what}, **how)
    elif over is not None or how:
        raise UsageError("A whole specification says everything: give it without over and how.")
    opening = opened(what, None if out is None else Path(out))
    return _run(opening, _workers(on, devices, workers), observer, stop)


def resume_sweep(
    folder: Path | str,
    trials: int | None = None,
    on: str = "local",
    devices: Sequence[str] = (),
    workers: int | None = None,
    observer: SweepObserver | None = None,
    stop: Stop | None = None,
) -> Sweep:
    """Continue the sweep in a folder, bit for bit, or extend it.

    Args:
        folder: Of the sweep.
        trials: More than it has, to extend it; None: as many.
        on: As for `sweep`.
        devices: As for `sweep`.
        workers: As for `sweep`.
        observer: Hears of each trial that is over.
        stop: May end it early.

    Returns:
        The sweep.

    Raises:
        RunFolderError: The folder has no sweep, or is in use. All that `sweep` raises besides.
    """
    return _run(opened(None, Path(folder), trials), _workers(on, devices, workers), observer, stop)


def _run(
    opening: AbstractContextManager[tuple[Spec, Path]],
    workers: Workers,
    observer: SweepObserver | None,
    stop: Stop | None,
) -> Sweep:
    with StopSignals() if stop is None else nullcontext(stop) as asked, ExitStack() as stack:
        try:
            course = Course(*stack.enter_context(opening), workers, observer or SweepObserver())
        except BaseException:
            workers.close(at_once=True)
            raise
        done = course.go(asked)
        table.write(done)
        return done


def _workers(on: str, devices: Sequence[str], workers: int | None) -> Workers:
    """Raises UsageError for what is no place to train, and on a Ray cluster for what is Ray's business."""
    kind, _, address = on.partition(":")
    if kind not in ("local", "ray") or (kind == "local" and address):
        raise UsageError(f"A sweep runs on local, ray or ray:HOST:PORT, got {on!r}.")
    if kind == "local":
        return LocalWorkers(local.places(devices, workers))
    if workers is not None or len(devices) > 1 or ":" in "".join(devices):
        raise UsageError("On a Ray cluster --devices must be cpu or gpu: Ray chooses the machines.")
    return RayWorkers(address or None, local.places(devices or ["cpu"])[0])
