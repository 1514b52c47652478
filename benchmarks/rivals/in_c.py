"""Train step in C, compiled for the processor that Numba compiles for, with threads by OpenMP."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.rivals.problem import Problem
from benchmarks.simulate import compiler
from difflogic.core.gates import TABLE
from difflogic.model.layout import flat_layout
from difflogic.system.processor import cores

SOURCE = Path(__file__).with_name("training.c")


class Training:
    """Training run in C; its memory is one structure, which `training.c` defines."""

    def __init__(self, problem: Problem) -> None:
        config, layout = problem.config, flat_layout(problem.circuit)
        task, batch, channels = config.task, config.train.batch, config.model.channels
        if problem.circuit.periodic or batch > 8 or task.height % max(1, 32 // task.width) or 32 % task.width:
            raise SystemExit("The rival in C knows grids with an edge whose rows fill tiles of 32 cells.")
        sizes = {
            "CHANNELS": channels,
            "HEIGHT": task.height,
            "WIDTH": task.width,
            "BATCH": batch,
            "STEPS": task.steps,
            "LOSS_CHANNELS": task.loss_channels,
            "LEVELS": len(layout.levels),
            "GATES": layout.gates,
            "INSTANCES": layout.instances,
        }
        # `instruction_sets` sets the processor that Numba, and here the C compiler, compiles for.
        march = os.environ.get("NUMBA_CPU_NAME", "native")
        library = _compiled(march, sizes)
        self._train, hyper = library.train, problem.hyper
        levels = np.array([(each.first_instance, each.count, each.first_gate, each.replicas) for each in layout.levels])
        logits = problem.circuit.flat_logits().astype(np.float32)
        target = np.moveaxis(problem.target(), -1, 0).astype(np.float32)
        numbers = (hyper.lr, hyper.weight_decay, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.clip)
        parts = [levels.astype(np.int32), layout.wires.astype(np.int32), TABLE.astype(np.float32), logits]
        parts += [np.zeros_like(logits)] * 2 + [target, np.array(numbers, dtype=np.float32)]
        self._memory = _aligned(library.training_bytes())
        given = np.concatenate([part.reshape(-1).view(np.uint8) for part in parts])
        self._memory[: given.size] = given
        after = -(-(given.size + 4) // 8) * 8  # the number of steps, 0, and padding
        self._memory[after : after + 8] = np.array([88172645463325252], dtype=np.uint64).view(np.uint8)
        self._first_state = after + 8 + 4 * layout.gates * 20
        self._padded = (channels, batch, task.height + 2, task.width + 2)
        self._scratch = _aligned(cores() * library.scratch_bytes())
        self.device = f"C, -march={march}"

    def step(self, x: np.ndarray) -> tuple[float, int]:
        """Run a train step from the initial states `x`; return the soft and the hard loss before the step."""
        state = self._memory[self._first_state :][: 4 * int(np.prod(self._padded))].view(np.float32)
        state.reshape(self._padded)[:, :, 1:-1, 1:-1] = np.moveaxis(x, -1, 0)
        return self._run(1, drawn=False)

    def repeat(self, count: int) -> float:
        """Run `count` train steps with random initial states; return the mean seconds of a step."""
        begin = time.perf_counter()
        self._run(count, drawn=True)
        return (time.perf_counter() - begin) / count

    def _run(self, count: int, drawn: bool) -> tuple[float, int]:
        losses = np.zeros(2)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (self._memory, self._scratch, losses)]
        self._train(*pointers[:2], count, int(drawn), pointers[2])
        return float(losses[0]), int(losses[1])


def _compiled(march: str, sizes: dict[str, int]) -> ctypes.CDLL:
    flags = ["-O3", f"-march={march}", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.so"
        sizes_given = [f"-D{name}={value}" for name, value in sizes.items()]
        subprocess.run([*compiler(), *flags, *sizes_given, "-o", path, SOURCE, "-lm"], check=True)
        library = ctypes.CDLL(str(path))
    library.training_bytes.restype = library.scratch_bytes.restype = ctypes.c_long
    return library


def _aligned(size: int) -> np.ndarray:
    """Return zeros in memory that begins at a cache line."""
    memory = np.zeros(size + 64, dtype=np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + size]
