"""Vector operations on rows of bit-packed cells: random bits, and calls of machine code generated for a circuit."""

from typing import Any

from llvmlite import ir
from numba import types

from difflogic.cpu.codegen.compiled import intrinsic
from difflogic.cpu.codegen.vectors import TILE, halves, operation, pointer_to, splatted

_WORD = ir.IntType(64)
_HALVES = halves.vector

ROWS = ir.FunctionType(ir.VoidType(), [_WORD.as_pointer()] * 3 + [_WORD] * 2)
"""LLVM type of functions that step rows: pointers to source, target and fire masks, number of rows, words per row."""


def _shifted(shift: Any, vector: Any, distance: int) -> Any:
    return shift(vector, ir.Constant(vector.type, [distance] * vector.type.count))


@intrinsic
def bit_or(_: Any, x: Any, y: Any) -> Any:
    """Return `x | y`."""
    return operation(lambda b, x, y: b.or_(x, y), x, y)


@intrinsic
def random_blocks(_: Any, key0: Any, key1: Any, first: Any, k: Any) -> Any:
    """Return vectors of the two uint32 words of threefry2x32 for the counters `(first, k)`, `(first + 1, k)`, ..."""

    # A vector of twice as many blocks as fit a register: each round depends on the previous one, and computing two
    # independent chains of rounds hides their latency.
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        key0, key1, first, k = (splatted(builder, value, _HALVES) for value in arguments)
        # The counter of a word is its number, so that any thread can sample any part of a mask, in any order.
        first = builder.add(first, ir.Constant(_HALVES, list(range(TILE))))
        return context.make_tuple(builder, signature.return_type, _threefry(builder, (key0, key1), first, k))

    return types.UniTuple(halves, 2)(types.uint32, types.uint32, types.uint32, types.uint32), build


@intrinsic
def following_blocks(_: Any, low: Any, high: Any) -> Any:
    """Return the random blocks `low` and `high` after four more rounds of threefry."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low, high = arguments
        # Each further bit of a probability needs its own random bits. A new block would take five times as long as four
        # more rounds of the last one, see `difflogic.core.bernoulli`.
        return context.make_tuple(builder, signature.return_type, _four_rounds(builder, low, high, 1))

    return types.UniTuple(halves, 2)(low, high), build


@intrinsic
def store_blocks(_: Any, array: Any, index: Any, low: Any, high: Any) -> Any:
    """Store `low | high << 32` in `array[index : index + TILE]`, which need not be aligned."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.VectorType(_WORD, TILE)
        # Both words are equally random, so that one block of two 32-bit words serves 64 cells.
        low, high = (builder.zext(part, wide) for part in arguments[2:])
        place = pointer_to(context, builder, signature, arguments, wide)
        builder.store(builder.or_(low, _shifted(builder.shl, high, 32)), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, low, high), build


def _threefry(builder: Any, key: tuple[Any, Any], x0: Any, x1: Any) -> tuple[Any, Any]:
    """Emit `difflogic.core.prng.threefry2x32` on vectors of counters."""

    def constant(value: int) -> Any:
        return ir.Constant(_HALVES, [value] * TILE)

    schedule = (*key, builder.xor(builder.xor(*key), constant(0x1BD11BDA)))
    x0, x1 = builder.add(x0, schedule[0]), builder.add(x1, schedule[1])
    for group in range(5):
        x0, x1 = _four_rounds(builder, x0, x1, group)
        x0 = builder.add(x0, schedule[(group + 1) % 3])
        x1 = builder.add(builder.add(x1, schedule[(group + 2) % 3]), constant(group + 1))
    return x0, x1


def _four_rounds(builder: Any, x0: Any, x1: Any, group: int) -> tuple[Any, Any]:
    for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
        x0 = builder.add(x0, x1)
        rotated = builder.or_(_shifted(builder.shl, x1, distance), _shifted(builder.lshr, x1, 32 - distance))
        x1 = builder.xor(x0, rotated)
    return x0, x1


@intrinsic
def call_rows(_: Any, address: Any, cells: Any, source: Any, target: Any, fire: Any, rows: Any, count: Any) -> Any:
    """Call the ROWS function at `address`; `source` and `target` are indices in `cells`, `count` is words per row."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, cells, source, target, fire, *numbers = arguments
        data, masks = (
            context.make_array(signature.args[k])(context, builder, array).data for k, array in ((1, cells), (4, fire))
        )
        places = [builder.gep(data, [place]) for place in (source, target)]
        # By address: the code of the rows is generated for one circuit at run time, while this caller is compiled once
        # and cached on disk.
        builder.call(builder.inttoptr(address, ROWS.as_pointer()), [*places, masks, *numbers])
        return context.get_dummy_value()

    index = types.int64
    return types.void(index, cells, index, index, fire, index, index), build
