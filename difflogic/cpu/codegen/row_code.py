"""A circuit as machine code: one function that steps a block of rows, made by LLVM in milliseconds, without Numba.

Every gate is one instruction on a vector of words; the compiler keeps values in registers and joins gates where the
processor can (AVX-512 has any three-input gate). Vectors are walked downwards in columns, and what a row has in common
with those below it stays in registers, see `model.column_program`.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir

from difflogic.cpu.codegen.plane_vectors import ROWS
from difflogic.cpu.codegen.processor import target
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.column_program import A_AND_NOT_B, AND, OR, XOR, ColumnProgram, Value, column_loop, column_program

_WORD = ir.IntType(64)
_LANES = (("+avx512f", 8), ("+avx2", 4), ("+sse2", 2), ("", 4))
"""Words of a vector by what the processor has: one register, or two of the 32 of NEON. With two of 16, half of the
values would not stay in registers."""

_GATES: dict[int, Callable[..., Any]] = {
    AND: lambda b, x, y: b.and_(x, y),
    A_AND_NOT_B: lambda b, x, y: b.and_(x, b.not_(y)),
    XOR: lambda b, x, y: b.xor(x, y),
    OR: lambda b, x, y: b.or_(x, y),
}


class RowCode:
    """The machine code of a netlist's rows, for as long as this object lives: see `plane_vectors.ROWS`."""

    def __init__(self, netlist: CellNetlist) -> None:
        self._program = column_program(netlist)
        self._engines: dict[tuple[int, bool], Any] = {}

    def address(self, stride: int, masked: bool) -> int:
        """The function's address, for channels `stride` words apart; `masked`: cells that do not fire are kept.

        It is compiled at the first use: 5,000 gates take a second or two, 20,000 some ten.
        """
        if (stride, masked) not in self._engines:
            self._engines[stride, masked] = self._compiled(stride, masked)
        return int(self._engines[stride, masked].get_function_address("rows"))

    def _compiled(self, stride: int, masked: bool) -> Any:
        name, features = target()
        module = row_module(self._program, features, stride, masked)
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=name, features=features, opt=2, codemodel="jitdefault", jit=True
        )
        module.triple = machine.triple
        engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
        engine.finalize_object()
        return engine


def row_module(program: ColumnProgram, features: str, stride: int, masked: bool) -> ir.Module:
    """The function `rows` for a processor with these features, as LLVM names them."""
    module = ir.Module(name="rows")
    lanes = next(count for feature, count in _LANES if feature in features)
    _Builder(ir.Function(module, ROWS, name="rows"), program, lanes, stride, masked).build()
    return module


# What becomes of bit 9 = 0 XOR 6, the cells to the left above and below, on one channel whose next state is bit 9. In
# LLVM's words, without the arithmetic of addresses, the body of the inner loop is
#
#     %upper = phi <8 x i64> [of the row above the first], [%middle]   the left neighbours a row above, 0
#     %middle = phi <8 x i64> [of the first row], [%lower]             and beside the cells: nothing reads them yet
#     %27 = load <8 x i64> source[pitch + index]                       the row below, and
#     %33 = load <8 x i64> source[pitch + index - 1]                   one word to the left
#     %lower = call <8 x i64> @llvm.fshl(%27, %33, 1)                  bit 6: one bit up, the lowest from that word
#     %35 = xor <8 x i64> %lower, %upper                               bit 9
#     store <8 x i64> %35, target[index]
class _Builder:
    """A loop over the columns of vectors, and in it one over the rows, from above."""

    def __init__(self, function: Any, program: ColumnProgram, lanes: int, stride: int, masked: bool) -> None:
        self._function, self._program, self._masked = function, program, masked
        self._source, self._target, self._fire, self._rows, self._words = function.args
        self._lanes, self._vector = lanes, ir.VectorType(_WORD, lanes)
        # Known numbers, which are parts of instructions: addresses of many channels would fill all registers.
        self._stride, self._pitch = stride, stride * len(program.outputs)
        # A funnel shift takes 64 bits out of two words laid side by side: just what a neighbour across words is.
        funnel = ir.FunctionType(self._vector, [self._vector] * 3)
        self._left, self._right = (
            ir.Function(function.module, funnel, name=f"llvm.{name}.v{lanes}i64") for name in ("fshl", "fshr")
        )
        self._loop = column_loop(program)

    def build(self) -> None:
        before, column, row, below, after = map(
            self._function.append_basic_block, ("before", "column", "row", "below", "after")
        )
        ir.IRBuilder(before).branch(column)
        builder = ir.IRBuilder(column)
        x = builder.phi(_WORD)
        x.add_incoming(ir.Constant(_WORD, 0), before)
        source, target = (builder.gep(base, [x]) for base in (self._source, self._target))
        carried = self._loop.carried
        starts: dict[Value, Any] = {}
        for value in self._loop.before:
            starts[value] = self._computed(builder, source, value, starts)
        builder.branch(row)
        builder = ir.IRBuilder(row)
        y = builder.phi(_WORD)
        here, there = builder.phi(source.type), builder.phi(source.type)
        values: dict[Value, Any] = {each: builder.phi(self._vector) for each in carried}
        fire = builder.gep(self._fire, [builder.add(builder.mul(y, self._words), x)])
        following = self._row(builder, here, there, fire, values)
        pairs = [(y, ir.Constant(_WORD, 0), builder.add(y, ir.Constant(_WORD, 1)))]
        pitch = [ir.Constant(_WORD, self._pitch)]
        pairs += [(place, start, builder.gep(place, pitch)) for place, start in ((here, source), (there, target))]
        pairs += [(values[each], starts[each], following[each]) for each in carried]
        for phi, start, next_one in pairs:
            phi.add_incoming(start, column)
            phi.add_incoming(next_one, row)
        builder.cbranch(builder.icmp_signed("<", pairs[0][2], self._rows), row, below)
        builder = ir.IRBuilder(below)
        # The last vector may reach past the row's words: rows are as much longer, and the guard there is set
        # afterwards.
        next_x = builder.add(x, ir.Constant(_WORD, self._lanes))
        x.add_incoming(next_x, below)
        builder.cbranch(builder.icmp_signed("<", next_x, self._words), column, after)
        ir.IRBuilder(after).ret_void()

    def _row(self, builder: Any, source: Any, target: Any, fire: Any, carried: dict[Value, Any]) -> dict[Value, Any]:
        """A row's vector from `source` to `target`, cells firing by the mask at `fire`; what the next row carries."""
        values = dict(carried)
        for each in self._loop.row:
            values[each] = self._computed(builder, source, each, values)
        if self._masked:
            fires = builder.load(builder.bitcast(fire, self._vector.as_pointer()), align=8)
        for channel, output in enumerate(self._program.outputs):
            value = values[output.node, output.delay]
            value = builder.not_(value) if output.inverted else value
            if self._masked:
                kept = builder.load(self._pointer(builder, source, channel, 0, 0), align=8)
                value = builder.xor(builder.and_(builder.xor(value, kept), fires), kept)
            builder.store(value, self._pointer(builder, target, channel, 0, 0), align=8)
        return {(node, delay): values[node, delay - 1] for node, delay in carried}

    def _computed(self, builder: Any, source: Any, value: Value, values: dict[Value, Any]) -> Any:
        number, delay = value
        node = self._program.nodes[number]
        if not node.gate:
            return self._input(builder, source, node.channel, node.dx - 1, 1 - delay)
        return _GATES[node.gate](builder, *(values[read.node, read.delay + delay] for read in (node.a, node.b)))

    def _input(self, builder: Any, source: Any, channel: int, dx: int, dy: int) -> Any:
        if channel < 0:
            return ir.Constant(self._vector, [0] * self._lanes)
        values = builder.load(self._pointer(builder, source, channel, dy, 0), align=8)
        if dx == 0:
            return values
        beside = builder.load(self._pointer(builder, source, channel, dy, dx), align=8)
        shift, pair = (self._left, [values, beside]) if dx < 0 else (self._right, [beside, values])
        return builder.call(shift, [*pair, ir.Constant(self._vector, [1] * self._lanes)])

    def _pointer(self, builder: Any, base: Any, channel: int, dy: int, dx: int) -> Any:
        offset = dy * self._pitch + channel * self._stride + dx
        return builder.bitcast(builder.gep(base, [ir.Constant(_WORD, offset)]), self._vector.as_pointer())
