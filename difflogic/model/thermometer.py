"""Observations as bits: a thermometer code of each dimension, in floating point and, for hardware, in fixed point.

Dimension d has rising thresholds; bit i of it is 1 where the observation is at least threshold i. So the ones come
first, and of k bits only k + 1 patterns can occur: `bit i + 1` implies `bit i`. With the thresholds -1, 0 and 2 the
observation 0.5 has the code 1, 1, 0. A value that is no number (NaN) is below every threshold, in every language.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.errors import CircuitError

Integers = npt.NDArray[np.int64]

FRACTION_BITS = 16
"""Of the fixed-point form, where thresholds do not lie closer together than 256 of its steps."""
MOST_WIDTH = 62
"""Bits of a fixed-point observation: what every language compares in one instruction."""
STRETCH = 1.5
"""Thresholds that are fitted to random behaviour reach so much further: trained behaviour is often larger."""


@dataclass(frozen=True)
class Thermometer:
    """`thresholds` of each dimension, finite and rising; a dimension that nothing reads has none."""

    thresholds: tuple[tuple[float, ...], ...]
    fraction_bits: int | None = None
    """Of its fixed-point form; None for enough of them."""

    def __post_init__(self) -> None:
        # Python's own floats, whatever came: their text is what a file holds, and what names say.
        rows = tuple(tuple(map(float, row)) for row in self.thresholds)
        object.__setattr__(self, "thresholds", rows)
        for dimension, values in enumerate(self.thresholds):
            if not all(map(math.isfinite, values)) or any(low >= high for low, high in pairwise(values)):
                raise CircuitError(
                    f"The thresholds of a dimension are finite numbers, each above the one before; those of dimension "
                    f"{dimension} are {str(list(values))[:80]}."
                )

    @classmethod
    def around(
        cls, mean: npt.ArrayLike, spread: npt.ArrayLike, bits: int | Sequence[int], stretch: float = STRETCH
    ) -> Thermometer:
        """Thresholds at quantiles of the normal distribution of this mean and spread `[D]`, times `stretch`.

        `bits`: how many a dimension has, or each of them. A dimension that never changes has thresholds around its
        value, by the spread 1.
        """
        pairs = np.stack([np.asarray(mean), np.asarray(spread)], axis=1).tolist()
        counts = [bits] * len(pairs) if isinstance(bits, int) else bits
        normal = NormalDist()
        return cls(
            tuple(
                tuple(m + stretch * (s or 1.0) * normal.inv_cdf((i + 1) / (k + 1)) for i in range(k))
                for (m, s), k in zip(pairs, counts, strict=True)
            )
        )

    @classmethod
    def of_bits(cls, count: int) -> Thermometer:
        """Dimensions that are 0 or 1 already, with the one threshold between."""
        return cls(((0.5,),) * count)

    @property
    def dimensions(self) -> int:
        return len(self.thresholds)

    @cached_property
    def bits(self) -> int:
        """The number of bits of all dimensions together."""
        return sum(map(len, self.thresholds))

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Dimension and threshold of each bit."""
        return tuple((d, i) for d, values in enumerate(self.thresholds) for i in range(len(values)))

    @cached_property
    def codes(self) -> int:
        """Return how many codes an observation can have."""
        return math.prod(len(values) + 1 for values in self.thresholds)

    def code(self, observations: npt.ArrayLike) -> Bits:
        """Bits uint8 `[bits, N]` of observations `[N, D]`, compared as 64-bit floating-point numbers."""
        return _compared(self._checked(np.asarray(observations, dtype=np.float64)), self.thresholds)

    def code_number(self, numbers: npt.ArrayLike) -> Bits:
        """Bits uint8 `[bits, N]` of the codes with these numbers, 0 to `codes - 1`."""
        # A number is one digit per dimension, how many of its bits are 1; the first dimension's changes quickest.
        rest, levels = np.asarray(numbers, dtype=np.int64), list[Integers]()
        for values in self.thresholds:
            rest, level = np.divmod(rest, len(values) + 1)
            levels.append(level)
        return self.code_levels(levels)

    def code_levels(self, levels: Sequence[npt.ArrayLike]) -> Bits:
        """Bits uint8 `[bits, N]` where so many thresholds of each dimension `[D, N]` are reached."""
        return _compared(
            np.stack([np.asarray(level) for level in levels], axis=1),
            [range(1, len(values) + 1) for values in self.thresholds],
        )

    def is_code(self, bits: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return which columns of bits `[bits, N]` are codes of observations."""
        given = np.asarray(bits)
        legal = np.ones(given.shape[1], dtype=np.bool_)
        for lower, upper in self.implied:
            legal &= (given[upper] == 0) | (given[lower] == 1)
        return legal

    @cached_property
    def implied(self) -> tuple[tuple[int, int], ...]:
        """Pairs of neighbouring bits of a dimension, `(lower, upper)`: where the upper is 1, the lower is."""
        starts = accumulate(map(len, self.thresholds), initial=0)
        return tuple(
            (start + i, start + i + 1)
            for start, values in zip(starts, self.thresholds, strict=False)
            for i in range(len(values) - 1)
        )

    def keep(self, bits: Sequence[int]) -> Thermometer:
        """The thresholds of these bits alone."""
        kept = set(bits)
        numbered = iter(range(self.bits))
        rows = tuple(tuple(t for t in values if next(numbered) in kept) for values in self.thresholds)
        return Thermometer(rows, self.fraction_bits)

    def fixed_point(self, fraction_bits: int | None = None) -> FixedPoint:
        """The form for hardware; so many bits behind the point, else its own. Raises CircuitError."""
        fraction_bits = self.fraction_bits if fraction_bits is None else fraction_bits
        if fraction_bits is None:
            gaps = [high - low for values in self.thresholds for low, high in pairwise(values)]
            fraction_bits = max(FRACTION_BITS, 8 + math.ceil(-math.log2(min(gaps, default=1.0))))
        try:
            # A product with a power of two is exact, and so is what is rounded up to a whole number.
            scaled = tuple(tuple(math.ceil(math.ldexp(t, fraction_bits)) for t in row) for row in self.thresholds)
        except OverflowError:
            scaled = ((1 << MOST_WIDTH,),)
        # A value outside the range becomes the range's end: the lowest is below, the highest not below, any threshold.
        width = 1 + max((abs(t).bit_length() for row in scaled for t in row), default=1)
        if width > MOST_WIDTH:
            raise CircuitError(
                f"Thresholds with {fraction_bits} fraction bits take more than {MOST_WIDTH} bits: "
                "scale the observations, or give fewer of them."
            )
        exact = all(
            math.ldexp(number, -fraction_bits) == t
            for row, given in zip(scaled, self.thresholds, strict=True)
            for number, t in zip(row, given, strict=True)
        )
        return FixedPoint(fraction_bits, width, scaled, exact)

    def _checked(self, observations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if observations.ndim != 2 or observations.shape[1] != self.dimensions:
            raise CircuitError(
                f"Expected observations [N, {self.dimensions}], got {list(observations.shape)}: a row each."
            )
        return observations


@dataclass(frozen=True)
class FixedPoint:
    """A thermometer on integers: X = floor(x * 2^fraction_bits), held within `width` bits, two's complement.

    Threshold t is T = ceil(t * 2^fraction_bits), and its bit is X >= T, which says exactly `x >= T / 2^fraction_bits`.
    So both forms agree on every x, except where t <= x < T / 2^fraction_bits, less than one step above a threshold.
    Where every threshold is a whole number of steps (`exact`) they agree on every x. Whatever the thresholds are, they
    agree on every x that is a whole number of steps, as what a sensor of that resolution gives.
    """

    fraction_bits: int
    width: int
    thresholds: tuple[tuple[int, ...], ...]
    exact: bool
    """Whether both forms agree on every observation."""

    def of(self, observations: npt.ArrayLike) -> Integers:
        """Observations `[N, D]` in fixed point; what is outside the range is its nearer end, NaN the lowest."""
        top = 1 << (self.width - 1)
        with np.errstate(over="ignore"):
            scaled = np.floor(np.ldexp(np.asarray(observations, dtype=np.float64), self.fraction_bits))
        lowest = np.where(np.isnan(scaled), -top, scaled)
        # Clipped as whole numbers where floats would round the end of the range.
        whole = np.where(np.abs(lowest) < top, lowest, 0).astype(np.int64)
        return np.where(lowest >= top, top - 1, np.where(lowest <= -top, -top, whole))

    def code(self, fixed: npt.ArrayLike) -> Bits:
        """Bits uint8 `[bits, N]` of fixed-point observations `[N, D]`."""
        return _compared(np.asarray(fixed, dtype=np.int64), self.thresholds)


def _compared(values: npt.NDArray[np.float64] | Integers, thresholds: Sequence[Sequence[float]]) -> Bits:
    dimensions, flat = _in_a_row(tuple(thresholds))
    return (values.T[dimensions] >= flat[:, None]).view(np.uint8)


@lru_cache(maxsize=64)
def _in_a_row(thresholds: tuple[Sequence[float], ...]) -> tuple[Integers, npt.NDArray[Any]]:
    """The dimension of each bit, and its threshold."""
    dimensions = np.repeat(np.arange(len(thresholds)), [len(row) for row in thresholds])
    return dimensions, np.array([value for row in thresholds for value in row])
