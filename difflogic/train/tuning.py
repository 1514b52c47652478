"""`difflogic tune`: which schedule is fastest on this adapter for this work.

Each kernel of the fused steps is swept over workgroup sizes, for each number of lanes; a variant is timed
only after it computed, bit for bit, what the default schedule computes, and that agreed with the reference.
The best of all is then timed in turns with the default, and kept only where it is clearly faster.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from difflogic.batch import Batch
from difflogic.circuit import Circuit
from difflogic.config import Config
from difflogic.engine import TrainState
from difflogic.errors import DeviceError, LimitError
from difflogic.gpu import tuned
from difflogic.gpu.device import Device
from difflogic.gpu.encoding import Dispatch
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.model import GpuModel, plan_in_groups
from difflogic.gpu.plan import Plan, Schedule
from difflogic.gpu.tuned import Tuned
from difflogic.gpu.workspace import Workspace
from difflogic.train.population import configs
from difflogic.train.selftest import GRADIENT_TOLERANCE, example
from difflogic.train.tasks import make_job

GAIN = 1.05
"""A winner must be this much faster: less is within what repeated measurements of one schedule differ by."""
WORKGROUP_SIZES = (8, 16, 32, 64, 128, 256, 512)
LANES = (1, 2, 4, 8, 16, 32)
HOPELESS = 1.5
"""So much slower than the best of the same lanes, for every kernel: larger workgroups are not tried."""
ROUNDS = 3
FINAL_ROUNDS = 7

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What tuning found. `stored` is None where the default stays."""

    default: Schedule
    stored: Tuned | None
    measured: int
    """Variants timed; 0 where the answer was stored before."""


class Tuner:
    """Tunes one device for the training of one configuration, or of a population: of its largest group.

    Models share every dispatch, so what is fastest for one need not be so for several: their number is in the key.
    """

    def __init__(self, device: Device, config: Config, say: Say, population: int = 1) -> None:
        self.device, self.say = device, say
        jobs = [make_job(each, Circuit.initial(each.model, each.seed)) for each in configs(config, population)]
        self.groups, self.plan = plan_in_groups(device, jobs)
        self.jobs = jobs[: self.plan.models]
        self._expected = self._answer(self.plan.schedule)

    def candidates(self) -> Iterator[tuple[int, list[int]]]:
        """Lanes, and workgroup sizes that go with them on this device and take gates in the same order."""
        largest = min(
            self.device.limits["max-compute-invocations-per-workgroup"],
            self.device.limits["max-compute-workgroup-size-x"],
        )
        for lanes in LANES:
            sizes = [wg for wg in WORKGROUP_SIZES if lanes <= wg <= largest]
            for alike in ([wg for wg in sizes if wg == lanes], [wg for wg in sizes if wg > lanes]):
                if alike and self._fits(self._base(lanes, alike[0])):
                    yield lanes, alike

    def run(self, dry_run: bool = False) -> Outcome:
        """Look the answer up, else measure it and store it. Raises DeviceError where a variant is wrong."""
        default = self.plan.schedule
        known = tuned.lookup(self.device.adapter, self.device.limits, self.plan)
        if known is not None or dry_run:
            return Outcome(default, known, 0)
        self._verify_against_reference()
        best, measured = default, 0
        best_seconds = float("inf")
        for lanes, sizes in self.candidates():
            found, seconds, count = self._sweep(lanes, sizes)
            measured += count
            if seconds < best_seconds:
                best, best_seconds = found, seconds
        return Outcome(default, self._final(best), measured)

    def _sweep(self, lanes: int, sizes: list[int]) -> tuple[Schedule, float, int]:
        """The best workgroup size of each fused step for so many lanes, and their seconds in all."""
        base = self._base(lanes, sizes[0])
        times: dict[str, dict[int, float]] = {"gate_forward": {}, "gate_backward": {}, "hard_forward": {}}
        with _Opened(self, base) as model:
            for wg in sizes:
                schedule = replace(base, wg=wg)
                if not self._fits(schedule):
                    continue
                self._verify(schedule)
                work = model.workspace.under(schedule)
                for kernel, dispatches in _fused(work).items():
                    times[kernel][wg] = min(self._time(work, dispatches) for _ in range(ROUNDS))
                here = ", ".join(f"{kernel} {1e3 * found[wg]:.2f} ms" for kernel, found in times.items())
                self.say(f"lanes {lanes:2}, workgroups of {wg:3}: {here}")
                if all(found[wg] > HOPELESS * min(found.values()) for found in times.values()):
                    break  # larger ones would only be worse
        best = {kernel: min(found, key=found.__getitem__) for kernel, found in times.items()}
        winner = replace(base, wg=best["gate_backward"], forward_wg=best["gate_forward"], hard_wg=best["hard_forward"])
        seconds = sum(min(times[kernel].values()) for kernel in ("gate_forward", "gate_backward"))
        return winner, seconds, sum(map(len, times.values()))

    def _base(self, lanes: int, wg: int) -> Schedule:
        """One workgroup size for all, and the memory plan that the work gets."""
        return Schedule(wg, lanes).with_memory(*self.plan.schedule.memory)

    def _final(self, best: Schedule) -> Tuned | None:
        """Train steps of the default and of the best in turns; the result where the best wins clearly."""
        default = self.plan.schedule
        if best == default:
            return self._store(Tuned(self.device.adapter.name, default, 0.0, 0.0))
        self._verify(best)
        times: dict[Schedule, list[float]] = {default: [], best: []}
        with _Opened(self, default) as one, _Opened(self, best) as other:
            for _ in range(FINAL_ROUNDS):
                for schedule, model in ((default, one), (best, other)):
                    times[schedule].append(self._time(model.workspace, model.train_step))
        default_ms, best_ms = (1e3 * statistics.median(times[schedule]) for schedule in (default, best))
        self.say(f"train step: default {default_ms:.2f} ms, best {best_ms:.2f} ms")
        winner = best if default_ms >= GAIN * best_ms else default
        return self._store(Tuned(self.device.adapter.name, winner, round(default_ms, 3), round(best_ms, 3)))

    def _store(self, result: Tuned) -> Tuned:
        tuned.store(self.device.adapter, self.plan, result)
        return result

    def _fits(self, schedule: Schedule) -> bool:
        """Whether the device can run it, and training would."""
        plan = replace(self.plan, schedule=schedule)
        try:
            plan.check(self.device.limits, self.device.adapter.limits_loops)
        except LimitError:
            return False
        return self.plan.may_run(schedule, self.device.max_memory, self.groups)

    def _time(self, work: Workspace, dispatches: list[Dispatch]) -> float:
        """Seconds of a dispatch list, waited for."""
        start = time.perf_counter()
        work.submit(dispatches)
        self.device.download(work.buffers["control"], np.uint32, "tuning", size=4)
        return time.perf_counter() - start

    def _answer(self, schedule: Schedule) -> list[bytes]:
        """What a schedule makes of the example: gradients and hard states, as bytes."""
        circuit, x, y = example()
        engine = GpuEngine(self.device, schedule)
        loss, gradients = engine.loss_and_gradients(circuit, Batch(x, y, steps=3))
        layers = [layer for name in sorted(gradients) for layer in gradients[name]]
        hard = engine.rollout(circuit, x, 3, "hard")
        return [np.float32(loss).tobytes(), *(layer.tobytes() for layer in layers), hard.tobytes()]

    def _verify(self, schedule: Schedule) -> None:
        if self._answer(schedule) != self._expected:
            raise DeviceError(
                f"The schedule {schedule} gives other numbers than the default on {self.device.adapter.name}: nothing "
                "was stored; difflogic doctor tells whether this adapter can be trusted."
            )

    def _verify_against_reference(self) -> None:
        from difflogic.reference.engine import ReferenceEngine

        circuit, x, y = example()
        _, got = GpuEngine(self.device, self.plan.schedule).loss_and_gradients(circuit, Batch(x, y, steps=3))
        _, expected = ReferenceEngine().loss_and_gradients(circuit, Batch(x, y, steps=3))
        for name, layers in expected.items():
            for ours, theirs in zip(got[name], layers, strict=True):
                if np.abs(ours - theirs).max() > GRADIENT_TOLERANCE * np.abs(theirs).max():
                    raise DeviceError(
                        f"{self.device.adapter.name} does not agree with the reference: nothing was tuned; "
                        "difflogic doctor tells more."
                    )


class _Opened:
    """The models under a schedule, in the middle of training, closed at the end."""

    def __init__(self, tuner: Tuner, schedule: Schedule) -> None:
        self.tuner, self.schedule = tuner, schedule

    def __enter__(self) -> GpuModel:
        jobs, groups = self.tuner.jobs, self.tuner.groups
        states = [TrainState.initial(job) for job in jobs]
        self.model = GpuModel.from_cpu(self.tuner.device, jobs, states, self.schedule, groups)
        self.model.train(2)  # compiles, and fills every buffer with real numbers
        self.model.drain()
        return self.model

    def __exit__(self, *_: object) -> None:
        self.model.close()


def _fused(work: Workspace) -> dict[str, list[Dispatch]]:
    """The dispatches of each fused step."""
    lists = (work.forward, work.backward, work.hard_forward)
    names = ("gate_forward", "gate_backward", "hard_forward")
    return {
        name: [dispatch for dispatch in dispatches if dispatch.kernel == name]
        for name, dispatches in zip(names, lists, strict=True)
    }


def sizes_of(plan: Plan, groups: int) -> str:
    """The work that a plan is for, in words; `groups`: so many such plans are one population."""
    shape = plan.shape
    largest = f", the largest of {groups} groups" if groups > 1 else ""
    return (
        f"{plan.layout.gates} gates, {shape.height}x{shape.width} grid, batch {shape.batch}, {shape.steps} steps, "
        f"{plan.models} model(s){largest}"
    )
