"""What the paper reports of its five experiments.

Source: Miotti et al. 2025 (arXiv 2506.04912) and the authors' notebook, at seed 23.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Of one experiment; None where the paper is silent."""

    solved_at: int | None = None
    """The epoch from which the hard loss is 0."""
    active_gates: int | None = None
    """Argmax neither A nor B, a perception gate once per kernel."""
    robustness: int | None = None
    """Mean error over 4000 asynchronous steps on 64x64, a 10x10 square zeroed after each."""
    exact: bool = False
    """True where its rule is shown to be exact on a grid four times as large, and after healing."""


PUBLISHED = {
    "checkerboard": Published(solved_at=244, active_gates=22, robustness=1130, exact=True),
    "checkerboard-async": Published(robustness=699),
    "game-of-life": Published(solved_at=1440, active_gates=336),
    "lizard": Published(solved_at=1383, active_gates=577),
    "colored-g": Published(solved_at=1870, active_gates=927),
}


def published(name: str) -> Published:
    """By the name of a configuration; nothing for one that is not the paper's."""
    return PUBLISHED.get(name, Published())
