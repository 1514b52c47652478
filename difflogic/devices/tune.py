"""`difflogic tune`: which schedule is fastest on this adapter for this work.

Each kernel of the fused steps is swept over workgroup sizes, for each number of lanes; a variant is timed
only after it computed, bit for bit, what the default schedule computes, and that agreed with the reference.
The best of all is then timed in turns with the default, and kept only where it is clearly faster. A sweep
that is cut off goes on where it was.
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

GAIN = 1.05
"""A winner must be this much faster: less is within what repeated measurements of one schedule differ by."""
TRAINED = ("gate_forward", "gate_backward")
"""Those of every train step, by which lanes are chosen."""
ROUNDS = 3
FINAL_ROUNDS = 7
ROUND_SECONDS = 0.02
"""Aim for a round: short kernels go several times, else what is measured is how long a submit takes."""
MOST_TIMES = 32

WORKGROUP_SIZES = (8, 16, 32, 64, 128, 256, 512)
SOFTWARE_LARGEST = 32
"""Software runs a workgroup on one thread, 4 to 16 invocations at a time: larger ones only take longer to compile."""
LANES = (1, 2, 4, 8, 16, 32)
HOPELESS = 1.5
"""So many times the best seconds: what goes further in the same direction would only be worse."""

Sweep = list[LaunchConfig]
"""Variants of the same lanes, which differ in workgroup size alone."""


@dataclass(frozen=True)
class SweepProgress:
    """How far the sweeps are. Variants are ruled out, so that `total` and what is left only fall."""

    done: int
    total: int
    seconds_left: float

    @property
    def left(self) -> str:
        """The time left, in words: less where variants turn out not to be worth measuring."""
        seconds = self.seconds_left
        return f"about {math.ceil(seconds)} s left" if seconds < 90 else f"about {math.ceil(seconds / 60)} min left"


Tell = Callable[[str, SweepProgress | None], None]
"""Takes a line of text, and how far the sweeps are where that has changed."""


@dataclass(frozen=True)
class TuningResult:
    """What tuning found: under `stored` the default, where it stays."""

    default: LaunchConfig
    stored: Tuned
    measured: int
    """Variants timed, in a sweep that was cut off before too; 0 where the answer was stored before."""


class Tuner:
    """Tunes one device for the training of one configuration, or of a population: of its largest group.

    Models share every dispatch, so what is fastest for one need not be so for several: their number is in the key.
    """

    def __init__(
        self, device: GpuDevice, config: Config, tell: Tell = lambda text, progress: None, population: int = 1
    ) -> None:
        self.device, self._tell = device, tell
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
        """Look the answer up, else measure it and store it. Raises DeviceError where a variant is wrong."""
        default = self.plan.launch
        known = tuning_cache.lookup(self.device.adapter, self.device.limits, self.plan)
        if known is not None:
            return TuningResult(default, known, 0)
        self._verify_against_reference()
        progress = self._progress()
        before = f", {progress.done} of them measured before" if progress.done else ""
        self._tell(
            f"At most {progress.total} variants{before}; each is compiled, which software adapters take long for.",
            progress,
        )
        # Two families, invocations that have a chunk to themselves and such that share one: within a family times rise
        # and fall evenly with the numbers, so that a sweep may stop; between the two they do not.
        winners = [winner for family in self.families for winner in self._winners(family)]
        best = min(winners, key=lambda winner: winner[1])[0] if winners else default
        return TuningResult(
            default, self._final(default if best.runs_as(default) else best), len(self.measured.seconds)
        )

    def _winners(self, family: list[Sweep]) -> list[tuple[LaunchConfig, float]]:
        """The best workgroup size of each fused step by lanes, and a train step's seconds; until more are hopeless."""
        winners: list[tuple[LaunchConfig, float]] = []
        best: Seconds = {}
        for number, sweep in enumerate(family):
            times = self._sweep(sweep)
            here = best_of(times.values())
            wgs = {kernel: min(times, key=lambda each: times[each][kernel]).workgroup_size for kernel in FUSED}
            winner = replace(
                sweep[0],
                workgroup_size=wgs["gate_backward"],
                forward_workgroup_size=wgs["gate_forward"],
                hard_workgroup_size=wgs["hard_forward"],
            )
            winners.append((winner, sum(here[kernel] for kernel in TRAINED)))
            # More lanes than these would only be worse: what is left of the family is not measured.
            if best and is_hopeless(here, best, TRAINED):
                self._pending.difference_update(each for later in family[number + 1 :] for each in later)
                break
            best = best_of([best, here])
        return winners

    def _sweep(self, sweep: Sweep) -> dict[LaunchConfig, Seconds]:
        """Each workgroup size's seconds, until a larger one is hopeless."""
        times: dict[LaunchConfig, Seconds] = {}
        with ExitStack() as opened:
            work: Workspace | None = None
            for launch in sweep:
                seconds = self.measured.seconds.get(launch)
                if seconds is None:
                    # Verified before it is timed: a fast schedule that computes something else is worth nothing.
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
        """The least of some rounds of each fused step; of the first alone where that is long, and hopeless."""
        found: Seconds = {}
        for kernel, dispatches in _fused(work).items():
            # The first run of a pipeline includes its compiling, which may take a hundred times as long as the kernel.
            self._time(work, dispatches[:1])  # compiles what verifying did not: this work's perception
            wake(self.device, partial(self._time, work, dispatches))
            found[kernel] = self._time(work, dispatches)
            if found[kernel] <= max(ROUND_SECONDS, HOPELESS * self._fastest.get(kernel, math.inf)):
                times = min(MOST_TIMES, max(1, int(ROUND_SECONDS / found[kernel])))
                found[kernel] = min(self._time(work, dispatches * times) / times for _ in range(ROUNDS))
        return found

    def _add(self, launch: LaunchConfig, seconds: Seconds) -> None:
        self.measured.add(launch, seconds)
        self._pending.discard(launch)
        here = ", ".join(f"{kernel} {1e3 * each:.2f} ms" for kernel, each in seconds.items())
        text = f"{launch.chunks:>3} chunk(s), workgroups of {launch.workgroup_size:3}: {here}"
        progress = self._progress()
        self._tell(f"{text} ({progress.done} of at most {progress.total}, {progress.left})", progress)

    def _progress(self) -> SweepProgress:
        each = statistics.fmean(self._seconds_per_variant) if self._seconds_per_variant else 0.0
        left = len(self._pending)
        return SweepProgress(len(self.measured.seconds), len(self.measured.seconds) + left, each * left)

    def _final(self, best: LaunchConfig) -> Tuned:
        """Train steps of the default and of the best in turns; the result where the best wins clearly."""
        default = self.plan.launch
        if best == default:
            return self._store(Tuned(self.device.adapter.name, default, 0.0, 0.0))
        self._verify(best)
        times: dict[LaunchConfig, list[float]] = {default: [], best: []}
        with self._opened(default) as one, self._opened(best) as other:
            # In turns: a machine that grows warm or busy slows both down alike.
            wake(self.device, lambda: self._time(one.workspace, one.train_step))
            for _ in range(FINAL_ROUNDS):
                for launch, model in ((default, one), (best, other)):
                    times[launch].append(self._time(model.workspace, model.train_step))
        default_ms, best_ms = (1e3 * statistics.median(times[launch]) for launch in (default, best))
        self._tell(f"train step: default {default_ms:.2f} ms, best {best_ms:.2f} ms", None)
        # Training would have to compile other pipelines: a gain within what measurements differ by is not worth that.
        winner = best if default_ms >= GAIN * best_ms else default
        return self._store(Tuned(self.device.adapter.name, winner, round(default_ms, 3), round(best_ms, 3)))

    def _store(self, result: Tuned) -> Tuned:
        tuning_cache.store(self.device.adapter, self.plan, result)
        return result

    def _time(self, work: Workspace, dispatches: list[Dispatch]) -> float:
        """Seconds of a dispatch list, waited for."""
        start = time.perf_counter()
        work.submit(dispatches)
        self.device.download(work.buffers["control"], np.uint32, "tuning", size=4)
        return time.perf_counter() - start

    @contextmanager
    def _opened(self, launch: LaunchConfig) -> Iterator[GpuModel]:
        """The models under a schedule, in the middle of training, closed at the end."""
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
        """What a schedule makes of the example: gradients and hard states, as bytes."""
        circuit, x, y = example()
        engine = GpuEngine(self.device, launch)
        loss, gradients = engine.loss_and_gradients(circuit, Batch(x, y, steps=3))
        layers = [layer for name in sorted(gradients) for layer in gradients[name]]
        hard = engine.rollout(circuit, x, 3, "hard")
        return [np.float32(loss).tobytes(), *(layer.tobytes() for layer in layers), hard.tobytes()]

    def _verify(self, launch: LaunchConfig) -> None:
        # Bytes, not closeness: a schedule decides who computes what, never in which order it is summed.
        if self._answer(launch) != self._expected:
            self.measured.forget()
            raise DeviceError(
                f"The schedule with {launch.described()} gives other numbers than the default on "
                f"{self.device.adapter.name}: nothing was stored; difflogic doctor tests this adapter."
            )

    def _verify_against_reference(self) -> None:
        circuit, x, y = example()
        batch, ours = Batch(x, y, steps=3), GpuEngine(self.device, self.plan.launch)
        _, expected = ReferenceEngine().loss_and_gradients(circuit, batch)
        if largest_difference(ours.loss_and_gradients(circuit, batch)[1], expected) > GRADIENT_TOLERANCE:
            raise DeviceError(
                f"{self.device.adapter.name} does not agree with the reference: nothing was tuned; "
                "difflogic doctor tells more."
            )


def _fused(work: Workspace) -> dict[str, list[Dispatch]]:
    lists = zip(FUSED, (work.forward, work.backward, work.hard_forward), strict=True)
    return {name: [dispatch for dispatch in dispatches if dispatch.kernel == name] for name, dispatches in lists}


def sizes_of(plan: Plan, groups: int) -> str:
    """The work that a plan is for, in words; `groups`: so many such plans are one population."""
    shape = plan.shape
    largest = f", the largest of {groups} groups" if groups > 1 else ""
    return (
        f"{plan.layout.gates} gates, {shape.width}x{shape.height} grid, batch {shape.batch}, {shape.steps} steps, "
        f"{plan.models} model(s){largest}"
    )


def families(device: GpuDevice, plan: Plan) -> list[list[Sweep]]:
    """All variants that the device can run and training would use, from few lanes to many, small workgroups to large.

    First those whose invocations have a chunk to themselves, then those where several share one and wait
    for each other; on a card also those where workgroups share one, and no others where they can.
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
    """The least seconds of each kernel."""
    best: Seconds = {}
    for seconds in times:
        best = {kernel: min(each, best.get(kernel, each)) for kernel, each in seconds.items()}
    return best


def is_hopeless(seconds: Seconds, best: Seconds, kernels: Collection[str]) -> bool:
    """Whether all of these kernels take clearly longer than the best did."""
    return all(seconds[kernel] > HOPELESS * best[kernel] for kernel in kernels)


def _fills(plan: Plan, launch: LaunchConfig) -> bool:
    """Whether half as many lanes would not do: most of them are empty then. The default is measured anyway."""
    # Blocks as they are before they are rounded up to whole workgroups. With 32 blocks, 32 lanes are one workgroup, and
    # 64 would leave half of it idle.
    narrow = replace(
        plan,
        launch=replace(
            plan.launch, workgroup_size=1, chunks_per_workgroup=1, forward_workgroup_size=0, hard_workgroup_size=0
        ),
    )
    return launch.runs_as(plan.launch) or launch.chunks_per_workgroup // 2 < narrow.blocks


def _fits(device: GpuDevice, plan: Plan, launch: LaunchConfig) -> bool:
    """Whether the device can run it, and training would."""
    return fits(replace(plan, launch=launch), device.limits) and may_run(plan, launch)
