"""CPU engine: rollouts, gradients and train steps on the caller's arrays, and models that train on the processor."""

import contextlib
import subprocess
from collections import deque
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding

from difflogic.core import bits
from difflogic.cpu import phases, runner
from difflogic.cpu.codegen import compiled, processor, shipped
from difflogic.cpu.codegen.threads import default_threads
from difflogic.cpu.function import CpuFunction
from difflogic.cpu.hard.hard_workspace import HardWorkspace, groups_of
from difflogic.cpu.model import CpuModel
from difflogic.cpu.workspace import SoftWorkspace
from difflogic.engine import control as c
from difflogic.engine import memory
from difflogic.engine.api import EngineInfo, Model
from difflogic.engine.batch import Batch, Mode, check_course, check_grids
from difflogic.engine.events import Damage
from difflogic.engine.job import Floats, Job, OptimizerState, TrainState
from difflogic.engine.population import open_in_turn
from difflogic.engine.shape import Array, Hyper, Shape
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.system.child import python_command
from difflogic.system.processor import cores, processor_name

CACHED_BYTES = 1 << 26
"""Maximum size in bytes of the states of a hard workspace that is cached for the next rollout of its circuit."""
_FEATURES = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse4.2": "SSE4.2", "sse2": "SSE2", "neon": "NEON"}
"""Mapping from LLVM features to the names of vector instruction sets, the widest first."""


class CpuEngine:
    """Engine on the processor, see `difflogic.engine.api.Engine`. Results do not depend on the number of threads."""

    selector = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        """Compile the kernels unless cached; if `threads` is None, use NUMBA_NUM_THREADS or one per processor."""
        self.threads = threads or default_threads()
        compiled_by = f"Numba {numba.__version__}, {vector_unit()}"
        variant = {"threads": self.threads}
        self.info = EngineInfo("cpu", processor_name(), driver=compiled_by, software=True, variant=variant)
        self._cache: deque[tuple[Circuit, HardWorkspace]] = deque(maxlen=1)
        compile_all()

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
        if mode == "hard":
            return self._hard(circuit, shape, grid, fire, damage)
        work = SoftWorkspace(circuit, shape, self.threads, asynchronous=fire is not None)
        work.load(circuit, grid, fire, damage)
        work.run(phases.rollout(shape))
        return work.states()

    def _hard(self, circuit: Circuit, shape: Shape, grid: Array, masks: Array | None, damage: Damage | None) -> Floats:
        work = self._hard_workspace(circuit, shape, masks is not None)
        if masks is not None:
            work.set_masks(masks)
        if damage is not None:
            work.set_damage([(0, damage)])
        work.set_start(bits.pack_grids(grid))
        work.run(circuit.flat_logits().astype(np.float32).reshape(-1))
        states = np.stack([bits.unpack_grids(work.state(step), grid.shape) for step in range(shape.steps + 1)])
        # Not in `finally`: after an exception in the middle of a rollout the workspace must not be reused.
        if work.buffers.words.nbytes <= CACHED_BYTES:
            self._cache.append((circuit, work))
        return states

    def _hard_workspace(self, circuit: Circuit, shape: Shape, asynchronous: bool) -> HardWorkspace:
        """Return the cached workspace if it is for this wiring and shape, otherwise a new one.

        A workspace is not in the cache while it is in use, so that two threads never share it.
        """
        # A long rollout is split into many calls of a few steps; building program and tables takes longer than a call.
        with contextlib.suppress(IndexError):
            other, work = self._cache.pop()
            same_wires = other.perceive_wires is circuit.perceive_wires and other.update_wires is circuit.update_wires
            if same_wires and work.serves(shape, asynchronous):
                return work
        return HardWorkspace(circuit, shape, groups_of(shape.batch), shape.steps + 1, self.threads, asynchronous)

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        work = self._training(circuit, batch, Hyper())
        history = work.run(phases.gradients(work.shape))
        return float(history[0, 0]), circuit.unflatten(work.per_gate(work.buffers.gradients))

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        state = state or OptimizerState.fresh(circuit)
        work = self._training(circuit, batch, Hyper(lr=lr))
        buffers = work.buffers
        work.set_logits(circuit.flat_logits(), state.mu, state.nu)
        buffers.control[c.STEP] = state.step
        loss, skipped = work.run(phases.step(work.shape))[0]
        after = OptimizerState(work.per_gate(buffers.mu), work.per_gate(buffers.nu), int(buffers.control[c.STEP]))
        trained = circuit.with_logits(work.per_gate(buffers.logits))
        return trained, after, {"soft_loss": float(loss), "skipped": bool(skipped)}

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CpuFunction:
        return CpuFunction(self.threads, circuit, grid, steps, hard, every_state)

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        memory.refuse_limit("cpu", max_memory)
        runs = zip(jobs, states, strict=True)
        return open_in_turn([partial(CpuModel, job, state, self.info, self.threads) for job, state in runs])

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        memory.refuse_limit("cpu", max_memory)
        return sum(memory.training_bytes(job.config, self.threads) for job in jobs)

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        return memory.rollout_bytes(grid, steps)

    def _training(self, circuit: Circuit, batch: Batch, hyper: Hyper) -> SoftWorkspace:
        checked = batch.checked(circuit)
        work = SoftWorkspace(circuit, checked.shape, self.threads, hyper, asynchronous=checked.masks is not None)
        work.load(circuit, checked.x, checked.masks, checked.damage)
        work.set_targets(checked.targets)
        return work


@cache
def compile_all() -> None:
    """Compile all entry points, once per process, so that no epoch waits for the compiler."""
    compiled.compile_now(runner.run, "the CPU engine", 5 if shipped.folder().is_dir() else 8, warm_up)


def warm_up() -> None:
    """Call the entry points of soft and of hard rollouts, on two gates and a grid of nine cells."""
    with _second_compiler():
        warm_up_soft()
    warm_up_hard()


def warm_up_soft() -> None:
    """Call the entry point of soft rollouts and train steps."""
    circuit, shape = _smallest()
    SoftWorkspace(circuit, shape, threads=1).run(phases.rollout(shape))


def _second_compiler() -> contextlib.AbstractContextManager[object]:
    """Start a process that compiles the entry point of hard rollouts, unless code is cached or only one core exists.

    Numba compiles in only one thread per process. On exit, the context waits for the process to fill the cache.
    """
    command = python_command("-m", __name__)
    if cores() == 1 or compiled.is_cached() or not command[0]:
        return contextlib.nullcontext()
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)


def warm_up_hard() -> None:
    """Call the entry point of hard rollouts."""
    circuit, shape = _smallest()
    HardWorkspace(circuit, shape, 1, 2, threads=1, asynchronous=False).run(circuit.flat_logits().reshape(-1))


def _smallest() -> tuple[Circuit, Shape]:
    logits = np.zeros((1, 1, 16), dtype=np.float32)
    wires = np.zeros((2, 1), dtype=np.int64)
    circuit = Circuit.from_arrays(
        {"perceive": [logits], "update": [logits[0]]}, {"perceive": [wires], "update": [wires]}, channels=1
    )
    return circuit, Shape(1, 3, 3, 1, steps=1)


def vector_unit() -> str:
    """Return the name of the widest set of vector instructions in use."""
    enabled = set(processor.target()[1].split(","))
    widest = next((name for feature, name in _FEATURES.items() if f"+{feature}" in enabled), "")
    return widest or f"LLVM for {binding.get_process_triple().partition('-')[0]}"


if __name__ == "__main__":
    warm_up_hard()
