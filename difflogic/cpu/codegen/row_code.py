"""A circuit as machine code: one function that steps a row, made by LLVM in milliseconds, without Numba.

Every gate is one instruction on a vector of words; the compiler keeps values in registers and joins gates where the
processor can (AVX-512 has any three-input gate).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir

from difflogic.cpu.codegen.compiled import target
from difflogic.cpu.codegen.plane_vectors import ROW
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import FALSE, NOT_A, TRUE, A, lines, read_inputs

LANES = 8
"""Words of a vector: a register of AVX-512, two of AVX2, four of NEON."""
MOST_GATES = 5_000
"""That an output depends on; beyond, the compiler takes seconds, and interpreting them is as good."""

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)
_ONE = ir.Constant(_VECTOR, [1] * LANES)

_GATES: dict[int, Callable[..., Any]] = {
    FALSE: lambda b: _filled(0),
    1: lambda b, x, y: b.and_(x, y),
    2: lambda b, x, y: b.and_(x, b.not_(y)),
    A: lambda b, x: x,
    4: lambda b, x, y: b.and_(b.not_(x), y),
    6: lambda b, x, y: b.xor(x, y),
    7: lambda b, x, y: b.or_(x, y),
    8: lambda b, x, y: b.not_(b.or_(x, y)),
    9: lambda b, x, y: b.not_(b.xor(x, y)),
    11: lambda b, x, y: b.or_(x, b.not_(y)),
    NOT_A: lambda b, x: b.not_(x),
    13: lambda b, x, y: b.or_(b.not_(x), y),
    14: lambda b, x, y: b.not_(b.and_(x, y)),
    TRUE: lambda b: _filled(-1),
}
"""By id, of what `straight_line.lines` leaves."""


class RowCode:
    """The machine code of a netlist's row, for as long as this object lives: a `simulation.CompiledRow`."""

    def __init__(self, netlist: CellNetlist) -> None:
        module = ir.Module(name="row")
        _build(ir.Function(module, ROW, name="row"), netlist)
        name, features = target()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=name, features=features, opt=2, codemodel="jitdefault", jit=True
        )
        module.triple = machine.triple
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
        self._engine.finalize_object()
        self.address = int(self._engine.get_function_address("row"))


def compile_row(netlist: CellNetlist) -> RowCode | None:
    """None where the circuit has more than `MOST_GATES`."""
    return RowCode(netlist) if len(lines(netlist)) <= MOST_GATES else None


# What becomes of two gates, bit 9 = 3 XOR 4 (a cell and its neighbour to the left) and bit 10 = 9 AND NOT 1 (nor the
# one above), on one channel whose next state is bit 10. `lines` names the inputs 1, 3 and 4. In LLVM's words, without
# the arithmetic of addresses, the body of the loop is
#
#     %15 = load <8 x i64> above[index]                                bit 1
#     %21 = load <8 x i64> row[index]                                  bit 4, and
#     %27 = load <8 x i64> row[index - 1]                              one word to the left
#     %28 = call <8 x i64> @llvm.fshl(%21, %27, 1)                     bit 3: one bit up, the lowest from that word
#     %35 = xor <8 x i64> %28, %34                                     bit 9; %34 is %21, loaded once more
#     %36 = xor <8 x i64> %15, -1
#     %37 = and <8 x i64> %35, %36                                     bit 10
#     store <8 x i64> %37, new[index]
#
# and a processor with AVX-512 gets four instructions for 512 cells, the two gates among them one:
#
#     vmovdqu64  (%rsi,%rax,8), %zmm0                                  row
#     vpshldq    $1, -8(%rsi,%rax,8), %zmm0, %zmm1                     shifted, with the word to the left
#     vpternlogq $20, (%rdi,%rax,8), %zmm0, %zmm1                      XOR and AND NOT: a truth table of three inputs
#     vmovdqu64  %zmm1, (%rcx,%rax,8)
def _build(function: Any, netlist: CellNetlist) -> None:
    """A loop over the row's vectors."""
    above, row, below, new, words, stride = function.args
    before, loop, after = (function.append_basic_block(name) for name in ("before", "loop", "after"))
    ir.IRBuilder(before).branch(loop)
    builder = ir.IRBuilder(loop)
    # A funnel shift takes 64 bits out of two words laid side by side: just what a neighbour across words is.
    funnel = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    left, right = (ir.Function(function.module, funnel, name=f"llvm.{name}.v{LANES}i64") for name in ("fshl", "fshr"))
    index = builder.phi(_WORD)
    index.add_incoming(ir.Constant(_WORD, 0), before)

    def pointer(base: Any, channel: int, shift: int = 0) -> Any:
        offset = builder.add(
            builder.mul(stride, ir.Constant(_WORD, channel)), builder.add(index, ir.Constant(_WORD, shift))
        )
        return builder.bitcast(builder.gep(base, [offset]), _VECTOR.as_pointer())

    def patch(bit: int) -> Any:
        channel, f = divmod(bit, 9)
        base, dx = (above, row, below)[f // 3], f % 3 - 1
        values = builder.load(pointer(base, channel), align=8)
        if dx == 0:
            return values
        beside = builder.load(pointer(base, channel, dx), align=8)
        shift, pair = (left, [values, beside]) if dx < 0 else (right, [beside, values])
        return builder.call(shift, [*pair, _ONE])

    for channel, values in enumerate(_outputs(builder, netlist, patch)):
        builder.store(values, pointer(new, channel), align=8)
    # The last vector may reach past the row's words: rows are as much longer, and the guard there is set afterwards.
    following = builder.add(index, ir.Constant(_WORD, LANES))
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, words), loop, after)
    ir.IRBuilder(after).ret_void()


def _outputs(builder: Any, netlist: CellNetlist, patch: Callable[[int], Any]) -> list[Any]:
    """The new value of each channel; what no channel depends on is not computed."""
    values = {bit: patch(bit) for bit in read_inputs(netlist)}
    for line in lines(netlist):
        values[line.bit] = _GATES[line.gate](builder, *(values[bit] for bit in line.reads))
    return [values[output] for output in netlist.outputs.tolist()]


def _filled(value: int) -> Any:
    return ir.Constant(_VECTOR, [value] * LANES)
