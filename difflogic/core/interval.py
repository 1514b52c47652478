"""What a count of successes says of a rate."""

import math

Z = 1.959963984540054
"""The standard normal distribution lies within `[-Z, Z]` with a probability of 95 %."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The rates of success that a count does not contradict, at 95 %: unlike the usual formula also near 0 and 1.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference (1927).
    """
    rate, z2 = successes / trials, Z * Z
    # With 0 of 10 the usual formula says 0 to 0; this one says 0 to 28 %.
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z * math.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # Without a success, and without a failure, an end is exactly 0 or 1, which rounding would miss by a little.
    return max(0.0, centre - half) if successes else 0.0, min(1.0, centre + half) if successes < trials else 1.0
