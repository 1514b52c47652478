"""Thermometer codes: convert observations to bits by thresholds, in floating point or (for hardware) fixed point.

A dimension has rising thresholds; its bit i is 1 if the observation is at least threshold i. So ones come first, and k
bits have only k + 1 patterns: if bit i + 1 is 1, bit i is 1. With thresholds -1, 0 and 2 the observation 0.5 has the
code 1, 1, 0. NaN is below every threshold, in every language.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.errors import CircuitError

Integers = npt.NDArray[np.int64]

FRACTION_BITS = 16
"""Default number of fraction bits of fixed-point forms; more are used if thresholds are less than 256 steps apart."""
MOST_WIDTH = 62
"""Maximum number of bits of a fixed-point observation, so that observations fit 64-bit integers."""
STRETCH = 1.5
"""Factor that stretches thresholds fitted to random behaviour, since trained agents often reach larger values."""


@dataclass(frozen=True)
class Thermometer:
    """Finite, increasing thresholds for each dimension of an observation; an unused dimension has none."""

    thresholds: tuple[tuple[float, ...], ...]
    fraction_bits: int | None = None
    """Number of fraction bits of the fixed-point form; None to derive it from the thresholds."""

    def __post_init__(self) -> None:
        # Convert to Python floats, since their text is written to files and used in names of inputs.
        rows = tuple(tuple(map(float, row)) for row in self.thresholds)
        object.__setattr__(self, "thresholds", rows)
        for dimension, values in enumerate(self.thresholds):
            if not all(map(math.isfinite, values)) or any(low >= high for low, high in pairwise(values)):
                raise CircuitError(
                    f"The thresholds of dimension {dimension} must be finite and increasing, got "
                    f"{str(list(values))[:80]}."
                )

    @classmethod
    def around(
        cls, mean: npt.ArrayLike, spread: npt.ArrayLike, bits: int | Sequence[int], stretch: float = STRETCH
    ) -> Thermometer:
        """Make a thermometer with `bits` thresholds per dimension at quantiles of normal distributions.

        The means are `mean [D]` and the standard deviations `stretch * spread [D]`; a spread of 0 counts as 1.
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
        """Make a thermometer for observations of `count` bits, with the threshold 0.5 for each bit."""
        return cls(((0.5,),) * count)

    @property
    def dimensions(self) -> int:
        return len(self.thresholds)

    @cached_property
    def bits(self) -> int:
        """Total number of bits (thresholds) of all dimensions."""
        return sum(map(len, self.thresholds))

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """For each bit, its dimension and the index of its threshold within the dimension."""
        return tuple((d, i) for d, values in enumerate(self.thresholds) for i in range(len(values)))

    @cached_property
    def codes(self) -> int:
        """Number of different codes that observations can have."""
        return math.prod(len(values) + 1 for values in self.thresholds)

    def code(self, observations: npt.ArrayLike) -> Bits:
        """Return the code, uint8 `[bits, N]`, of observations `[N, D]`, which are converted to float64."""
        values = np.asarray(observations, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.dimensions:
            raise CircuitError(f"Observations must have shape [N, {self.dimensions}], got {list(values.shape)}.")
        return _compared(values, self.thresholds)

    def code_number(self, numbers: npt.ArrayLike) -> Bits:
        """Return the codes, uint8 `[bits, N]`, at the indices `numbers [N]` in the list of all `codes` codes."""
        # A number has one digit per dimension, the number of its bits that are 1; the first dimension changes fastest.
        rest, levels = np.asarray(numbers, dtype=np.int64), list[Integers]()
        for values in self.thresholds:
            rest, level = np.divmod(rest, len(values) + 1)
            levels.append(level)
        return self.code_levels(levels)

    def code_levels(self, levels: Sequence[npt.ArrayLike]) -> Bits:
        """Return the codes, uint8 `[bits, N]`, for `levels [D, N]`, the number of thresholds reached per dimension."""
        return _compared(np.stack(levels, axis=1), [range(1, len(values) + 1) for values in self.thresholds])

    def is_code(self, bits: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return, for each column of `bits [bits, N]`, whether it is the code of some observation, bool `[N]`."""
        columns = np.asarray(bits)
        legal = np.ones(columns.shape[1], dtype=np.bool_)
        for lower, upper in self.implied:
            legal &= (columns[upper] == 0) | (columns[lower] == 1)
        return legal

    @cached_property
    def implied(self) -> tuple[tuple[int, int], ...]:
        """All pairs `(lower, upper)` of adjacent bits of a dimension; if the upper bit is 1, so is the lower bit."""
        return tuple((bit - 1, bit) for bit, (_, index) in enumerate(self.places) if index)

    def keep(self, bits: Sequence[int]) -> Thermometer:
        """Return a copy with only the thresholds of the given bits."""
        remaining = set(bits)
        numbers = iter(range(self.bits))
        rows = tuple(tuple(t for t in values if next(numbers) in remaining) for values in self.thresholds)
        return Thermometer(rows, self.fraction_bits)

    def fixed_point(self, fraction_bits: int | None = None) -> FixedPoint:
        """Return the fixed-point form for hardware. Raise CircuitError if thresholds need more than MOST_WIDTH bits."""
        fraction_bits = self.fraction_bits if fraction_bits is None else fraction_bits
        if fraction_bits is None:
            gaps = [high - low for values in self.thresholds for low, high in pairwise(values)]
            fraction_bits = max(FRACTION_BITS, 8 + math.ceil(-math.log2(min(gaps, default=1.0))))
        try:
            # Multiplying by a power of two is exact, and so is rounding up to an integer.
            scaled = tuple(tuple(math.ceil(math.ldexp(t, fraction_bits)) for t in row) for row in self.thresholds)
        except OverflowError:
            scaled = ((1 << MOST_WIDTH,),)
        # Values out of range are clipped: the lowest is below every threshold, the highest reaches every threshold.
        width = 1 + max((abs(t).bit_length() for row in scaled for t in row), default=1)
        if width > MOST_WIDTH:
            raise CircuitError(
                f"Thresholds with {fraction_bits} fraction bits take more than {MOST_WIDTH} bits: "
                "scale the observations, or use fewer fraction bits."
            )
        pairs = zip(chain(*scaled), chain(*self.thresholds), strict=True)
        exact = all(math.ldexp(number, -fraction_bits) == t for number, t in pairs)
        return FixedPoint(fraction_bits, width, scaled, exact)


@dataclass(frozen=True)
class FixedPoint:
    """Thermometer on integers X = floor(x * 2^fraction_bits), clipped to `width` bits, two's complement.

    Threshold t becomes T = ceil(t * 2^fraction_bits), and its bit becomes X >= T, which is equivalent to `x >= T /
    2^fraction_bits`. So the fixed-point and the floating-point form agree on every x, except if t <= x < T /
    2^fraction_bits, less than one step above a threshold. If every threshold is a multiple of a step (`exact`), they
    agree on every x. In any case they agree on multiples of a step, such as readings of a sensor of this resolution.
    """

    fraction_bits: int
    width: int
    thresholds: tuple[tuple[int, ...], ...]
    exact: bool
    """True if the fixed-point and the floating-point form agree on every observation."""

    def of(self, observations: npt.ArrayLike) -> Integers:
        """Convert observations `[N, D]` to fixed point, clipping values out of range; NaN becomes the lowest value."""
        top = 1 << (self.width - 1)
        with np.errstate(over="ignore"):
            scaled = np.floor(np.ldexp(np.asarray(observations, dtype=np.float64), self.fraction_bits))
        lowest = np.where(np.isnan(scaled), -top, scaled)
        # Clip integers, since floats would round the end of the range.
        integers = np.where(np.abs(lowest) < top, lowest, 0).astype(np.int64)
        return np.where(lowest >= top, top - 1, np.where(lowest <= -top, -top, integers))

    def code(self, fixed: npt.ArrayLike) -> Bits:
        """Return the code, uint8 `[bits, N]`, of fixed-point observations `[N, D]`."""
        return _compared(np.asarray(fixed, dtype=np.int64), self.thresholds)


def _compared(values: npt.NDArray[np.float64] | Integers, thresholds: Sequence[Sequence[float]]) -> Bits:
    dimensions, flat = _in_a_row(tuple(thresholds))
    return (values.T[dimensions] >= flat[:, None]).view(np.uint8)


@lru_cache(maxsize=64)
def _in_a_row(thresholds: tuple[Sequence[float], ...]) -> tuple[Integers, npt.NDArray[Any]]:
    """Return the dimensions and the thresholds of all bits, each as one array `[bits]`."""
    dimensions = np.repeat(np.arange(len(thresholds)), [len(row) for row in thresholds])
    return dimensions, np.array([value for row in thresholds for value in row])
