"""What a row of cells needs beyond `vectors`: words at any place, cells across words, random bits, calls of rows."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from difflogic.cpu.codegen.compiled import intrinsic
from difflogic.cpu.codegen.vectors import WORDS, operation, pointer_to, splatted, words

_WORD, _HALF = ir.IntType(64), ir.IntType(32)
_HALVES = ir.VectorType(_HALF, WORDS)

ROWS = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer()] * 2 + [_WORD] * 3)
"""Compiled rows: the first row, the place of its next state, how many rows, words of a row, and words from one channel
of a row to the next."""


@intrinsic
def load_any(_: Any, array: Any, index: Any) -> Any:
    """`array[index : index + WORDS]` at any place."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(pointer_to(context, builder, signature, arguments, words.vector), align=8)

    return words(array, types.intp), build


@intrinsic
def west(_: Any, here: Any, before: Any) -> Any:
    """The cell to the left of each: one bit up, the lowest from the word before."""
    return operation(lambda b, x, y: b.or_(_shifted(b.shl, x, 1), _shifted(b.lshr, y, 63)), here, before)


@intrinsic
def east(_: Any, here: Any, behind: Any) -> Any:
    """The cell to the right of each: one bit down, the highest from the word behind."""
    return operation(lambda b, x, y: b.or_(_shifted(b.lshr, x, 1), _shifted(b.shl, y, 63)), here, behind)


def _shifted(shift: Any, vector: Any, distance: int) -> Any:
    return shift(vector, ir.Constant(vector.type, [distance] * vector.type.count))


@intrinsic
def bit_or(_: Any, x: Any, y: Any) -> Any:
    """`x | y`."""
    return operation(lambda b, x, y: b.or_(x, y), x, y)


@intrinsic
def drawn(_: Any, key0: Any, key1: Any, first: Any, k: Any) -> Any:
    """Random words by threefry2x32 of the counters `(first, k)`, `(first + 1, k)`, ...; all four are uint32."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        key0, key1, first, k = (splatted(builder, value, _HALVES) for value in arguments)
        first = builder.add(first, ir.Constant(_HALVES, list(range(WORDS))))
        low, high = _threefry(builder, (key0, key1), first, k)
        wide = words.vector
        return builder.or_(builder.zext(low, wide), _shifted(builder.shl, builder.zext(high, wide), 32))

    return words(types.uint32, types.uint32, types.uint32, types.uint32), build


def _threefry(builder: Any, key: tuple[Any, Any], x0: Any, x1: Any) -> tuple[Any, Any]:
    """As `difflogic.core.prng.threefry2x32`, on vectors."""

    def constant(value: int) -> Any:
        return ir.Constant(_HALVES, [value] * WORDS)

    schedule = (*key, builder.xor(builder.xor(*key), constant(0x1BD11BDA)))
    x0, x1 = builder.add(x0, schedule[0]), builder.add(x1, schedule[1])
    for group in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = builder.add(x0, x1)
            rotated = builder.or_(_shifted(builder.shl, x1, distance), _shifted(builder.lshr, x1, 32 - distance))
            x1 = builder.xor(x0, rotated)
        x0 = builder.add(x0, schedule[(group + 1) % 3])
        x1 = builder.add(builder.add(x1, schedule[(group + 2) % 3]), constant(group + 1))
    return x0, x1


@intrinsic
def call_rows(_: Any, address: Any, cells: Any, source: Any, target: Any, rows: Any, count: Any, stride: Any) -> Any:
    """Call the compiled rows at `address`: places in `cells`, how many rows, their words, and `stride`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, cells, source, target, *numbers = arguments
        data = context.make_array(signature.args[1])(context, builder, cells).data
        places = [builder.gep(data, [place]) for place in (source, target)]
        builder.call(builder.inttoptr(address, ROWS.as_pointer()), [*places, *numbers])
        return context.get_dummy_value()

    index = types.int64
    return types.void(index, cells, index, index, index, index, index), build
