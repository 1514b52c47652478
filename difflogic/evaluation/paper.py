"""These are the paper's figures for its five experiments.

Source: Miotti et al. 2025 (arXiv 2506.04912) and the authors' notebook, at seed 23.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import rules


@dataclass(frozen=True)
class Published:
    """The paper's figures for one experiment; None where it gives none."""

    solved_at: int | None = None
    """The epoch from which the hard loss is 0."""
    active_gates: int | None = None
    """Argmax neither A nor B, a perception gate once per kernel."""
    robustness: int | None = None
    """Mean error over 4000 asynchronous steps on 64x64, a 10x10 square zeroed after each."""
    exact: bool = False
    """True where its rule is shown to be exact: of a board on a grid four times as large, and after healing."""


PUBLISHED = {
    "checkerboard": Published(solved_at=244, active_gates=22, robustness=1130, exact=True),
    "checkerboard-async": Published(robustness=699),
    "game-of-life": Published(solved_at=1440, active_gates=336, exact=True),
    "lizard": Published(solved_at=1383, active_gates=577),
    "colored-g": Published(solved_at=1870, active_gates=927),
}


def published(config: Config) -> Published:
    """Return what it reports of the experiment that was trained; nothing for a task that is not the paper's own."""
    found = PUBLISHED.get(config.name)
    return found if found is not None and is_own_task(config) else Published()


def is_own_task(config: Config) -> bool:
    """Return whether it asks for what the preset of its name does: rule or picture, start, grid, steps, timing."""
    return _asked(config) == _asked(presets.get(config.name))


def _asked(config: Config) -> tuple[object, ...]:
    task, rule = config.task, config.task.rule
    # B3/S23 and its table of 512 bits are the same task, so tables are compared; the text is made the same for both.
    entries = rules.table(rule).tobytes() if rule else b""  # one rule is written in several ways
    return replace(task, rule=rule and "B/S"), entries, config.model.periodic, config.train.fire_rate
