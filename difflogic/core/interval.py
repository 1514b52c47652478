"""Confidence interval of a success rate."""

import math

Z = 1.959963984540054
"""Number such that the interval `[-Z, Z]` contains 95 % of the standard normal distribution."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the bounds of the 95 % Wilson score interval of a success rate, which is also valid near rates 0 and 1.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
    """
    rate, z2 = successes / trials, Z * Z
    # For 0 of 10, the normal approximation gives 0 to 0; this formula gives 0 to 28 %.
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z * math.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # Despite rounding, the lower end is exactly 0 without successes, and the upper end exactly 1 without failures.
    return max(0.0, centre - half) if successes else 0.0, min(1.0, centre + half) if successes < trials else 1.0
