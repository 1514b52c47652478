"""Tolerances of comparisons, and reasons for them. Hard circuits, wires and random bits are always compared exactly."""

import numpy as np

STATE_ATOL = 1e-6
"""Soft states: float32 sums of sixteen gates and of four coefficients differ in their last bits, near 0."""
STATE_RTOL = 1e-4
"""Soft states: those last bits, amplified by tens of gate layers and steps."""

LOSS_RTOL = 2e-5
"""A loss: a float32 sum over cells of values that themselves differ in their last bits."""

GRADIENT_SHARE = 1e-4
"""Gradients, as a share of the layer's largest entry: most entries at the start are near 0 and pure rounding."""

STEP_ATOL_SAME_GRADIENTS = 1e-6
"""Logits after a step from the same gradients: only AdamW's own float32 rounding is left."""
STEP_ATOL_OWN_GRADIENTS = 1e-4
"""Logits after a step from own gradients: AdamW divides by their root mean square, which magnifies small ones."""

FLOAT64_RTOL = 1e-12
"""Two float64 computations of one formula in different order."""

DIFFERENCE_STEP = 1e-5
"""Half width of a central difference in float64: truncation (its square) and rounding (1e-16 over it) balance."""
DIFFERENCE_RTOL = 1e-7
"""A central difference along a unit direction against the exact derivative: truncation, and a margin."""
DIFFERENCE_ROUNDING = 64 * 2.0**-53
"""Rounding of a function's float64 value, as a share of its terms' absolute sum. Every IEEE machine keeps it: numbers
of at most 1 pass tens of layers, each with a few roundings, and any order of summing thousands of terms in blocks of
128 or fewer adds at most 30. A difference of two values has it twice, however small the derivative is."""


def difference_atol(one: np.ndarray | float, other: np.ndarray | float) -> float:
    """Bound the rounding error of half the difference of two functions' values, which are given as arrays of terms."""
    return DIFFERENCE_ROUNDING * float(1 + np.abs(one).sum() + np.abs(other).sum()) / 2


COEFFICIENT_ATOL = 4e-6
"""Coefficients on a GPU, sums of sixteen shares of 1: drivers' exp differs by up to 15 units in the last place."""
