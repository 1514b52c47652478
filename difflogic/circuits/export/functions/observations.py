"""Observations to try an exported controller on, and what it should do at each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.errors import ExportError
from difflogic.model.controller import Controller
from difflogic.model.thermometer import FixedPoint, Integers

COUNT = 100_000
_SEED = 17
_ODD = (np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 1e300, -1e300)


@dataclass(frozen=True, eq=False)
class Observations:
    """A fixed number of observations for a controller is drawn, the same each time."""

    controller: Controller
    form: FixedPoint
    count: int = COUNT

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """float64 `[N, D]`: on thresholds, a hair below and above, a step of the fixed form beside, and anywhere."""
        random = np.random.default_rng(_SEED)
        columns = []
        for thresholds in self.controller.thermometer.thresholds:
            centre = random.choice(np.array([0.0, *thresholds]), self.count)
            step = random.integers(-3, 4, self.count) * 2.0**-self.form.fraction_bits
            spread = max(1e-3, float(np.ptp([0.0, *thresholds])))
            every = np.stack(
                [
                    centre,
                    np.nextafter(centre, -np.inf),
                    np.nextafter(centre, np.inf),
                    centre + step,
                    random.normal(0.0, spread, self.count),
                    centre + random.normal(0.0, 0.1 * spread, self.count),
                    random.choice(np.array(_ODD), self.count),
                ]
            )
            # One in a hundred is no number that a sensor gives; all others are shared equally.
            kind = np.where(random.random(self.count) < 0.01, 6, random.integers(0, 6, self.count))
            columns.append(every[kind, np.arange(self.count)])
        return np.stack(columns, axis=1)

    @cached_property
    def fixed(self) -> Integers:
        """Return the observations in fixed point, int64 `[N, D]`."""
        return self.form.of(self.values)

    @cached_property
    def actions(self) -> Integers:
        """Return what the controller does, int64 `[N]`."""
        return self.controller.act(self.values)

    @cached_property
    def fixed_actions(self) -> Integers:
        """Return what it does in fixed point."""
        return self.controller.act_fixed(self.fixed, self.form)

    def fixed_bits(self) -> Bits:
        """uint8 `[D * width, N]`: the observation as one number, dimension 0 in its lowest bits."""
        bits = self.fixed[:, :, None] >> np.arange(self.form.width) & 1
        return bits.reshape(self.count, -1).T.astype(np.uint8)

    def action_bits(self) -> Bits:
        """The right answers in fixed point, uint8 `[bits of the action, N]`."""
        outputs = len(self.controller.outputs)
        return (self.fixed_actions >> np.arange(outputs)[:, None] & 1).astype(np.uint8)

    def check(self, found: npt.ArrayLike, in_fixed_point: bool, what: str) -> str:
        """The sentence of a proof; `found` are the actions. Raises ExportError."""
        expected, given = (self.fixed_actions, self.fixed) if in_fixed_point else (self.actions, self.values)
        actions = np.asarray(found)
        if actions.shape != expected.shape:
            raise ExportError(f"{what} gives {len(actions)} actions for {self.count} observations.")
        if (wrong := np.flatnonzero(actions != expected)).size:
            first = wrong[0]
            raise ExportError(
                f"{what} differs from the controller at {wrong.size} of {self.count} observations, first at "
                f"{given[first].tolist()}: {actions[first]}, expected {expected[first]}."
            )
        return f"{what} agrees on {self.count} observations{' in fixed point' if in_fixed_point else ''}"
