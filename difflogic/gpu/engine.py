"""The GPU engine: the stateless calls, and models that train on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import bits
from difflogic import control as c
from difflogic.batch import Batch, Mode, check_course, check_grids
from difflogic.circuit import ArraysByNetwork, Circuit
from difflogic.damage import Damage
from difflogic.engine import (
    Floats,
    Job,
    OptimizerState,
    TrainState,
)
from difflogic.gpu import tuned
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import Device
from difflogic.gpu.groups import GpuGroups
from difflogic.gpu.model import GpuModel, corner_words, plan_for, plan_in_groups
from difflogic.gpu.plan import HARDWARE, SOFTWARE, Plan, Schedule, make_plan
from difflogic.gpu.trees import wired
from difflogic.gpu.workspace import Workspace, from_chunks, to_chunks
from difflogic.layout import flat_layout
from difflogic.shape import Hyper, Shape

Array = npt.NDArray[Any]


class GpuEngine:
    """Implements `difflogic.engine.Engine` on one adapter."""

    def __init__(self, device: Device, schedule: Schedule | None = None) -> None:
        self.device = device
        self._schedule = schedule
        kind = SOFTWARE if device.adapter.software else HARDWARE
        self.info = device.info(schedule or kind[0])

    @classmethod
    def open(cls, selector: str | None = None, require_hardware: bool = False) -> GpuEngine:
        """On the adapter of that index or name, else on the first. Raises NoAdapterError."""
        return cls(Device(select_adapter(selector, require_hardware)))

    def limit_memory(self, max_memory: int) -> None:
        """Models opened from now on take at most so many bytes of device memory, or raise LimitError."""
        self.device.max_memory = max_memory

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        grid, fire = check_grids(circuit, x, steps, masks, mode)
        check_course(grid, steps, (), damage)
        shape = Shape.of(circuit, grid.shape, steps, damage=damage)
        run = self._hard if mode == "hard" else self._soft
        return run(circuit, shape, grid, fire, damage)

    def _soft(self, circuit: Circuit, shape: Shape, grid: Array, masks: Array | None, damage: Damage | None) -> Floats:
        steps = shape.steps
        work = self._workspace(circuit, shape, masks, damage, training=False)
        self._upload_start(work, circuit, grid)
        work.submit([*work.coefficients, *work.forward])
        states = work.download_all("states", np.float32, "states")
        work.close()
        chunked = states.reshape(steps + 1, work.plan.chunks, circuit.channels, 16)
        return from_chunks(chunked, work.plan.shape.cells).reshape(steps + 1, *grid.shape)

    def _hard(self, circuit: Circuit, shape: Shape, grid: Array, masks: Array | None, damage: Damage | None) -> Floats:
        steps = shape.steps
        work = self._workspace(circuit, shape, masks, damage, training=False, probes=len(grid))
        work.upload("logits", circuit.flat_logits().astype(np.float32), "state")
        work.upload(work.words(0), to_chunks(bits.pack(grid).T, work.plan.hard_chunks), "states")
        work.submit([*work.coefficients, *work.hard_forward])
        words = work.download_all("words", np.uint32, "states")
        work.close()
        chunked = words.reshape(steps + 1, work.plan.hard_chunks, circuit.channels, 16)
        cells = work.plan.groups * shape.cells_per_grid
        return bits.unpack(from_chunks(chunked, cells).swapaxes(-1, -2), grid.shape)

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        work = self._prepare(circuit, batch, Hyper())
        self._upload_optimizer(work, OptimizerState.fresh(circuit))
        work.submit([*work.coefficients, *work.forward, *work.backward])
        loss, _ = self._outcome(work)
        gradients = work.download("gradients", np.float32, "gradients").reshape(-1, 16)
        work.close()
        return loss, circuit.unflatten(gradients)

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        work = self._prepare(circuit, batch, Hyper(lr=lr))
        self._upload_optimizer(work, state or OptimizerState.fresh(circuit))
        work.submit([*work.coefficients, *work.forward, *work.backward, *work.update])
        loss, skipped = self._outcome(work)
        logits, mu, nu = (work.download(name, np.float32, "state").reshape(-1, 16) for name in ("logits", "mu", "nu"))
        step = int(work.download("control", np.uint32, "state")[c.STEP])
        work.close()
        return circuit.with_logits(logits), OptimizerState(mu, nu, step), {"soft_loss": loss, "skipped": skipped}

    def open_model(self, job: Job, state: TrainState) -> GpuModel:
        schedule = self._schedule or self._tuned(plan_for(self.device, [job]))
        return GpuModel.from_cpu(self.device, [job], [state], schedule)

    def open_population(self, jobs: Sequence[Job], states: Sequence[TrainState]) -> GpuModel | GpuGroups:
        groups, plan = plan_in_groups(self.device, jobs, self._schedule)
        schedule = self._schedule or self._tuned(plan, groups)
        if groups > 1:
            return GpuGroups.from_cpu(self.device, jobs, states, groups, schedule)
        return GpuModel.from_cpu(self.device, jobs, states, schedule)

    def _tuned(self, plan: Plan, groups: int = 1) -> Schedule | None:
        """What `difflogic tune` stored on this adapter for this work, which is that of the largest of some groups."""
        stored = tuned.lookup(self.device.adapter, self.device.limits, plan)
        if stored is None or not plan.may_run(stored.schedule, self.device.max_memory, groups):
            return None
        return stored.schedule

    def _prepare(self, circuit: Circuit, batch: Batch, hyper: Hyper) -> Workspace:
        """A workspace with circuit, start and target uploaded."""
        checked = batch.checked(circuit)
        shape = checked.shape
        work = self._workspace(circuit, shape, checked.masks, checked.damage, hyper=hyper)
        self._upload_start(work, circuit, checked.x)
        targets = checked.targets.reshape(-1, shape.loss_channels)
        work.upload("targets", to_chunks(targets, work.plan.chunks), "task")
        return work

    def _workspace(
        self,
        circuit: Circuit,
        shape: Shape,
        masks: Array | None,
        damage: Damage | None,
        training: bool = True,
        probes: int = 0,
        hyper: Hyper | None = None,
    ) -> Workspace:
        device = self.device
        asynchronous = masks is not None
        plan = make_plan(
            device.adapter,
            device.limits,
            wired([flat_layout(circuit)]),
            shape,
            probes,
            schedule=self._schedule,
            training=training,
            asynchronous=asynchronous,
        )
        # any rate below 1 makes the kernels read the masks; the masks themselves are given
        work = Workspace(device, plan, hyper or Hyper(), 0.5 if asynchronous else 1.0)
        if masks is not None:
            work.upload("hard_masks" if probes else "masks", masks, "task")
        if damage is not None:
            work.upload("corners", corner_words(damage.corners[None], plan), "task")
        return work

    def _upload_start(self, work: Workspace, circuit: Circuit, grid: Array) -> None:
        work.upload("logits", circuit.flat_logits().astype(np.float32), "state")
        start = to_chunks(grid.reshape(-1, circuit.channels), work.plan.chunks)
        work.upload(work.state(0), start, "states")

    def _upload_optimizer(self, work: Workspace, state: OptimizerState) -> None:
        control = np.zeros(c.WORDS, dtype=np.uint32)
        control[c.STEP] = state.step
        for name, data in (("mu", state.mu), ("nu", state.nu), ("control", control)):
            work.upload(name, data, "state")

    def _outcome(self, work: Workspace) -> tuple[float, bool]:
        """The loss and whether the step was skipped: the history's first entry."""
        entry = work.device.download(work.buffers["history"], np.uint32, "metrics", size=8)
        return float(entry.view(np.float32)[0]), bool(entry[1])
