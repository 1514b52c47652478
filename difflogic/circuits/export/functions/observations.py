"""Random test samples for exported functions, with the expected results."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.circuits.export.testbench import draw_vectors
from difflogic.core.bits import Bits
from difflogic.errors import ExportError
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.thermometer import FixedPoint, Integers

COUNT = 100_000
STEPS, EPISODE = 2000, 20
"""Number of steps in a test sequence, and mean number of steps per episode."""
_SEED = 17
_ODD = (np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 1e300, -1e300)


@dataclass(frozen=True, eq=False)
class Observations:
    """At most `most` random test samples for `function`, from a fixed seed; `form` is its fixed-point format."""

    function: FunctionNetlist
    form: FixedPoint
    most: int = COUNT

    @property
    def count(self) -> int:
        """Number of samples: `most`, or 2^k for a function that reads only k bits, if that is smaller."""
        return len(self.values)

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """Test samples, float64 `[N, D]`: bits; or numbers at and near thresholds, random ones, NaN and infinities."""
        if self.function.reads_bits:
            return draw_vectors(self.function, self.most).inputs.T.astype(np.float64)
        random, count = np.random.default_rng(_SEED), self.most
        columns = []
        for thresholds in self.function.thermometer.thresholds:
            centre = random.choice(np.array([0.0, *thresholds]), count)
            step = random.integers(-3, 4, count) * 2.0**-self.form.fraction_bits
            spread = max(1e-3, float(np.ptp([0.0, *thresholds])))
            every = np.stack(
                [
                    centre,
                    np.nextafter(centre, -np.inf),
                    np.nextafter(centre, np.inf),
                    centre + step,
                    random.normal(0.0, spread, count),
                    centre + random.normal(0.0, 0.1 * spread, count),
                    random.choice(np.array(_ODD), count),
                ]
            )
            # One value in a hundred is one of `_ODD`; the other six kinds are equally frequent.
            kind = np.where(random.random(count) < 0.01, 6, random.integers(0, 6, count))
            columns.append(every[kind, np.arange(count)])
        return np.stack(columns, axis=1)

    @cached_property
    def fixed(self) -> Integers:
        """Test samples in fixed point, int64 `[N, D]`."""
        return self.form.of(self.values)

    def bits(self) -> Bits:
        """Return the bits of each fixed-point sample, dimension 0 and low bits first, uint8 `[D * width, N]`."""
        if self.function.reads_bits:
            return self.values.T.astype(np.uint8)
        bits = self.fixed[:, :, None] >> np.arange(self.form.width) & 1
        return bits.reshape(self.count, -1).T.astype(np.uint8)

    def result_bits(self) -> Bits:
        """Return the bits of the expected results for fixed-point samples, uint8 `[bits per result, N]`."""
        return self.function.result_bits(self.form.code(self.fixed))

    def described(self, in_fixed_point: bool) -> str:
        """Return a description of the samples, such as `100000 observations in fixed point`."""
        many = f"{self.count} {self.function.words.sample}s"
        return f"{many} in fixed point" if in_fixed_point and not self.function.reads_bits else many

    def expected(self, in_fixed_point: bool) -> Integers:
        """Return the expected result of each sample as a number, int64 `[N]`."""
        function = self.function
        return function.decide_fixed(self.fixed, self.form) if in_fixed_point else function(self.values)

    def check(self, results: npt.ArrayLike, in_fixed_point: bool, what: str) -> str:
        """Compare `results` of the program `what` with the expected ones; return a sentence. Raises ExportError."""
        function, samples = self.function, self.fixed if in_fixed_point else self.values
        expected = self.expected(in_fixed_point)
        decided, words = np.asarray(results), function.words
        if decided.shape != expected.shape:
            raise ExportError(f"{what} returned {len(decided)} {words.choices}, expected {self.count}.")
        if (wrong := np.flatnonzero(decided != expected)).size:
            first = wrong[0]
            raise ExportError(
                f"{what} differs from the {function.kind} at {wrong.size} of {self.count} {words.sample}s, first at "
                f"{samples[first].tolist()}: expected {expected[first]}, got {decided[first]}."
            )
        return f"{what} agrees on {self.described(in_fixed_point)}"


class Steps(Observations):
    """Sequence of samples for a controller with memory; the first memory value is 1 if the sample begins an episode."""

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        values = super().values.copy()
        seen = values.shape[1] - self.function.memory
        values[:, seen:] = 0
        values[1:, seen] = np.random.default_rng(_SEED).random(len(values) - 1) < 1 / EPISODE
        values[0, seen] = 1
        return values

    def expected(self, in_fixed_point: bool) -> Integers:
        function, seen = self.function, self.values.shape[1] - self.function.memory
        code = self.form.code(self.fixed) if in_fixed_point else function.thermometer.code(self.values)
        state = [(bit, d - seen) for bit, (d, _) in enumerate(function.thermometer.places) if d >= seen]
        shown, actions, memory = len(function.outputs) - function.memory, list[int](), 0
        for begins, column in zip(self.values[:, seen], code.T, strict=True):
            memory *= not begins
            for bit, k in state:
                column[bit] = memory >> k & 1
            memory, action = divmod(int(function.decide(column[:, None])[0]), 1 << shown)
            actions.append(action)
        return np.array(actions)

    def result_bits(self) -> Bits:
        bits = self.expected(in_fixed_point=True) >> np.arange(len(self.function.outputs))[:, None] & 1
        return bits.astype(np.uint8)

    def described(self, in_fixed_point: bool) -> str:
        return f"a sequence of {super().described(in_fixed_point)}"


def trials(function: FunctionNetlist) -> list[Observations]:
    """Return test samples for a function of numbers and, if it has memory, a test sequence."""
    form = function.thermometer.fixed_point()
    return [Observations(function, form), *[Steps(function, form, STEPS)] * bool(function.memory)]
