"""A hard circuit on one large grid, on a GPU: 32 cells per word, a dispatch per step.

The circuit is a generated function of one statement per gate; a large one is interpreted, since drivers take
minutes over long functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Planes
from difflogic.core.wiring import PATCH
from difflogic.engine.simulation import SimulationSpec, check_masks
from difflogic.errors import DataError, LimitError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.kernels import bindings
from difflogic.gpu.shaders import Source, load_source, make_source
from difflogic.gpu.submit import Dispatch, encode
from difflogic.gpu.uniforms import uniform_struct
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import RegisterProgram, expression, lines, read_inputs, register_program

KERNEL = "simulation/simulate"
BINDINGS = bindings("spec at", "program masks before", "after nodes")
WG = 64
MOST_ROWS = 65535
"""Workgroups of one dimension that every device can do."""
MOST_STATEMENTS = {True: 256, False: 2048}
"""Gates of a generated function, on software and on hardware."""
SCRATCH_BYTES = 64 << 20
"""What the interpreter's nodes may take."""
STEPS_AT_ONCE = 64
WORK_AT_ONCE = {True: 4e7, False: 2e10}
"""Gates times words of one submit, on software and on hardware: less than a tenth of a second."""

_COINS, _GIVEN = 1, 2


class GpuProgram:
    """A circuit as a pipeline of a device, for grids of any size."""

    def __init__(self, netlist: CellNetlist, device: GpuDevice, most_statements: int | None = None) -> None:
        """Raises KernelError where the device does not take it."""
        self.netlist = netlist
        self.device = device
        self.registers = register_program(netlist)
        self.software = device.adapter.software
        self.generated = len(self.registers.code) <= (
            MOST_STATEMENTS[self.software] if most_statements is None else most_statements
        )
        # A generated function keeps values in registers and lets the driver join gates; but drivers compile in more
        # than linear time, so that a large circuit is a table instead, whose values go through memory.
        source = generated_source(netlist) if self.generated else load_source(KERNEL)
        self.pipeline = device.new_pipeline(KERNEL, BINDINGS, device.compile(source), {"WG": WG})


class GpuSimulation:
    """Implements `difflogic.engine.simulation.Simulation`."""

    def __init__(self, spec: SimulationSpec, program: GpuProgram) -> None:
        """Raises LimitError where the device cannot hold or run the grid, DataError for another circuit's program."""
        if spec.netlist is not program.netlist:
            raise DataError("The program was made for another circuit than the simulation's.")
        self.spec = spec
        self.step = 0
        self._program, self._device = program, program.device
        self._words = 2 * spec.words
        self._rows = self._rows_at_once()
        self._check()
        work = self._words * spec.height * (len(program.registers.code) + PATCH * spec.channels)
        self._steps_at_once = int(max(1, min(STEPS_AT_ONCE, WORK_AT_ONCE[program.software] // work)))
        self._make_buffers()

    def _rows_at_once(self) -> int:
        rows = min(self.spec.height, MOST_ROWS)
        if self._program.generated:
            return rows
        # The interpreter has a word of scratch for each register and invocation; few rows at once keep that small.
        return max(1, min(rows, SCRATCH_BYTES // (4 * self._words * max(1, self._program.registers.registers))))

    def _check(self) -> None:
        limits = self._device.limits
        allowed = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
        if self.spec.state_bytes > allowed:
            raise LimitError(
                f"A state of {self.spec.width}x{self.spec.height} cells takes {self.spec.state_bytes / 1e6:.0f} MB, "
                f"but this device binds at most {allowed / 1e6:.0f} MB: use a smaller grid or another engine."
            )

    def _make_buffers(self) -> None:
        device, spec = self._device, self.spec
        at = uniform_struct(KERNEL, "StepIndex")
        table = _table(self._program.registers, spec.channels)
        nodes = 16 if self._program.generated else 4 * self._program.registers.registers * self._words * self._rows
        masks = spec.height * self._words * 4
        self._buffers = {
            "spec": device.buffer("spec", uniform_struct(KERNEL, "SimulationSpec").fields.itemsize, uniform=True),
            "at": device.buffer("at", STEPS_AT_ONCE * at.stride, uniform=True),
            "program": device.buffer("program", max(16, table.nbytes)),
            "masks": device.buffer("masks", masks),
            "even": device.buffer("even", spec.state_bytes),
            "odd": device.buffer("odd", spec.state_bytes),
            "nodes": device.buffer("nodes", max(16, nodes)),
        }
        device.upload(self._buffers["at"], at.pack_all({"step": step} for step in range(STEPS_AT_ONCE)), "shape")
        if table.size:
            device.upload(self._buffers["program"], table, "circuit")
        self._groups = [*(self._bind(step, step % 2 == 0) for step in range(STEPS_AT_ONCE)), self._bind(0, False)]
        """Of the steps of a submit that starts at `even`, and of one that starts at `odd`."""
        self._parity = 0

    def _bind(self, step: int, from_even: bool) -> Any:
        before, after = ("even", "odd") if from_even else ("odd", "even")
        bound = self._buffers | {"before": self._buffers[before], "after": self._buffers[after]}
        struct = uniform_struct(KERNEL, "StepIndex")
        bound["at"] = self._buffers["at"], struct.stride * step, struct.fields.itemsize
        return self._device.bind(KERNEL, BINDINGS, bound)

    def put(self, planes: Planes, step: int = 0) -> None:
        self._parity, self.step = 0, step
        self._device.upload(self._buffers["even"], planes.astype("<u8", copy=False), "states")

    def run(self, steps: int, masks: Planes | None = None) -> None:
        if masks is not None:
            check_masks(self.spec, masks, steps)
            for mask in masks:
                self._device.upload(self._buffers["masks"], mask.astype("<u8", copy=False), "task")
                self._submit(1, _GIVEN)
            return
        mode = _COINS if self.spec.asynchronous else 0
        while steps:
            part = min(steps, self._steps_at_once)
            self._submit(part, mode)
            steps -= part
        self._wait()

    def _submit(self, steps: int, mode: int) -> None:
        """Submit so many steps in one pass; where the state is in `odd`, the first of them goes alone."""
        while steps:
            # Bind groups alternate even -> odd -> even from step 0 on. From an odd state one single step leads back to
            # even: it has the bind group behind all others.
            first = self._parity * STEPS_AT_ONCE
            part = 1 if self._parity else steps
            self._device.upload(self._buffers["spec"], self._spec_bytes(mode), "shape")
            grid = -(-self._words // WG), self._rows
            groups = self._groups[first : first + part]
            dispatches = [Dispatch(KERNEL, self._program.pipeline, group, *grid) for group in groups]
            self._device.queue.submit([encode(self._device, dispatches).finish()])
            self._parity = (self._parity + part) % 2
            self.step += part
            steps -= part

    def _wait(self) -> None:
        """Wait until everything submitted is done."""
        self._device.download(self._buffers["program"], np.uint32, "wait", size=16)

    def _spec_bytes(self, mode: int) -> bytes:
        spec, program = self.spec, self._program.registers
        values = {name: getattr(spec, name) for name in ("height", "width", "channels", "fire_units")}
        values |= {"words": self._words, "periodic": spec.netlist.periodic, "mode": mode, "first_step": self.step}
        values |= {"key": spec.fire_key, "patches": len(program.patches), "gates": len(program.code)}
        return uniform_struct(KERNEL, "SimulationSpec").pack(values)

    def planes(self) -> Planes:
        words = self._device.download(self._buffers["odd" if self._parity else "even"], "<u8", "states")
        spec = self.spec
        return words.astype(np.uint64, copy=False).reshape(spec.height, spec.channels, spec.words)

    def close(self) -> None:
        self._wait()
        for buffer in self._buffers.values():
            buffer.destroy()


def generated_source(netlist: CellNetlist) -> Source:
    """The kernel with the circuit as a function of one statement per gate."""
    body = "\n".join(f"    {line}" for line in _statements(netlist))
    text = f"fn next_words(place: Place, fire: u32) {{\n{body}\n}}\n"
    return make_source(KERNEL, {"simulation/interpreted.wgsl": text})


def _statements(netlist: CellNetlist) -> Iterator[str]:
    for bit in read_inputs(netlist):
        channel, f = divmod(bit, PATCH)
        yield f"let v{bit} = patch_word(place, {channel}u, {f // 3 - 1}, {f % 3 - 1});"
    for line in lines(netlist):
        yield f"let v{line.bit} = {expression(line, 'v{}'.format, '0u', '0xffffffffu')};"
    for channel, output in enumerate(netlist.outputs.tolist()):
        yield f"write_word(place, {channel}u, v{output}, fire);"


def _table(program: RegisterProgram, channels: int) -> npt.NDArray[np.uint32]:
    """Return what `interpreted.wgsl` reads."""
    table = np.zeros((len(program.patches) + len(program.code) + channels, 4), dtype=np.uint32)
    channel, f = np.divmod(program.patches, PATCH)
    first, last = len(program.patches), len(program.patches) + len(program.code)
    table[:first] = np.stack([channel, np.zeros_like(f), f // 3, f % 3], axis=1)
    table[first:last] = program.code
    table[last:, 0] = program.outputs
    return table
