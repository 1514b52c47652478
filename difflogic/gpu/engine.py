"""GPU engine: stateless operations, and models whose training state stays on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import bits
from difflogic.engine import control as c
from difflogic.engine.api import Model
from difflogic.engine.batch import Batch, Mode, check_course, check_grids
from difflogic.engine.events import Damage
from difflogic.engine.job import Floats, Job, OptimizerState, TrainState
from difflogic.engine.population import open_in_turn
from difflogic.engine.shape import Array, Hyper, Shape
from difflogic.gpu import tuning_cache
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.function import GpuFunction
from difflogic.gpu.launch import HARDWARE, SOFTWARE, LaunchConfig
from difflogic.gpu.model import GpuModel, corner_words
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import make_plan, may_run, open_within_memory, plan_for
from difflogic.gpu.probes import open_checked
from difflogic.gpu.wiring import wired
from difflogic.gpu.workspace import Workspace, from_chunks, to_chunks
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.model.layout import flat_layout


class GpuEngine:
    """Implementation of `difflogic.engine.api.Engine` on one GPU adapter."""

    def __init__(self, device: GpuDevice, launch: LaunchConfig | None = None) -> None:
        self.device = device
        self._launch = launch
        kind = SOFTWARE if device.adapter.software else HARDWARE
        self.info = device.info(launch or kind[0])

    @classmethod
    def on(cls, selector: str | None = None, require_hardware: bool = False) -> GpuEngine:
        """Return an engine on the first adapter that `selector` matches (see `select_adapter`). Raises DeviceError."""
        return cls(open_checked(selector, require_hardware))

    @property
    def selector(self) -> str:
        return f"gpu:{self.device.adapter.index}"

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
        return run(circuit.chosen if mode == "hard" else circuit, shape, grid, fire, damage)

    def _soft(self, circuit: Circuit, shape: Shape, grid: Array, masks: Array | None, damage: Damage | None) -> Floats:
        steps = shape.steps
        plan = self._plan(circuit, shape, masks is not None, training=False)
        work = self._workspace(plan, masks, damage)
        self._upload_start(work, circuit, grid)
        work.submit([*work.coefficients, *work.forward])
        states = work.download_all("states", np.float32, "states")
        work.close()
        chunked = states.reshape(steps + 1, work.plan.chunks, circuit.channels, 16)
        return from_chunks(chunked, work.plan.shape.cells).reshape(steps + 1, *grid.shape)

    def _hard(self, circuit: Circuit, shape: Shape, grid: Array, masks: Array | None, damage: Damage | None) -> Floats:
        steps = shape.steps
        work = self._workspace(self._hard_plan(circuit, shape, masks is not None), masks, damage)
        work.upload("logits", circuit.flat_logits().astype(np.float32), "state")
        work.upload(work.words(0), to_chunks(bits.pack_grids(grid).T, work.plan.hard_chunks), "states")
        work.submit([*work.coefficients, *work.hard_forward()])
        words = work.download_all("words", np.uint32, "states")
        work.close()
        chunked = words.reshape(steps + 1, work.plan.hard_chunks, circuit.channels, 16)
        cells = work.plan.groups * shape.cells_per_grid
        return bits.unpack_grids(from_chunks(chunked, cells).swapaxes(-1, -2), grid.shape)

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

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> GpuFunction:
        return GpuFunction(self.device, self._launch, circuit, grid, steps, hard, every_state)

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open the jobs' models in the fewest groups of nearly equal size whose buffers the device can bind."""
        plan = plan_for(self.device, jobs, self._launch, max_memory, reserved)
        if self._launch is None:
            # Use the schedule that `difflogic tune` has stored for this adapter and work, if any.
            stored = tuning_cache.lookup(self.device.adapter, self.device.limits, plan)
            if stored is not None and may_run(plan, stored.launch, max_memory and max_memory - reserved):
                plan = replace(plan, launch=stored.launch)

        def opened(plan: Plan) -> Model:
            return open_in_turn(
                [
                    partial(GpuModel.from_cpu, self.device, jobs[models], states[models], part)
                    for models, part in plan.parts()
                ]
            )

        return open_within_memory(self.device, plan, opened)

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        plan = plan_for(self.device, jobs, self._launch, max_memory, reserved)
        return plan.model_groups * plan.total_bytes()

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        return self._hard_plan(circuit, Shape.of(circuit, grid, steps), asynchronous).total_bytes()

    def _prepare(self, circuit: Circuit, batch: Batch, hyper: Hyper) -> Workspace:
        """Return a new workspace with uploaded circuit, initial states and targets."""
        checked = batch.checked(circuit)
        shape = checked.shape
        plan = self._plan(circuit, shape, checked.masks is not None)
        work = self._workspace(plan, checked.masks, checked.damage, hyper)
        self._upload_start(work, circuit, checked.x)
        targets = checked.targets.reshape(shape.targets, -1, shape.loss_channels)
        work.upload("targets", to_chunks(targets, work.plan.chunks), "task")
        return work

    def _plan(self, circuit: Circuit, shape: Shape, asynchronous: bool, training: bool = True, probes: int = 0) -> Plan:
        work = Plan(
            tuple(wired([flat_layout(circuit)])), shape, probes=probes, training=training, asynchronous=asynchronous
        )
        return make_plan(self.device.adapter, self.device.limits, work, self._launch)

    def _hard_plan(self, circuit: Circuit, shape: Shape, asynchronous: bool) -> Plan:
        """Return the plan of hard rollouts of `shape`, with its samples as evaluation grids and an empty soft batch."""
        return self._plan(circuit, replace(shape, batch=1), asynchronous, training=False, probes=shape.batch)

    def _workspace(
        self, plan: Plan, masks: Array | None, damage: Damage | None, hyper: Hyper | None = None
    ) -> Workspace:
        # any rate below 1 makes the kernels read the masks, which are uploaded below
        hyper, fire_rate = hyper or Hyper(), 0.5 if plan.asynchronous else 1.0
        work = open_within_memory(self.device, plan, lambda plan: Workspace(self.device, plan, hyper, fire_rate))
        if masks is not None:
            work.upload("hard_masks" if plan.probes else "masks", masks, "task")
        if damage is not None and damage.steps:
            work.upload("corners", corner_words(damage.corners[None], plan), "task")
        if damage is not None and damage.faults is not None:
            work.set_faults([damage.faults.key], damage.faults.listed)
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
        """Return the loss and whether the update was skipped, from the first entry of the metrics."""
        entry = self.device.download(work.buffers["history"], np.uint32, "metrics", size=8)
        return float(entry.view(np.float32)[0]), bool(entry[1])
