"""Vectors of sixteen floats, one per id of a gate: for what is done once per gate and train step.

`add`, `mul`, `fma`, `store` and `store_sums` of `vectors` take them too.
"""

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import intrinsic
from difflogic.cpu.codegen.vectors import (
    add_vectors,
    folded,
    gate_vectors,
    loading,
    operation,
    shuffled,
    splatting,
)

_FLOATS = gate_vectors.vector
_INTEGERS = ir.VectorType(ir.IntType(32), _FLOATS.count)

_LOG2_E = math.log2(math.e)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts: a whole number times the first is exact."""
_POLYNOMIAL = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""`(e^r - 1 - r) / r^2` for `|r| <= ln(2)/2`, the highest power first (Cephes, `expf`)."""
_MAGIC = 1.5 * 2**23 + 127
"""A float of this size has no place for fractions; 127 is the bias of a float's exponent."""
_LOWEST = -87.0
"""Below it the result would be denormal, and is 0."""


@intrinsic
def load_gate_vector(_: Any, array: Any, index: Any) -> Any:
    """`array[index : index + 16]` of a one-dimensional array, at a cache line's beginning."""
    return loading(gate_vectors, array)


@intrinsic
def splat_gate_vector(_: Any, value: Any) -> Any:
    """Sixteen times the same."""
    return splatting(gate_vectors, types.float32)


@intrinsic
def subtract(_: Any, x: Any, y: Any) -> Any:
    """`x - y`."""
    return operation(lambda b, x, y: b.fsub(x, y), x, y)


@intrinsic
def divide(_: Any, x: Any, y: Any) -> Any:
    """`x / y`."""
    return operation(lambda b, x, y: b.fdiv(x, y), x, y)


@intrinsic
def root(_: Any, x: Any) -> Any:
    """The square root."""

    def build(builder: Any, x: Any) -> Any:
        # A root of IEEE is rounded exactly on every processor, which an approximate reciprocal root is not.
        function = get_or_insert_function(builder.module, ir.FunctionType(x.type, [x.type]), "llvm.sqrt.v16f32")
        return builder.call(function, [x])

    return operation(build, x)


@intrinsic
def clip(_: Any, x: Any, least: Any, most: Any) -> Any:
    """`x`, but no less than `least` and no more than `most`."""
    # Ordered comparisons are false for NaN, which becomes `most`. It does no harm: a step whose gradients are not
    # finite is refused before.
    return operation(lambda b, x, least, most: _larger(b, _smaller(b, x, most), least), x, least, most)


@intrinsic
def largest(_: Any, x: Any) -> Any:
    """The largest of the sixteen."""
    return _reduction(_larger)


@intrinsic
def total(_: Any, x: Any) -> Any:
    """The sum of the sixteen, in an order that never changes."""
    return _reduction(add_vectors)


def _reduction(combine: Callable[..., Any]) -> Any:
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        one = folded(builder, arguments[0], 1, combine)
        return builder.extract_element(one, ir.Constant(ir.IntType(32), 0))

    return types.float32(gate_vectors), build


@intrinsic
def group_largest(_: Any, x: Any, count: Any) -> Any:
    """In each lane the largest of its group of `count` lanes, 2, 4, 8 or 16."""
    return _grouped(_larger)


@intrinsic
def group_total(_: Any, x: Any, count: Any) -> Any:
    """In each lane the sum of its group of `count` lanes."""
    return _grouped(add_vectors)


def _grouped(combine: Callable[..., Any]) -> Any:
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, count = arguments
        result = x
        # Lanes meet those of which one bit of the number differs, the lowest bit first, until a group is together.
        for distance in (1, 2, 4, 8):
            x = combine(builder, x, shuffled(builder, x, x, [lane ^ distance for lane in range(GATE_COUNT)]))
            is_inside = builder.icmp_signed(">", count, ir.Constant(count.type, distance))
            result = builder.select(is_inside, x, result)
        return result

    return gate_vectors(gate_vectors, types.intp), build


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _smaller(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


@intrinsic
def exp(_: Any, x: Any) -> Any:
    """`e^x` to the last bit or two, for `x <= 0`; 0 where that would be denormal, NaN where x is.

    `e^x = 2^n * e^r` with a whole number n and a small remainder r. A sum with MAGIC has n, and what makes it an
    exponent, in its last bits.
    """
    return operation(_exp, x)


def _exp(builder: Any, x: Any) -> Any:
    def constant(value: float) -> Any:
        return ir.Constant(_FLOATS, [value] * _FLOATS.count)

    def fma(one: Any, two: Any, three: Any) -> Any:
        return builder.fadd(builder.fmul(one, two, flags=("contract",)), three, flags=("contract",))

    # For x = -1: x * log2(e) = -1.4427; a float near 1.5 * 2^23 has steps of 1, so that the sum with MAGIC rounds to
    # the whole number n = -1, plus 127. r = x - n * ln 2 = -0.3069, in two steps, as the first product is exact and
    # loses nothing. e^r = 0.7358. The last bits of the sum are 126, which shifted by 23 are the bits of the float 2^-1:
    # the result is 0.3679.
    shifted = fma(x, constant(_LOG2_E), constant(_MAGIC))
    n = builder.fsub(shifted, constant(_MAGIC))
    r = fma(n, constant(-_LN2_LOW), fma(n, constant(-_LN2_HIGH), x))
    # By Horner's rule, a fused operation for each power; the last two terms, 1 + r, are added apart, where the series
    # is small beside them and loses least.
    series = constant(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        series = fma(series, r, constant(coefficient))
    near_one = builder.fadd(fma(builder.fmul(r, r), series, r), constant(1))
    power = builder.shl(builder.bitcast(shifted, _INTEGERS), ir.Constant(_INTEGERS, [23] * _FLOATS.count))
    result = builder.fmul(near_one, builder.bitcast(power, _FLOATS))
    # Below LOWEST the exponent's bits would run into the sign. Of NaN the comparison is false, and NaN is what the
    # product holds.
    return builder.select(builder.fcmp_ordered("<", x, constant(_LOWEST)), constant(0), result)
