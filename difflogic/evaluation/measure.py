"""One measurement: a title, a result in words and in numbers, and what there is to see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.evaluation.rollout import evenly
from difflogic.system.brief import brief

FRAMES = 60
"""A film has at most so many states."""


@dataclass(frozen=True, eq=False)
class Film:
    """A film shows a rollout: uint8 `frames [n, H, W, L]`, the loss channels of the first sample after `steps`."""

    frames: Bits
    steps: Sequence[int]

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class RolloutRecord:
    """A record holds what was seen of a rollout beside its target."""

    wrong: npt.NDArray[np.int64]
    """`[n, B]`: wrong values of each sample after each compared step, damage done."""
    values: int
    """Values compared per sample and step."""
    outside: npt.NDArray[np.int64]
    """`[B]`: wrong values at the end, of those that were not damaged there."""
    film: Film

    __repr__ = brief


def watch(
    states: Iterable[Bits], targets: Iterable[Bits | None], steps: int, damaged: tuple[slice, ...] = ()
) -> RolloutRecord:
    """Compare the `steps + 1` states `[B, H, W, C]` with a target `[H, W, L]` each, in their first L channels.

    A step without a target is not counted. `damaged` are the rows and columns that the last damage zeroed.
    """
    # States pass by once: kept are the counts of all steps, and of at most FRAMES the picture of the first sample.
    kept, frames, wrong = set(evenly(steps, FRAMES)), {}, []
    differs = np.zeros((0, 0, 0, 0), dtype=np.bool_)
    for step, (state, target) in enumerate(zip(states, targets, strict=False)):
        if target is None:
            continue
        visible = state[..., : target.shape[-1]]
        differs = visible != target
        # Each sample is counted by itself: that one in 64 starts fails is another result than one wrong value in each.
        wrong.append(np.count_nonzero(differs, axis=(1, 2, 3)))
        if step in kept:
            frames[step] = visible[0].copy()
    # Cells under the last damage are wrong by construction: what the rest of the grid makes of it is told apart.
    outside = differs.copy()
    if damaged:
        outside[:, *damaged] = False
    film = Film(np.stack(list(frames.values())), list(frames))
    return RolloutRecord(np.array(wrong), differs[0].size, np.count_nonzero(outside, axis=(1, 2, 3)), film)


@dataclass(frozen=True, eq=False)
class Measure:
    """The result of one test; a test that says nothing about a task has none."""

    key: str
    """For programs: `fault-tolerance`."""
    title: str
    text: str
    """The result, for people."""
    values: dict[str, float]
    """The result, for programs."""
    paper: str = ""
    """What the paper reports; empty where it is silent."""
    met: bool | None = None
    """Whether the result is at least as good as the paper's; None where there is nothing to compare."""
    curve: Sequence[float] = ()
    """Wrong values after each compared step, the mean over the samples."""
    film: Film | None = field(default=None, repr=False)

    __repr__ = brief

    @classmethod
    def of(
        cls, key: str, title: str, records: Sequence[RolloutRecord], exact_in_paper: bool = False, **more: float
    ) -> Measure:
        """Wrong values at the end of rollouts of as many steps."""
        # Rollouts under several draws of the fire masks are samples like others: their columns stand side by side.
        wrong = np.concatenate([record.wrong for record in records], axis=1)
        samples = wrong.shape[1]
        # The measure is of the end of the rollout; the curve, a mean over samples, tells how it came there.
        total, values = int(wrong[-1].sum()), samples * records[0].values
        return cls(
            key=key,
            title=title,
            text=in_words(total, values, samples),
            values={
                "wrong": total,
                "values": values,
                "accuracy": 1 - total / values,
                "samples": samples,
                "wrong_samples": int(np.count_nonzero(wrong[-1])),
                **more,
            },
            paper="exact" if exact_in_paper else "",
            met=total == 0 if exact_in_paper else None,
            curve=[round(float(value), 4) for value in wrong.mean(axis=1)],
            film=records[0].film,
        )

    def to_dict(self) -> dict[str, Any]:
        """The measure as evaluation.json holds it, without the film."""
        names = ("key", "title", "text", "values", "paper", "met")
        return {name: getattr(self, name) for name in names} | {"curve": list(self.curve)}


def in_words(wrong: int, values: int, samples: int = 1) -> str:
    """`exact`, or how many of how many values are wrong, over all samples."""
    over = f" over {samples} samples" if samples > 1 else ""
    if wrong == 0:
        return f"exact{over}"
    return f"{wrong} of {values} wrong{over} ({100 * (1 - wrong / values):.2f} % right)"
