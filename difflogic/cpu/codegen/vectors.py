"""SIMD vectors of `TILE` floats, or of half as many 64-bit words, as values in compiled functions.

LLVM would vectorise a loop over the cells of a row only with run-time checks, for each gate, that rows do not overlap.
Here one vector operation is one LLVM instruction, which LLVM splits into registers of the processor (AVX-512, AVX2,
NEON). Products and sums are fused if the processor can (`contract`).

Example: the part `c0 + ca*a` of a gate that reads row 3 and writes row 7,

    c0, ca = splat(peek(coefficients, 4 * gate)), splat(peek(coefficients, 4 * gate + 1))
    store(nodes, 7 * TILE, fma(ca, load(nodes, 3 * TILE), c0))

compiles with AVX-512 to two broadcasts, two loads, two `vfmadd` and two stores, without branches or bounds checks.
For Numba such a value has a separate type (`floats`), which only these functions accept. Each function is an
*intrinsic*: it returns its signature, and a builder that emits LLVM instructions in place of the call.
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
"""Number of cells per tile: enough to amortise the overhead of a gate, while all rows of a step fit the L2 cache."""
WORDS = TILE // 2
"""Number of 64-bit words that occupy as much memory as a row of TILE floats."""

_FLOAT, _WORD, _INDEX = ir.FloatType(), ir.IntType(64), ir.IntType(32)
LINE = 64
"""Number of bytes of a cache line and of the widest register. All rows are aligned to it, but shifted loads are not."""
_FUSE = ("contract",)


class _Vector(types.Type):
    """Numba type of a SIMD vector; `vector` is its LLVM type."""

    def __init__(self, name: str, element: Any, lanes: int) -> None:
        super().__init__(name=f"{name}{lanes}")
        self.vector = ir.VectorType(element, lanes)


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


floats, words, halves = _Vector("Floats", _FLOAT, TILE), _Vector("Words", _WORD, WORDS), _Vector("Halves", _INDEX, TILE)
"""Types of a row of TILE floats, of WORDS 64-bit words, and of TILE 32-bit words."""
parts = _Vector("Part", _FLOAT, PART)
"""Type of PART floats of a row."""
eights = _Vector("Eight", _FLOAT, min(PARTS))
"""Type of eight partial sums, one per lane number modulo 8; eight is the smallest possible PART."""
gate_vectors = _Vector("GateVector", _FLOAT, GATE_COUNT)
"""Type of sixteen floats, one for each gate function."""


def pointer_to(context: Any, builder: Any, signature: Any, arguments: Any, vector: Any) -> Any:
    """Return a pointer to `array[index]`, where `array` and `index` are the first two arguments."""
    # Computed directly, because Numba's indexing would test for negative indices at every gate.
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())


def shuffled(builder: Any, x: Any, y: Any, lanes: Sequence[int]) -> Any:
    """Emit a shuffle: lane n of the result is lane `lanes[n]` of the concatenated vectors x and y."""
    mask = ir.Constant(ir.VectorType(_INDEX, len(lanes)), list(lanes))
    return builder.shuffle_vector(x, y, mask)


def splatted(builder: Any, value: Any, vector: Any) -> Any:
    """Emit a broadcast of a value to all lanes of a vector."""
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_INDEX, 0))
    return shuffled(builder, first, first, [0] * vector.count)


def loading(kind: _Vector, array: Any) -> Any:
    """Return the signature and the builder of an intrinsic that loads a vector from a one-dimensional array."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Aligned loads fault on unaligned addresses: `tables.aligned` allocates every array that is read here.
        return builder.load(pointer_to(context, builder, signature, arguments, kind.vector), align=_alignment(kind))

    return kind(array, types.intp), build


def splatting(kind: _Vector, value: Any) -> Any:
    """Return the signature and the builder of an intrinsic that broadcasts a value to all lanes."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return splatted(builder, arguments[0], kind.vector)

    return kind(value), build


def _alignment(kind: _Vector) -> int:
    return min(LINE, 4 * int(kind.vector.count))


@intrinsic
def load(_: Any, array: Any, index: Any) -> Any:
    """Load a row of n floats or words, `array[index : index + n]`; `index` is the beginning of a row."""
    return loading(floats if array.dtype == types.float32 else words, array)


@intrinsic
def load_part(_: Any, array: Any, index: Any) -> Any:
    """Load `array[index : index + PART]`; `index` is the beginning of a row plus a multiple of PART."""
    return loading(parts, array)


@intrinsic
def peek(_: Any, array: Any, index: Any) -> Any:
    """Return `array[index]` of a one-dimensional array, without Numba's test for negative indices."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return array.dtype(array, types.intp), build


@intrinsic
def store(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Store a vector of n lanes in `array[index : index + n]`; `index` is a multiple of n or the beginning of a row."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, signature, arguments, value.vector)
        builder.store(arguments[2], pointer, align=_alignment(value))
        return context.get_dummy_value()

    return types.void(array, types.intp, value), build


@intrinsic
def load_shifted(_: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Load TILE floats from any `index`; lanes whose bit in the uint64 `lanes` is 0 become 0."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = floats.vector
        values = builder.load(pointer_to(context, builder, signature, arguments, vector), align=4)
        # A 32-bit integer and a vector of 32 bits are the same register: AVX-512 uses it directly as a mask.
        chosen = builder.bitcast(builder.trunc(arguments[2], ir.IntType(TILE)), ir.VectorType(ir.IntType(1), TILE))
        return builder.select(chosen, values, ir.Constant(vector, [0.0] * TILE))

    return floats(array, types.intp, types.uint64), build


@intrinsic
def splat(_: Any, value: Any) -> Any:
    """Broadcast a float or a 64-bit word to all lanes of a row."""
    return splatting(floats if value == types.float32 else words, value)


@intrinsic
def splat_part(_: Any, value: Any) -> Any:
    """Broadcast a float to all lanes of a part of a row."""
    return splatting(parts, types.float32)


@intrinsic
def zeros(_: Any) -> Any:
    """Return a row of zeros."""
    return _zeros(floats)


@intrinsic
def no_sums(_: Any) -> Any:
    """Return zeros, the initial value for `add_eights` and `fma_eights`."""
    return _zeros(eights)


def _zeros(kind: _Vector) -> Any:
    def build(*_: Any) -> Any:
        return ir.Constant(kind.vector, [0.0] * kind.vector.count)

    return kind(), build


def operation(build_one: Callable[..., Any], *operands: Any) -> Any:
    """Return the signature and the builder of an operation on vectors of one type, with a result of this type."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return build_one(builder, *arguments)

    return operands[0](*operands), build


@intrinsic
def fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """Return `x * y + z`, fused if the processor can."""
    # `contract` on both allows one rounding instead of two. The intrinsic `llvm.fma` would require it, and call a slow
    # library function on processors without such an instruction.
    return operation(lambda b, x, y, z: b.fadd(b.fmul(x, y, flags=_FUSE), z, flags=_FUSE), x, y, z)


@intrinsic
def mul(_: Any, x: Any, y: Any) -> Any:
    """Return `x * y`."""
    return operation(lambda b, x, y: b.fmul(x, y, flags=_FUSE), x, y)


@intrinsic
def add(_: Any, x: Any, y: Any) -> Any:
    """Return `x + y`."""
    return operation(lambda b, x, y: b.fadd(x, y, flags=_FUSE), x, y)


@intrinsic
def add_eights(_: Any, total: Any, x: Any) -> Any:
    """Add the floats of `x` to `total`, eight at a time, so that rounding does not depend on the vector width."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        total, x = arguments
        for eight in _eights(builder, x):
            total = builder.fadd(total, eight)
        return total

    return total(total, x), build


@intrinsic
def fma_eights(_: Any, x: Any, y: Any, total: Any) -> Any:
    """Add the products of two vectors to `total`, eight lanes at a time."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, y, total = arguments
        for eight_x, eight_y in zip(_eights(builder, x), _eights(builder, y), strict=True):
            total = builder.fadd(builder.fmul(eight_x, eight_y, flags=_FUSE), total, flags=_FUSE)
        return total

    return total(x, y, total), build


def _eights(builder: Any, vector: Any) -> list[Any]:
    count = eights.vector.count
    return [shuffled(builder, vector, vector, range(i, i + count)) for i in range(0, vector.type.count, count)]


@intrinsic
def where(_: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return the lanes of `x` in which `condition` is not 0, and those of `y` in which it is 0."""

    def choose(builder: Any, condition: Any, x: Any, y: Any) -> Any:
        # An unordered comparison, in which NaN counts as true, as in Python. Masks contain only 0 and 1.
        return builder.select(builder.fcmp_unordered("!=", condition, ir.Constant(condition.type, [0.0] * TILE)), x, y)

    return operation(choose, condition, x, y)


@intrinsic
def bit_fma(_: Any, x: Any, y: Any, z: Any) -> Any:
    """Return `(x & y) ^ z`, which is `x * y + z` modulo 2."""
    return operation(lambda b, x, y, z: b.xor(b.and_(x, y), z), x, y, z)


@intrinsic
def bit_and(_: Any, x: Any, y: Any) -> Any:
    """Return `x & y`."""
    return operation(lambda b, x, y: b.and_(x, y), x, y)


@intrinsic
def bit_where(_: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return the bits of `x` at which `condition` is 1, and those of `y` at which it is 0."""
    # y ^ ((x ^ y) & c): the two y cancel where c is 1. Three operations, which AVX-512 fuses into one.
    return operation(lambda b, c, x, y: b.xor(b.and_(b.xor(x, y), c), y), condition, x, y)


@intrinsic
def add_sums(_: Any, array: Any, index: Any, w: Any, x: Any, y: Any, z: Any) -> Any:
    """Add the sums of the lanes of w, x, y and z to `array[index : index + 4]`; the order of additions is fixed."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = four_sums(builder, arguments[2:])
        pointer = pointer_to(context, builder, signature, arguments, total.type)
        builder.store(builder.fadd(builder.load(pointer, align=4), total), pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, w, x, y, z), build


@intrinsic
def store_sums(_: Any, array: Any, index: Any, w: Any, x: Any, y: Any, z: Any) -> Any:
    """Store the sums of the lanes of w, x, y and z in `array[index : index + 4]`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = four_sums(builder, arguments[2:])
        builder.store(total, pointer_to(context, builder, signature, arguments, total.type), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, w, x, y, z), build


def four_sums(builder: Any, vectors: Sequence[Any]) -> Any:
    """Emit the sums of the lanes of four vectors, as a vector of four lanes."""
    # Summed one by one, each vector would end with foldings to 8, 4, 2 and 1 lanes, in mostly empty registers. So two
    # vectors of 16 lanes are added in halves and interleaved into one of 16, and two of these once more: lanes 4n to
    # 4n + 3 then contain a quarter of the sums of w, x, y and z, and folding to four lanes adds the quarters. Vectors
    # of 8 lanes are summed likewise. The order is part of the results, since sums of floats depend on it.
    w, x, y, z = (folded(builder, vector, 16) for vector in vectors)
    wx, yz = _interleaved(builder, w, x, _BY_LANE), _interleaved(builder, y, z, _BY_LANE)
    return folded(builder, _interleaved(builder, wx, yz, _BY_SIDE), 4)


def add_vectors(builder: Any, x: Any, y: Any) -> Any:
    """Emit `x + y`."""
    return builder.fadd(x, y)


def folded(builder: Any, vector: Any, lanes: int, combine: Callable[..., Any] = add_vectors) -> Any:
    """Emit additions (or `combine`) of a vector's two halves, repeated until `lanes` lanes are left."""
    # Adding halves moves no lanes while they are complete registers (with AVX2, 32 floats are four registers).
    while (count := vector.type.count) > lanes:
        low = shuffled(builder, vector, vector, range(count // 2))
        high = shuffled(builder, vector, vector, range(count // 2, count))
        vector = combine(builder, low, high)
    return vector


_BY_LANE, _BY_SIDE = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 0), (1, 0), (0, 1), (1, 1))
"""Orders in which `_interleaved` stores four sums, each given as (lane, vector) with the numbers 0 and 1."""


def _interleaved(builder: Any, x: Any, y: Any, order: Sequence[tuple[int, int]]) -> Any:
    """Add lanes 0 and 2, and lanes 1 and 3, of every four lanes of x and y; emit the sums in the order `order`."""
    sums, count = [], x.type.count
    for shift in (0, 2):
        # With 16 lanes, those of y are numbered from 16. In the order `_BY_LANE`, shift 0 selects lanes 0, 16, 1, 17
        # and so on, and shift 2 selects 2, 18, 3, 19: their sum is the result.
        lanes = [start + shift + lane + side * count for start in range(0, count, 4) for lane, side in order]
        sums.append(shuffled(builder, x, y, lanes))
    return builder.fadd(*sums)
