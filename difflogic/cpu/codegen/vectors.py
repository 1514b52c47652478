"""Vectors of `TILE` floats, or of half as many 64-bit words, as values of compiled functions.

A loop over the cells of a row would be vectorised only after run-time checks that its rows do not overlap,
for every gate anew. Here one vector operation is one operation of the compiler, which cuts it to the width
that the processor has (AVX-512, AVX2, NEON). Products and sums are fused where it can (`contract`).

An example, the part `c0 + ca*a` of a gate whose input is row 3, into row 7:

    c0, ca = splat(peek(coefficients, 4 * gate)), splat(peek(coefficients, 4 * gate + 1))
    store(nodes, 7 * TILE, fma(ca, load(nodes, 3 * TILE), c0))

is, with AVX-512, two broadcasts, two loads, two `vfmadd` and two stores, without a branch or a test of an index.
To Numba such a value is a type of its own (`floats`), which only these functions take; each of them is an *intrinsic*:
it says which types it takes and gives, and a builder that writes the compiler's instructions in its place.
"""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import intrinsic
from difflogic.cpu.codegen.processor import PART, PARTS

TILE = 32
"""Cells per tile: enough to pay for a gate's overhead, and a whole step's rows still fit the L2 cache."""
WORDS = TILE // 2
"""64-bit words in as many bytes."""

_FLOAT, _WORD, _INDEX = ir.FloatType(), ir.IntType(64), ir.IntType(32)
LINE = 64
"""Bytes of a cache line and of the widest register. Every row begins at a multiple of it, but for shifted ones."""
_FUSE = ("contract",)


class _Vector(types.Type):
    """A type of values, to Numba; `vector` is what LLVM makes of it."""

    def __init__(self, name: str, element: Any, lanes: int) -> None:
        super().__init__(name=f"{name}{lanes}")
        self.vector = ir.VectorType(element, lanes)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


floats, words, halves = _Vector("Floats", _FLOAT, TILE), _Vector("Words", _WORD, WORDS), _Vector("Halves", _INDEX, TILE)
"""A row of floats, one of words, and one of as many 32-bit words as floats."""
parts = _Vector("Part", _FLOAT, PART)
"""PART floats of a row."""
eights = _Vector("Eight", _FLOAT, min(PARTS))
"""Sums of the lanes of parts, of every eighth lane one: as many as the narrowest part has."""
gate_vectors = _Vector("GateVector", _FLOAT, GATE_COUNT)
"""Sixteen floats, one per id of a gate."""


def pointer_to(context: Any, builder: Any, signature: Any, arguments: Any, vector: Any) -> Any:
    """Return where `array[index]` lies, `array` and `index` being the first two arguments."""
    # Straight from the array's memory: Numba's own indexing would test the index, and wrap a negative one, at each
    # gate.
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())


def shuffled(builder: Any, one: Any, two: Any, lanes: Sequence[int]) -> Any:
    """Lanes of two vectors, in the compiler's own terms."""
    # Lane n of the result is lane `lanes[n]` of the two vectors laid end to end.
    mask = ir.Constant(ir.VectorType(_INDEX, len(lanes)), list(lanes))
    return builder.shuffle_vector(one, two, mask)


def splatted(builder: Any, value: Any, vector: Any) -> Any:
    """A vector of equal values, in the compiler's own terms."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INDEX, 0))
    return shuffled(builder, one, one, [0] * vector.count)


def loading(kind: _Vector, array: Any) -> Any:
    """Signature and builder of a function that loads such a vector of `array`, one-dimensional, from an index on."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The promise of an aligned row lets the compiler use instructions that fault where it is broken; `aligned` of
        # `tables` keeps it.
        return builder.load(pointer_to(context, builder, signature, arguments, kind.vector), align=_alignment(kind))

    return kind(array, types.intp), build


def splatting(kind: _Vector, value: Any) -> Any:
    """Signature and builder of a function that makes a vector of equal values."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return splatted(builder, arguments[0], kind.vector)

    return kind(value), build


def _alignment(kind: _Vector) -> int:
    return min(LINE, 4 * int(kind.vector.count))


@intrinsic
def load(_: Any, array: Any, index: Any) -> Any:
    """`array[index : index + n]`, a row's beginning; `array` is one-dimensional."""
    return loading(floats if array.dtype == types.float32 else words, array)


@intrinsic
def load_part(_: Any, array: Any, index: Any) -> Any:
    """`array[index : index + PART]`, `index` being a multiple of PART from a row's beginning."""
    return loading(parts, array)


@intrinsic
def peek(_: Any, array: Any, index: Any) -> Any:
    """`array[index]` of a one-dimensional array; no test whether an index is negative comes between two gates."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return array.dtype(array, types.intp), build


@intrinsic
def store(_: Any, array: Any, index: Any, value: Any) -> Any:
    """`array[index : index + n] = value`, `index` being a multiple of n or a row's beginning."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, signature, arguments, value.vector)
        builder.store(arguments[2], pointer, align=_alignment(value))
        return context.get_dummy_value()

    return types.void(array, types.intp, value), build


@intrinsic
def load_shifted(_: Any, array: Any, index: Any, lanes: Any) -> Any:
    """The floats from `array[index]` on, at any place; 0 where the lane's bit in the uint64 `lanes` is 0."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = floats.vector
        values = builder.load(pointer_to(context, builder, signature, arguments, vector), align=4)
        # An integer of 32 bits and a vector of 32 bits are the same register: AVX-512 can take it as a mask as it is.
        bits = builder.trunc(arguments[2], ir.IntType(TILE)) if TILE < 64 else arguments[2]
        chosen = builder.bitcast(bits, ir.VectorType(ir.IntType(1), TILE))
        return builder.select(chosen, values, ir.Constant(vector, [0.0] * TILE))

    return floats(array, types.intp, types.uint64), build


@intrinsic
def splat(_: Any, value: Any) -> Any:
    """A vector of equal floats or words."""
    return splatting(floats if value == types.float32 else words, value)


@intrinsic
def splat_part(_: Any, value: Any) -> Any:
    """A part of equal floats."""
    return splatting(parts, types.float32)


@intrinsic
def zeros(_: Any) -> Any:
    """A vector of floats, all 0."""
    return _zeros(floats)


@intrinsic
def no_sums(_: Any) -> Any:
    """What `add_eights` and `fma_eights` begin with."""
    return _zeros(eights)


def _zeros(kind: _Vector) -> Any:
    def build(*_: Any) -> Any:
        return ir.Constant(kind.vector, [0.0] * kind.vector.count)

    return kind(), build


def operation(build_one: Callable[..., Any], *operands: Any) -> Any:
    """Signature and builder of an operation on vectors of one type, which gives another of it."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return build_one(builder, *arguments)

    return operands[0](*operands), build


@intrinsic
def fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z`."""
    # `contract` on both allows one rounding instead of two. A call of the intrinsic `llvm.fma` would demand it, and be
    # a call of a slow function on processors that have no such instruction.
    return operation(lambda b, x, y, z: b.fadd(b.fmul(x, y, flags=_FUSE), z, flags=_FUSE), x, y, z)


@intrinsic
def mul(_: Any, x: Any, y: Any) -> Any:
    """`x * y`."""
    return operation(lambda b, x, y: b.fmul(x, y, flags=_FUSE), x, y)


@intrinsic
def add(_: Any, x: Any, y: Any) -> Any:
    """`x + y`."""
    return operation(lambda b, x, y: b.fadd(x, y, flags=_FUSE), x, y)


@intrinsic
def add_eights(_: Any, total: Any, x: Any) -> Any:
    """`total` and every eight floats of a part, one after the other: the same sums whatever PART is."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        total, x = arguments
        for eight in _eights(builder, x):
            total = builder.fadd(total, eight)
        return total

    return total(total, x), build


@intrinsic
def fma_eights(_: Any, x: Any, y: Any, total: Any) -> Any:
    """`total` and the products of every eight floats of two parts, likewise."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, y, total = arguments
        for one, two in zip(_eights(builder, x), _eights(builder, y), strict=True):
            total = builder.fadd(builder.fmul(one, two, flags=_FUSE), total, flags=_FUSE)
        return total

    return total(x, y, total), build


def _eights(builder: Any, vector: Any) -> list[Any]:
    count = eights.vector.count
    return [shuffled(builder, vector, vector, range(at, at + count)) for at in range(0, vector.type.count, count)]


@intrinsic
def where(_: Any, condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` is not 0, else `y`."""

    def choose(builder: Any, condition: Any, x: Any, y: Any) -> Any:
        # Unordered: NaN is not 0 and counts as true, as it does in Python. Masks hold 0 and 1 alone.
        return builder.select(builder.fcmp_unordered("!=", condition, ir.Constant(condition.type, [0.0] * TILE)), x, y)

    return operation(choose, condition, x, y)


@intrinsic
def bit_fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """`x * y + z` of bits, modulo 2: `(x & y) ^ z`."""
    return operation(lambda b, x, y, z: b.xor(b.and_(x, y), z), x, y, z)


@intrinsic
def bit_and(_: Any, x: Any, y: Any) -> Any:
    """`x & y`."""
    return operation(lambda b, x, y: b.and_(x, y), x, y)


@intrinsic
def bit_where(_: Any, condition: Any, x: Any, y: Any) -> Any:
    """`x` where a bit of `condition` is 1, else `y`."""
    # y ^ ((x ^ y) & c): where c is 1 the two y cancel. Three operations, and AVX-512 makes one of them.
    return operation(lambda b, c, x, y: b.xor(b.and_(b.xor(x, y), c), y), condition, x, y)


@intrinsic
def add_sums(_: Any, array: Any, index: Any, w: Any, x: Any, y: Any, z: Any) -> Any:
    """`array[index : index + 4] += (sum of w, sum of x, sum of y, sum of z)`, always in the same order.

    The four are summed together: halves are added until 16 lanes are left, then pairs of lanes, the four
    vectors interleaved in such a way that every instruction has full lanes to work on.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = four_sums(builder, arguments[2:])
        pointer = pointer_to(context, builder, signature, arguments, total.type)
        builder.store(builder.fadd(builder.load(pointer, align=4), total), pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, w, x, y, z), build


@intrinsic
def store_sums(_: Any, array: Any, index: Any, w: Any, x: Any, y: Any, z: Any) -> Any:
    """`array[index : index + 4] =` the four sums."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = four_sums(builder, arguments[2:])
        builder.store(total, pointer_to(context, builder, signature, arguments, total.type), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, w, x, y, z), build


def four_sums(builder: Any, vectors: Sequence[Any]) -> Any:
    """The sums of four vectors, as a vector of four."""
    # One vector after the other, the last foldings would work on 8, 4, 2 and 1 lanes, mostly empty. Two vectors of 16
    # whose halves are added are interleaved in one of 16, and two of these in one of 16 again: in lanes 4n to 4n + 3 it
    # holds a quarter of the sums of w, x, y and z. Folding it to four lanes adds the quarters. With vectors of 8 it is
    # the same. The order is part of the results: sums of floats depend on it.
    w, x, y, z = (folded(builder, vector, 16) for vector in vectors)
    wx, yz = _interleaved(builder, w, x, _BY_LANE), _interleaved(builder, y, z, _BY_LANE)
    return folded(builder, _interleaved(builder, wx, yz, _BY_SIDE), 4)


def add_vectors(builder: Any, x: Any, y: Any) -> Any:
    """`x + y`, in the compiler's own terms."""
    return builder.fadd(x, y)


def folded(builder: Any, vector: Any, lanes: int, combine: Callable[..., Any] = add_vectors) -> Any:
    """The vector's halves added, or otherwise combined, until `lanes` are left."""
    # Halves, not neighbours: 32 floats of AVX2 are four registers, and adding registers moves no lane.
    while (count := vector.type.count) > lanes:
        low = shuffled(builder, vector, vector, range(count // 2))
        high = shuffled(builder, vector, vector, range(count // 2, count))
        vector = combine(builder, low, high)
    return vector


_BY_LANE, _BY_SIDE = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 0), (1, 0), (0, 1), (1, 1))
"""Orders in which sums are stored: pairs of a lane, 0 or 1, and the vector that it belongs to, 0 or 1."""


def _interleaved(builder: Any, one: Any, two: Any, order: Sequence[tuple[int, int]]) -> Any:
    """Return in every four lanes the sums of lanes `n` and `n + 2` of each vector, in the given order."""
    sums, count = [], one.type.count
    for shift in (0, 2):
        # Of 16, lanes of `two` are numbered from 16 on. By lane, the order begins 0, 16, 1, 17 with shift 0, and 2, 18,
        # 3, 19 with shift 2: the sum of both is what was promised.
        lanes = [start + shift + lane + side * count for start in range(0, count, 4) for lane, side in order]
        sums.append(shuffled(builder, one, two, lanes))
    return builder.fadd(*sums)
