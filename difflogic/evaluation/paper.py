"""Results of five experiments at seed 23, from Miotti et al. 2025 (arXiv 2506.04912) and the paper's notebook."""

from dataclasses import dataclass, replace

from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import rules


@dataclass(frozen=True)
class Published:
    """Published results of one experiment; a result is None if it was not published."""

    solved_at: int | None = None
    """First epoch with a hard loss of 0."""
    active_gates: int | None = None
    """Number of gates whose most probable function is neither A nor B; perception gates are counted in each kernel."""
    robustness: int | None = None
    """Mean number of mismatches over 4000 asynchronous steps on a 64x64 grid; each step zeroes a 10x10 square."""
    exact: bool = False
    """True if the circuit is exact; for a checkerboard, also on sides four times as long and after self-healing."""


PUBLISHED = {
    "checkerboard": Published(solved_at=244, active_gates=22, robustness=1130, exact=True),
    "checkerboard-async": Published(robustness=699),
    "game-of-life": Published(solved_at=1440, active_gates=336, exact=True),
    "lizard": Published(solved_at=1383, active_gates=577),
    "colored-g": Published(solved_at=1870, active_gates=927),
}


def published(config: Config) -> Published:
    """Return the paper's results for an experiment, or empty results for any other task."""
    figures = PUBLISHED.get(config.name)
    return figures if figures is not None and is_own_task(config) else Published()


def is_own_task(config: Config) -> bool:
    """Return whether `config` has the same target, initial state, grid and timing as the preset of its name."""
    return _asked(config) == _asked(presets.get(config.name))


def _asked(config: Config) -> tuple[object, ...]:
    task, rule = config.task, config.task.rule
    # Compare tables of rules, since a rule can be written in several ways: B3/S23 and its table of 512 bits are equal.
    entries = rules.table(rule).tobytes() if task.target == "rule" else b""
    return replace(task, rule=rule and "B/S"), entries, config.model.periodic, config.train.fire_rate
