"""Results of tests, each with a title, a text, numbers, and possibly an animation."""

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
"""Maximum number of states in an animation."""


@dataclass(frozen=True, eq=False)
class Film:
    """Animation of a rollout: `frames`, uint8 `[n, H, W, L]`, are the loss channels of the first sample at `steps`."""

    frames: Bits
    steps: Sequence[int]

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class RolloutRecord:
    """Comparison of a rollout with its target."""

    wrong: npt.NDArray[np.int64]
    """Number of mismatches per compared step and sample, `[n, B]`, including damaged cells."""
    values: int
    """Number of compared values per sample and step."""
    outside: npt.NDArray[np.int64]
    """Number of mismatches per sample, `[B]`, at the last compared step, excluding the cells of the last damage."""
    film: Film

    __repr__ = brief


def watch(
    states: Iterable[Bits], targets: Iterable[Bits | None], steps: int, damaged: tuple[slice, ...] = ()
) -> RolloutRecord:
    """Compare the first L channels of each of the `steps + 1` states `[B, H, W, C]` with its target `[H, W, L]`.

    Steps with the target None are skipped. `damaged` is the slices of the rows and columns that were damaged last.
    """
    # To save memory, store only the counts of all steps, and at most FRAMES images of the first sample.
    drawn_steps, frames, wrong = set(evenly(steps, FRAMES)), {}, []
    differs = np.zeros((0, 0, 0, 0), dtype=np.bool_)
    for step, (state, target) in enumerate(zip(states, targets, strict=False)):
        if target is None:
            continue
        visible = state[..., : target.shape[-1]]
        differs = visible != target
        # Count per sample, since 64 mismatches in one sample differ from one mismatch in each of 64 samples.
        wrong.append(np.count_nonzero(differs, axis=(1, 2, 3)))
        if step in drawn_steps:
            frames[step] = visible[0].copy()
    # Cells under the last damage are 0 in any circuit, whatever the target.
    outside = differs.copy()
    if damaged:
        outside[:, *damaged] = False
    film = Film(np.stack(list(frames.values())), list(frames))
    return RolloutRecord(np.array(wrong), differs[0].size, np.count_nonzero(outside, axis=(1, 2, 3)), film)


@dataclass(frozen=True, eq=False)
class Measure:
    """Result of a test that applies to the task."""

    key: str
    """Machine-readable name, such as `fault-tolerance`."""
    title: str
    text: str
    """Result as text for readers."""
    values: dict[str, float]
    """Result as numbers by name."""
    paper: str = ""
    met: bool | None = None
    """True if the result is at least as good as the paper's, or None if the results are not comparable."""
    curve: Sequence[float] = ()
    """Mean number of mismatches per sample at each compared step."""
    film: Film | None = field(default=None, repr=False)
    __repr__ = brief

    @classmethod
    def of(
        cls, key: str, title: str, records: Sequence[RolloutRecord], exact_in_paper: bool = False, **more: float
    ) -> Measure:
        """Return a measure of the final mismatches in rollouts of equal length; `more` is added to its values."""
        # Repeated asynchronous rollouts count as additional samples.
        wrong = np.concatenate([record.wrong for record in records], axis=1)
        samples = wrong.shape[1]
        total, values = int(wrong[-1].sum()), samples * records[0].values
        counts = {"wrong": total, "values": values, "accuracy": 1 - total / values, "samples": samples}
        return cls(
            key=key,
            title=title,
            text=in_words(total, values, samples),
            values={**counts, "wrong_samples": int(np.count_nonzero(wrong[-1])), **more},
            paper="exact" if exact_in_paper else "",
            met=total == 0 if exact_in_paper else None,
            curve=[round(float(value), 4) for value in wrong.mean(axis=1)],
            film=records[0].film,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the measure in the format of evaluation.json, without the animation."""
        names = ("key", "title", "text", "values", "paper", "met")
        return {name: getattr(self, name) for name in names} | {"curve": list(self.curve)}


def in_words(wrong: int, values: int, samples: int = 1) -> str:
    """Return `exact`, or a text with the number `wrong` of mismatches among the `values` of all samples."""
    over = f" over {samples} samples" if samples > 1 else ""
    if wrong == 0:
        return f"exact{over}"
    return f"{wrong} of {values} wrong{over} ({100 * (1 - wrong / values):.2f} % right)"
