"""Find the fastest launch schedule of the kernels for a configuration on a GPU adapter (`difflogic tune`).

Each kernel of the fused steps is timed for all workgroup sizes and numbers of lanes. A variant is timed only if it
gives the same bits as the default schedule, which must agree with the reference. The best and the default schedule are
then timed alternately, and the best is stored only if it is clearly faster. An interrupted sweep can be resumed.
"""

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from difflogic.config.schema import Config
from difflogic.devices.selftest import GRADIENT_TOLERANCE, example, largest_difference
from difflogic.engine.batch import Batch
from difflogic.engine.job import TrainState, make_job
from difflogic.engine.population import configs
from difflogic.errors import DeviceError
from difflogic.gpu import tuning_cache
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import FUSED, LINEAR_WG, LaunchConfig
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import fits, may_run, plan_for
from difflogic.gpu.submit import Dispatch
from difflogic.gpu.timing import wake
from difflogic.gpu.tuning_cache import Measured, Seconds, Tuned
from difflogic.gpu.workspace import Workspace
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.system.words import counted

GAIN = 1.05
"""Minimum speedup for storing a schedule; smaller speedups are within the variation of repeated measurements."""
TRAINED = ("gate_forward", "gate_backward")
"""Fused kernels of every train step, whose times determine the best number of lanes."""
ROUNDS = 3
FINAL_ROUNDS = 7
ROUND_SECONDS = 0.02
"""Target duration of a round in seconds; short kernels are repeated so that the time of a submit is negligible."""
MOST_TIMES = 32

WORKGROUP_SIZES = (8, 16, 32, 64, 128, 256, 512)
SOFTWARE_LARGEST = 32
"""Maximum workgroup size on software adapters, which run a workgroup in one thread and compile large sizes slowly."""
LANES = (1, 2, 4, 8, 16, 32)
HOPELESS = 1.5
"""Multiple of the best time above which a sweep stops, since later variants are probably even slower."""

Sweep = list[LaunchConfig]
"""Variants of a schedule with equal numbers of lanes, which differ only in workgroup size."""


@dataclass(frozen=True)
class SweepProgress:
    """Progress of the sweeps in numbers of variants; `total` can decrease, since sweeps skip slow variants."""

    done: int
    total: int
    seconds_left: float

    @property
    def left(self) -> str:
        """Predicted remaining time as text; an upper limit, since sweeps may skip variants."""
        seconds = self.seconds_left
        return f"about {math.ceil(seconds)} s left" if seconds < 90 else f"about {math.ceil(seconds / 60)} min left"


Report = Callable[[str, SweepProgress | None], None]
"""Function that receives a line of text and the progress, or None if the progress has not changed."""


@dataclass(frozen=True)
class TuningResult:
    """Result of tuning; `stored` has the default schedule unless another schedule is clearly faster."""

    default: LaunchConfig
    stored: Tuned
    measured: int
    """Number of timed variants, including those of an interrupted earlier sweep; 0 if the result was cached."""


class Tuner:
    """Tuner of a device for a configuration with one model, or with the largest group of models of a population.

    Models of a group share every dispatch, so the best schedule depends on their number, which the cache key contains.
    """

    def __init__(
        self, device: GpuDevice, config: Config, report: Report = lambda text, progress: None, population: int = 1
    ) -> None:
        self.device, self._report = device, report
        jobs = [make_job(each, Circuit.initial(each.model, each.seed)) for each in configs(config, population)]
        plan = plan_for(device, jobs)
        self.groups, (models, self.plan) = plan.model_groups, plan.parts()[-1]
        self.jobs = jobs[models]
        self.measured = Measured(device.adapter, self.plan)
        self.families = families(device, self.plan)
        self._pending = {each for family in self.families for sweep in family for each in sweep} - set(
            self.measured.seconds
        )
        self._fastest: Seconds = {}
        self._seconds_per_variant: list[float] = []

    def run(self) -> TuningResult:
        """Return the cached result, or measure and store one. Raises DeviceError if a variant's results differ."""
        default = self.plan.launch
        stored = tuning_cache.lookup(self.device.adapter, self.device.limits, self.plan)
        if stored is not None:
            return TuningResult(default, stored, 0)
        self._verify_against_reference()
        progress = self._progress()
        before = f", {progress.done} of them measured before" if progress.done else ""
        self._report(
            f"At most {progress.total} variants{before}; compiling each takes long on software adapters.", progress
        )
        # In one family, each invocation has a separate chunk; in the other, several share a chunk. Within a family,
        # times change smoothly with workgroup size and lanes, so a sweep may stop early. Between families, they do not.
        winners = [winner for family in self.families for winner in self._winners(family)]
        best = min(winners, key=lambda winner: winner[1])[0] if winners else default
        final = self._final(default if best.runs_as(default) else best)
        tuning_cache.store(self.device.adapter, self.plan, final)
        return TuningResult(default, final, len(self.measured.seconds))

    def _winners(self, family: list[Sweep]) -> list[tuple[LaunchConfig, float]]:
        """Return the best schedule per number of lanes, with its seconds per train step; stop if times clearly rise."""
        winners: list[tuple[LaunchConfig, float]] = []
        best: Seconds = {}
        for number, sweep in enumerate(family):
            times = self._sweep(sweep)
            fastest = best_of(times.values())
            wgs = {kernel: min(times, key=lambda each: times[each][kernel]).workgroup_size for kernel in FUSED}
            winner = replace(
                sweep[0],
                workgroup_size=wgs["gate_backward"],
                forward_workgroup_size=wgs["gate_forward"],
                hard_workgroup_size=wgs["hard_forward"],
            )
            winners.append((winner, sum(fastest[kernel] for kernel in TRAINED)))
            # More lanes would be even slower, so the rest of the family is not measured.
            if best and is_hopeless(fastest, best, TRAINED):
                self._pending.difference_update(each for later in family[number + 1 :] for each in later)
                break
            best = best_of([best, fastest])
        return winners

    def _sweep(self, sweep: Sweep) -> dict[LaunchConfig, Seconds]:
        """Return the seconds per kernel of each variant of a sweep; stop if a variant is too slow."""
        times: dict[LaunchConfig, Seconds] = {}
        with ExitStack() as opened:
            work: Workspace | None = None
            for launch in sweep:
                seconds = self.measured.seconds.get(launch)
                if seconds is None:
                    # Verify before timing: a fast schedule that computes other numbers is useless.
                    began = time.perf_counter()
                    self._verify(launch)
                    if work is None:
                        work = opened.enter_context(self._opened(launch)).workspace
                    seconds = self._measure(work.under(launch))
                    self._seconds_per_variant.append(time.perf_counter() - began)
                    self._add(launch, seconds)
                times[launch] = seconds
                self._fastest = best_of([self._fastest, seconds])
                if is_hopeless(seconds, best_of(times.values()), FUSED):
                    self._pending.difference_update(sweep[len(times) :])
                    break
        return times

    def _measure(self, work: Workspace) -> Seconds:
        """Return the seconds of each fused kernel in its fastest round; kernels that are far too slow run one round."""
        best: Seconds = {}
        for kernel, listed in zip(FUSED, (work.forward, work.backward, work.hard_forward()), strict=True):
            dispatches = [dispatch for dispatch in listed if dispatch.kernel == kernel]
            # The first run of a pipeline includes compilation, which may take a hundred times as long as the kernel.
            self._time(work, dispatches[:1])  # `_verify` compiled only the perception of the example
            wake(self.device, partial(self._time, work, dispatches))
            best[kernel] = self._time(work, dispatches)
            if best[kernel] <= max(ROUND_SECONDS, HOPELESS * self._fastest.get(kernel, math.inf)):
                times = min(MOST_TIMES, max(1, int(ROUND_SECONDS / best[kernel])))
                best[kernel] = min(self._time(work, dispatches * times) / times for _ in range(ROUNDS))
        return best

    def _add(self, launch: LaunchConfig, seconds: Seconds) -> None:
        self.measured.add(launch, seconds)
        self._pending.discard(launch)
        times = ", ".join(f"{kernel} {1e3 * kernel_s:.2f} ms" for kernel, kernel_s in seconds.items())
        text = f"chunks {launch.chunks:>3}, workgroups of {launch.workgroup_size:3}: {times}"
        progress = self._progress()
        self._report(f"{text} ({progress.done} of at most {progress.total}, {progress.left})", progress)

    def _progress(self) -> SweepProgress:
        mean_s = statistics.fmean(self._seconds_per_variant) if self._seconds_per_variant else 0.0
        done, pending = len(self.measured.seconds), len(self._pending)
        return SweepProgress(done, done + pending, mean_s * pending)

    def _final(self, best: LaunchConfig) -> Tuned:
        """Time `best` and the default schedule; return `best` if clearly faster, otherwise the default."""
        default = self.plan.launch
        if best == default:
            return Tuned(self.device.adapter.name, default, 0.0, 0.0)
        self._verify(best)
        times: dict[LaunchConfig, list[float]] = {default: [], best: []}
        with self._opened(default) as one, self._opened(best) as other:
            # Time both alternately, so that a machine that becomes warm or busy slows down both alike.
            wake(self.device, lambda: self._time(one.workspace, one.train_step))
            for _ in range(FINAL_ROUNDS):
                for launch, model in ((default, one), (best, other)):
                    times[launch].append(self._time(model.workspace, model.train_step))
        default_ms, best_ms = (1e3 * statistics.median(times[launch]) for launch in (default, best))
        self._report(f"train step: default {default_ms:.2f} ms, best {best_ms:.2f} ms", None)
        # A gain within the noise does not justify compiling other pipelines before training.
        winner = best if default_ms >= GAIN * best_ms else default
        return Tuned(self.device.adapter.name, winner, round(default_ms, 3), round(best_ms, 3))

    def _time(self, work: Workspace, dispatches: list[Dispatch]) -> float:
        """Submit `dispatches` of `work`, and return the seconds until they are done."""
        start = time.perf_counter()
        work.submit(dispatches)
        self.device.download(work.buffers["control"], np.uint32, "tuning", size=4)
        return time.perf_counter() - start

    @contextmanager
    def _opened(self, launch: LaunchConfig) -> Iterator[GpuModel]:
        """Yield a model with the schedule `launch` after two train steps, and close it on exit."""
        states = [TrainState.initial(job) for job in self.jobs]
        model = GpuModel.from_cpu(self.device, self.jobs, states, replace(self.plan, launch=launch))
        with closing(model):
            model.train(2)  # compiles, and fills every buffer with real numbers
            model.fetch_metrics()
            yield model

    @cached_property
    def _expected(self) -> list[bytes]:
        return self._answer(self.plan.launch)

    def _answer(self, launch: LaunchConfig) -> list[bytes]:
        """Return the loss, gradients and hard states of the example with the schedule `launch`, as bytes."""
        circuit, x, y = example()
        engine = GpuEngine(self.device, launch)
        loss, gradients = engine.loss_and_gradients(circuit, Batch(x, y, steps=3))
        layers = [layer for name in sorted(gradients) for layer in gradients[name]]
        hard = engine.rollout(circuit, x, 3, "hard")
        return [np.float32(loss).tobytes(), *(layer.tobytes() for layer in layers), hard.tobytes()]

    def _verify(self, launch: LaunchConfig) -> None:
        # Compare bytes, since a schedule changes which invocation computes what, but never the order of a sum.
        if self._answer(launch) != self._expected:
            self.measured.forget()
            raise DeviceError(
                f"The schedule with {launch.described()} and the default give different results on "
                f"{self.device.adapter.name}: nothing was stored; run `difflogic doctor` to test the adapter."
            )

    def _verify_against_reference(self) -> None:
        circuit, x, y = example()
        batch, ours = Batch(x, y, steps=3), GpuEngine(self.device, self.plan.launch)
        _, expected = ReferenceEngine().loss_and_gradients(circuit, batch)
        if largest_difference(ours.loss_and_gradients(circuit, batch)[1], expected) > GRADIENT_TOLERANCE:
            raise DeviceError(
                f"{self.device.adapter.name} does not agree with the reference: nothing was tuned; "
                "run `difflogic doctor` for details."
            )


def sizes_of(plan: Plan, groups: int) -> str:
    """Return a description of a plan's sizes for messages; `groups` is the population's number of model groups."""
    shape = plan.shape
    largest = f", the largest of {groups} groups" if groups > 1 else ""
    return (
        f"{plan.layout.gates} gates, {shape.width}x{shape.height} grid, batch {shape.batch}, {shape.steps} steps, "
        f"{counted(plan.models, 'model')}{largest}"
    )


def families(device: GpuDevice, plan: Plan) -> list[list[Sweep]]:
    """Return families of sweeps over all variants that the device can run and training would use.

    The first family has one invocation per chunk, the second several invocations that synchronise. If several
    workgroups can share a chunk, the only family consists of such variants.
    """
    largest = SOFTWARE_LARGEST if device.adapter.software else max(WORKGROUP_SIZES)

    def possible(lanes: int, sizes: Iterable[int], split: bool = False, quarters: int = 1) -> Sweep:
        sweep = [LaunchConfig(wg, lanes, split, quarters=quarters) for wg in sizes if wg <= largest]
        same_memory = (each.with_memory(*plan.launch.memory) for each in sweep)
        return [each for each in same_memory if _fills(plan, each) and _fits(device, plan, each)]

    alone = [possible(lanes, [wg for wg in WORKGROUP_SIZES if wg == lanes]) for lanes in LANES]
    shared = [possible(lanes, [wg for wg in WORKGROUP_SIZES if wg > lanes]) for lanes in LANES]
    quarters_tried = () if device.adapter.software else (1, 2)
    wide = [wg for wg in WORKGROUP_SIZES if wg >= LINEAR_WG]
    split = [possible(1, wide, True, quarters) for quarters in quarters_tried]
    kinds = [split] if any(split) else [alone, shared]
    return [family for family in ([sweep for sweep in kind if sweep] for kind in kinds) if family]


def best_of(times: Iterable[Seconds]) -> Seconds:
    """Return the minimum of `times` for each kernel."""
    best: Seconds = {}
    for seconds in times:
        best = {kernel: min(each, best.get(kernel, each)) for kernel, each in seconds.items()}
    return best


def is_hopeless(seconds: Seconds, best: Seconds, kernels: Collection[str]) -> bool:
    """Return whether each of `kernels` takes clearly longer (HOPELESS) than its best time."""
    return all(seconds[kernel] > HOPELESS * best[kernel] for kernel in kernels)


def _fills(plan: Plan, launch: LaunchConfig) -> bool:
    """Return whether the plan's work fills more than half of the lanes, or `launch` runs as the default does."""
    # Count blocks before they are rounded up to complete workgroups: 32 blocks fill a workgroup of 32 lanes, but only
    # half of one with 64 lanes.
    one = replace(
        plan.launch, workgroup_size=1, chunks_per_workgroup=1, forward_workgroup_size=0, hard_workgroup_size=0
    )
    narrow = replace(plan, launch=one)
    return launch.runs_as(plan.launch) or launch.chunks_per_workgroup // 2 < narrow.blocks


def _fits(device: GpuDevice, plan: Plan, launch: LaunchConfig) -> bool:
    """Return whether the device can run the variant `launch` and training would use it."""
    return fits(replace(plan, launch=launch), device.limits) and may_run(plan, launch)
