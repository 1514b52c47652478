"""Timing of repetitions in rounds, after their results are verified."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from difflogic.errors import DifflogicError


class WrongResultError(DifflogicError):
    """Error for an engine with wrong results, which is not timed."""


@dataclass(kw_only=True)
class Timed(ABC):
    """Engine on one case."""

    name: str
    """Selector of the engine."""
    per_round: int = 1
    """Number of repetitions in a round."""
    is_card: bool = False
    """True if it runs on a card, whose clock is low after a pause."""
    seconds: list[float] = field(default_factory=list)
    """Seconds of one repetition in each round."""

    @abstractmethod
    def _repeat(self, count: int) -> None:
        """Run `count` repetitions and wait until they are done."""

    @abstractmethod
    def close(self) -> None:
        """Free all resources."""

    @property
    def once(self) -> bool:
        """True if only the step that was timed on opening is measured."""
        return False

    def repeat(self, count: int) -> float:
        """Return the seconds per repetition over `count` completed repetitions."""
        begin = time.perf_counter()
        self._repeat(count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> float:
        """Warm up, choose the number of repetitions that last `seconds`, and return the expected time of a round."""
        once = self.repeat(1)
        if once < seconds:
            # The first repetition may still compile or fill caches, so the time is taken from a few more.
            once = self.repeat(max(1, min(10, int(seconds / once))))
            if self.is_card:
                self.repeat(int(seconds / once) + 1)
                once = self.repeat(10)
        self.per_round = max(1, round(seconds / once))
        return once * self.per_round
