"""Simulate a hard circuit on one large grid on a GPU: 32 cells per word, several generations per dispatch.

The circuit is a generated function of one statement per gate. A dispatch computes several synchronous steps in
workgroup memory (`simulation/blocked.wgsl`), or one step if it is asynchronous or the circuit is large
(`simulation/simulate.wgsl`). Very large circuits are interpreted, since drivers take minutes to compile long functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Planes
from difflogic.core.wiring import PATCH
from difflogic.engine.simulation import SimulationSpec, check_masks
from difflogic.errors import DataError, LimitError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.shaders import Source, load_source, make_source
from difflogic.gpu.submit import Dispatch, encode
from difflogic.gpu.uniforms import uniform_struct
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import RegisterProgram, expression, lines, read_inputs, register_program

KERNEL, BLOCKED = "simulation/simulate", "simulation/blocked"
BAKED = ("height", "width", "channels", "words", "periodic", "mode")
"""Fields of the uniform that are compiled in as constants, except on software adapters."""
WG = 64
MOST_ROWS = 65535
"""Maximum number of workgroups per dispatch dimension that every device supports."""
MOST_STATEMENTS = {True: 256, False: 2048}
"""Maximum number of generated statements, keyed by whether the adapter is software; each row of a strip counts."""
SCRATCH_BYTES = 64 << 20
"""Maximum size in bytes of the interpreter's buffer of nodes."""
STEPS_AT_ONCE = 64
"""Maximum number of dispatches per submit."""
WORK_AT_ONCE = {True: 4e7, False: 2e10}
"""Maximum work per submit in gates times words, less than 0.1 seconds, keyed by whether the adapter is software."""

COLUMNS = 32
"""Number of words per tile row; the two outermost words are only read as neighbours."""
STRIP = 8
"""Number of rows of a tile per invocation."""
TILE_ROWS, GENERATIONS = 64, 8
"""Maximum numbers of rows per tile and of generations per dispatch; beyond these, margins cost more than dispatches."""

_SYNCHRONOUS, _COINS, _GIVEN = 0, 1, 2


class Tile(NamedTuple):
    """Size of a workgroup's tile: numbers of its rows and of the generations computed per dispatch."""

    rows: int
    generations: int

    @classmethod
    def of(cls, channels: int, workgroup_bytes: int) -> Tile | None:
        """Return the largest tile that fits twice into `workgroup_bytes`, or None if it would be mostly margins."""
        rows = min(TILE_ROWS, workgroup_bytes // (2 * 4 * COLUMNS * channels) // STRIP * STRIP)
        generations = min(GENERATIONS, rows // STRIP)
        return cls(rows, generations) if generations > 1 else None

    @property
    def inner_rows(self) -> int:
        return self.rows - 2 * self.generations

    def constants(self, channels: int) -> dict[str, int]:
        """Return the `override` constants of the blocked kernel."""
        return {
            "WG": COLUMNS * self.rows // STRIP,
            "ROWS": self.rows,
            "STRIP": STRIP,
            "MARGIN": self.generations,
            "CHANNELS": channels,
            "TILE": 2 * self.rows * channels * COLUMNS,
        }


class GpuProgram:
    """Shaders that simulate a circuit on a device, compiled for grids of any size."""

    def __init__(self, netlist: CellNetlist, device: GpuDevice, most_statements: int | None = None) -> None:
        """Generate the shaders' sources; `most_statements` replaces the device's maximum in MOST_STATEMENTS."""
        self.netlist = netlist
        self.device = device
        self.registers = register_program(netlist)
        self.software = device.adapter.software
        most = MOST_STATEMENTS[self.software] if most_statements is None else most_statements
        self.generated = len(self.registers.code) <= most
        self.tile = None
        """Tile of the blocked kernel, or None if the circuit has too many gates or channels for that kernel."""
        if STRIP * len(self.registers.code) <= most:
            self.tile = Tile.of(netlist.channels, device.limits["max-compute-workgroup-storage-size"])
        # Compile time grows more than linearly, so a large circuit is a table, which the shader interprets.
        self.sources = {KERNEL: generated_source(netlist) if self.generated else load_source(KERNEL)}
        if self.tile is not None:
            self.sources[BLOCKED] = blocked_source(netlist)
        self._pipelines: dict[str, Any] = {}

    def pipeline(self, kernel: str, spec: dict[str, Any]) -> Any:
        """Return the pipeline of a kernel for the uniform values `spec`. Raises KernelError if it does not compile."""
        sizes = tuple((name, int(spec[name])) for name in BAKED)
        source = self.device.specialized(self.sources[kernel], "spec", sizes)
        if source.text not in self._pipelines:
            constants = {"WG": WG} if kernel == KERNEL or self.tile is None else self.tile.constants(spec["channels"])
            module = self.device.compile(source, is_trusted=self.device.trusts_kernels)
            self._pipelines[source.text] = self.device.new_pipeline(source, module, constants)
        return self._pipelines[source.text]


class GpuSimulation:
    """GPU implementation of `difflogic.engine.simulation.Simulation`."""

    def __init__(self, spec: SimulationSpec, program: GpuProgram, blocks: bool | None = None) -> None:
        """Allocate buffers; `blocks` allows several generations per dispatch (None: only if that is faster).

        Raises LimitError if the grid exceeds a limit of the device, or DataError if `program` is for another circuit.
        """
        if spec.netlist is not program.netlist:
            raise DataError("Expected a program for the simulation's circuit, got a program for another circuit.")
        self.spec = spec
        self.step = 0
        self._program, self._device = program, program.device
        self._words = 2 * spec.words
        self._rows = min(spec.height, MOST_ROWS)
        if not program.generated:
            # The interpreter needs a word of scratch per register and invocation, so it computes few rows at a time.
            row_bytes = 4 * self._words * max(1, program.registers.registers)
            self._rows = max(1, min(self._rows, SCRATCH_BYTES // row_bytes))
        self._check()
        is_worth = is_worth_blocks(spec, program) if blocks is None else blocks
        self._tile = program.tile if is_worth and not spec.asynchronous else None
        work = self._words * spec.height * (len(program.registers.code) + PATCH * spec.channels)
        each = self._tile.generations if self._tile else 1
        most = min(STEPS_AT_ONCE, WORK_AT_ONCE[program.software] // (each * work))
        self._steps_at_once = each * int(max(1, most))
        self._make_buffers()

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
        self._groups: dict[tuple[str, int, int], Any] = {}
        self._uploaded = b""
        self._parity = 0

    def _group(self, kernel: str, number: int) -> Any:
        """Return the bind group that reads the current state, with entry `number` of the buffer `at` as step index."""
        key = kernel, number, self._parity
        if key not in self._groups:
            before, after = ("odd", "even") if self._parity else ("even", "odd")
            bound = self._buffers | {"before": self._buffers[before], "after": self._buffers[after]}
            struct = uniform_struct(KERNEL, "StepIndex")
            bound["at"] = self._buffers["at"], struct.stride * number, struct.fields.itemsize
            self._groups[key] = self._device.bind(self._program.sources[kernel], bound)
        return self._groups[key]

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
        mode = _COINS if self.spec.asynchronous else _SYNCHRONOUS
        while steps:
            part = min(steps, self._steps_at_once)
            self._submit(part, mode)
            steps -= part
        self._wait()

    def _submit(self, steps: int, mode: int) -> None:
        """Submit `steps` steps as one compute pass; `mode`: synchronous, sampled fire masks, or supplied ones."""
        tile = self._tile if mode == _SYNCHRONOUS else None
        kernel, values = (BLOCKED if tile else KERNEL), self._values(mode)
        packed = uniform_struct(KERNEL, "SimulationSpec").pack(values)
        if packed != self._uploaded:
            self._device.upload(self._buffers["spec"], packed, "shape")
            self._uploaded = packed
        pipeline, grid = self._program.pipeline(kernel, values), (-(-self._words // WG), self._rows)
        if tile:
            grid = -(-self.spec.width // (32 * (COLUMNS - 2))), -(-self.spec.height // tile.inner_rows)
        dispatches, done = [], 0
        while done < steps:
            # The uniform is the step's index within the submit or, for a block, its number of generations.
            count = min(tile.generations, steps - done) if tile else 1
            dispatches.append(Dispatch(kernel, pipeline, self._group(kernel, count if tile else done), *grid))
            self._parity = 1 - self._parity
            done += count
        self._device.queue.submit([encode(self._device, dispatches).finish()])
        self.step += steps

    def _wait(self) -> None:
        """Wait until all submitted work is done."""
        self._device.download(self._buffers["program"], np.uint32, "wait", size=16)

    def _values(self, mode: int) -> dict[str, Any]:
        """Return a mapping from fields of the uniform `spec` to values; `mode` is that of `_submit`."""
        spec, program = self.spec, self._program.registers
        values = {name: getattr(spec, name) for name in ("height", "width", "channels", "fire_units")}
        values |= {"words": self._words, "periodic": spec.netlist.periodic, "mode": mode}
        values["first_step"] = self.step if mode == _COINS else 0
        return values | {"key": spec.fire_key, "patches": len(program.patches), "gates": len(program.code)}

    def planes(self) -> Planes:
        words = self._device.download(self._buffers["odd" if self._parity else "even"], "<u8", "states")
        spec = self.spec
        return words.astype(np.uint64, copy=False).reshape(spec.height, spec.channels, spec.words)

    def close(self) -> None:
        self._wait()
        for buffer in self._buffers.values():
            buffer.destroy()


def is_worth_blocks(spec: SimulationSpec, program: GpuProgram) -> bool:
    """Return whether computing several generations per dispatch is faster than one, including the cost of margins."""
    # Blocks are not used on software adapters: llvmpipe of Mesa 25 reaches 0.8 to 2.2 times the cells per second for
    # 24 gates and one channel (48x64 to 4096x4096 cells), but 0.4 to 0.9 times for fewer gates or more channels.
    is_high = program.tile is not None and spec.height >= program.tile.inner_rows
    return is_high and not program.software


def generated_source(netlist: CellNetlist) -> Source:
    """Return the single-step kernel with the circuit as a function of one statement per gate."""
    body = [f"let v{bit} = patch_word(place, {bit // PATCH}u, {_dy(bit)}, {_dx(bit)});" for bit in read_inputs(netlist)]
    body += [f"let v{line.bit} = {expression(line, 'v{}'.format, '0u', ONES)};" for line in lines(netlist)]
    outputs = enumerate(netlist.outputs.tolist())
    body += [f"write_word(place, {channel}u, v{output}, fire);" for channel, output in outputs]
    return make_source(KERNEL, {"simulation/interpreted.wgsl": _function("next_words(place: Place, fire: u32)", body)})


ONES = "0xffffffffu"


def _dy(bit: int) -> int:
    return bit % PATCH // 3 - 1


def _dx(bit: int) -> int:
    return bit % 3 - 1


def _function(signature: str, body: list[str]) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"fn {signature} {{\n{lines}\n}}\n"


def blocked_source(netlist: CellNetlist) -> Source:
    """Return the blocked kernel with the circuit's statements repeated for each row of a strip."""
    body = ["let up = max(s.y, 1u) - 1u;", "let down = min(s.y + STRIP, ROWS - 1u);"]
    if not netlist.periodic:  # cells outside the grid stay 0
        body += [f"let inside{row} = inside(s.row + {row}, s.word);" for row in range(STRIP)]
    body += ["for (var g = 0u; g < at.step; g++) {", "    workgroupBarrier();"]
    body += ["    let old = g % 2u * (TILE / 2u);", "    let new_ = TILE / 2u - old;"]
    body += [f"    {statement}" for statement in _strip(netlist)]
    return make_source(BLOCKED, {"simulation/generations.wgsl": _function("advance(s: Strip)", [*body, "}"])})


def _strip(netlist: CellNetlist) -> Iterator[str]:
    """Yield the WGSL statements for one generation of a strip; rows above and below it have numbers -1 and STRIP."""
    gates, inputs = lines(netlist), read_inputs(netlist)
    places = {-1: "up", STRIP: "down"} | {row: f"s.y + {row}u" for row in range(STRIP)}
    loaded: set[str] = set()
    for row in range(STRIP):
        names: defaultdict[int, str] = defaultdict(str)  # a gate of one input has no b
        for bit in inputs:
            # The first row that needs a word reads it; later rows use the register.
            channel, there, dx = bit // PATCH, row + _dy(bit), _dx(bit)
            at, here = f"at{channel}_{there + 1}", f"c{channel}_{there + 1}"
            names[bit] = here if dx == 0 else f"{'l' if dx < 0 else 'r'}{channel}_{there + 1}"
            if here not in loaded:
                yield f"let {at} = old + in_tile({places[there]}, {channel}u);"
                yield f"let {here} = tile[{at} + s.x];"
            if names[bit] not in loaded and dx:
                yield f"let {names[bit]} = {'left' if dx < 0 else 'right'}_of({here}, {at}, s);"
            loaded |= {here, names[bit]}
        names |= {line.bit: f"v{line.bit}_{row}" for line in gates}
        for line in gates:
            yield f"let {names[line.bit]} = {expression(line, names.__getitem__, '0u', ONES)};"
        mask = "" if netlist.periodic else f" & inside{row}"
        for channel, output in enumerate(netlist.outputs.tolist()):
            yield f"tile[new_ + in_tile(s.y + {row}u, {channel}u) + s.x] = {names[output]}{mask};"


def _table(program: RegisterProgram, channels: int) -> npt.NDArray[np.uint32]:
    """Return the circuit as a table of instructions for `interpreted.wgsl`."""
    table = np.zeros((len(program.patches) + len(program.code) + channels, 4), dtype=np.uint32)
    channel, f = np.divmod(program.patches, PATCH)
    first, last = len(program.patches), len(program.patches) + len(program.code)
    table[:first] = np.stack([channel, np.zeros_like(f), f // 3, f % 3], axis=1)
    table[first:last] = program.code
    table[last:, 0] = program.outputs
    return table
