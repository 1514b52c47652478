"""SIMD vectors of sixteen floats, one per gate function, for kernels that run once per gate and train step.

The functions `add`, `mul`, `fma`, `store` and `store_sums` of `vectors` accept these vectors too.
"""

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import call, intrinsic
from difflogic.cpu.codegen.vectors import add_vectors, folded, gate_vectors, loading, operation, shuffled, splatting

_FLOATS = gate_vectors.vector
_INTEGERS = ir.VectorType(ir.IntType(32), _FLOATS.count)

_LOG2_E = math.log2(math.e)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""High and low part of ln 2, whose sum is ln 2; products of the high part with small integers are exact."""
_POLYNOMIAL = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
"""Coefficients of `(e^r - 1 - r) / r^2` for `|r| <= ln(2)/2`, highest power first (from `expf` of Cephes)."""
_MAGIC = 1.5 * 2**23 + 127
"""Addend that rounds a float to an integer, as floats of this size have no fraction; 127 is the exponent bias."""
_LOWEST = -87.0
"""Smallest argument of `exp` with a result other than 0; below it the result would be denormal."""


@intrinsic
def load_gate_vector(_: Any, array: Any, index: Any) -> Any:
    """Return `array[index : index + 16]` of a one-dimensional array; the slice must be aligned to a cache line."""
    return loading(gate_vectors, array)


@intrinsic
def splat_gate_vector(_: Any, value: Any) -> Any:
    """Broadcast a float to all sixteen lanes."""
    return splatting(gate_vectors, types.float32)


@intrinsic
def subtract(_: Any, x: Any, y: Any) -> Any:
    """Return `x - y`."""
    return operation(lambda b, x, y: b.fsub(x, y), x, y)


@intrinsic
def divide(_: Any, x: Any, y: Any) -> Any:
    """Return `x / y`."""
    return operation(lambda b, x, y: b.fdiv(x, y), x, y)


@intrinsic
def root(_: Any, x: Any) -> Any:
    """Return the square root of each lane."""
    # The IEEE square root is correctly rounded on every processor; an approximate reciprocal root is not.
    return operation(lambda b, x: call(b, "llvm.sqrt.v16f32", x.type, x), x)


@intrinsic
def clip(_: Any, x: Any, least: Any, most: Any) -> Any:
    """Return `x` with each lane clipped to the range from `least` to `most`."""
    # Ordered comparisons are false for NaN, which becomes `most`. This does no harm: if a gradient is not finite, the
    # epoch is skipped, and this function is not called.
    return operation(lambda b, x, least, most: _larger(b, _smaller(b, x, most), least), x, least, most)


@intrinsic
def largest(_: Any, x: Any) -> Any:
    """Return the largest of the sixteen lanes."""
    return _reduction(_larger)


@intrinsic
def total(_: Any, x: Any) -> Any:
    """Return the sum of the sixteen lanes, added in a fixed order."""
    return _reduction(add_vectors)


def _reduction(combine: Callable[..., Any]) -> Any:
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        result = folded(builder, arguments[0], 1, combine)
        return builder.extract_element(result, ir.Constant(ir.IntType(32), 0))

    return types.float32(gate_vectors), build


@intrinsic
def group_largest(_: Any, x: Any, count: Any) -> Any:
    """Return a vector with each lane's maximum over its group of `count` adjacent lanes; `count` is 2, 4, 8 or 16."""
    return _grouped(_larger)


@intrinsic
def group_total(_: Any, x: Any, count: Any) -> Any:
    """Return a vector with each lane's sum over its group of `count` adjacent lanes; `count` is 2, 4, 8 or 16."""
    return _grouped(add_vectors)


def _grouped(combine: Callable[..., Any]) -> Any:
    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, count = arguments
        result = x
        # Butterfly: combine lanes whose numbers differ in one bit, the lowest bit first, until the group is complete.
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
    """Return `e^x` for `x <= 0`, accurate to one or two bits; 0 if the result would be denormal, NaN for NaN.

    `e^x = 2^n * e^r` with an integer n and a small remainder r. The lowest bits of `x * log2(e) + _MAGIC` are n plus
    the exponent bias.
    """
    return operation(_exp, x)


def _exp(builder: Any, x: Any) -> Any:
    def constant(value: float) -> Any:
        return ir.Constant(_FLOATS, [value] * _FLOATS.count)

    def fma(a: Any, b: Any, c: Any) -> Any:
        return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))

    # Example for x = -1: x * log2(e) = -1.4427. Floats near 1.5 * 2^23 are 1 apart, so that the sum with _MAGIC is
    # rounded to the integer n = -1, plus 127. r = x - n * ln 2 = -0.3069, subtracted in two steps, the first exact.
    # e^r = 0.7358. The last bits of the sum are 126; shifted left by 23, they are the float 2^-1. The result is 0.3679.
    shifted = fma(x, constant(_LOG2_E), constant(_MAGIC))
    n = builder.fsub(shifted, constant(_MAGIC))
    r = fma(n, constant(-_LN2_LOW), fma(n, constant(-_LN2_HIGH), x))
    # Horner's rule, one fused operation for each power. The last two terms, 1 + r, are added separately: the series is
    # small compared with them, so that rounding loses least.
    series = constant(_POLYNOMIAL[0])
    for coefficient in _POLYNOMIAL[1:]:
        series = fma(series, r, constant(coefficient))
    near_one = builder.fadd(fma(builder.fmul(r, r), series, r), constant(1))
    power = builder.shl(builder.bitcast(shifted, _INTEGERS), ir.Constant(_INTEGERS, [23] * _FLOATS.count))
    result = builder.fmul(near_one, builder.bitcast(power, _FLOATS))
    # Below _LOWEST the exponent would overflow into the sign. For NaN the comparison is false, the product NaN.
    return builder.select(builder.fcmp_ordered("<", x, constant(_LOWEST)), constant(0), result)
