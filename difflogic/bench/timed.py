"""Timing of repetitions in rounds, for contenders with verified results."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from difflogic.errors import DifflogicError


class WrongResultError(DifflogicError):
    """Error for wrong results of an engine, which is therefore not timed."""


@dataclass(kw_only=True)
class Timed(ABC):
    """Contender: a case on an engine, with the times of its repetitions."""

    name: str
    """Selector of the engine."""
    per_round: int = 1
    """Number of repetitions in a round."""
    is_card: bool = False
    """True if the contender runs on a hardware GPU, which has a low clock after a pause."""
    seconds: list[float] = field(default_factory=list)
    """Mean seconds of a repetition in each round."""

    @abstractmethod
    def _repeat(self, count: int) -> None:
        """Run `count` repetitions and wait until they are done."""

    @abstractmethod
    def close(self) -> None:
        """Free all resources."""

    @property
    def once(self) -> bool:
        """True if the contender has no rounds, since its first step was timed when it was opened."""
        return False

    def repeat(self, count: int) -> float:
        """Run `count` repetitions; return the mean seconds of a repetition."""
        begin = time.perf_counter()
        self._repeat(count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> float:
        """Warm up, set `per_round` such that a round takes about `seconds`, and return the expected time of a round."""
        once = self.repeat(1)
        if once < seconds:
            # The first repetition may include compilation or fill caches, so some more repetitions are timed.
            once = self.repeat(max(1, min(10, int(seconds / once))))
            if self.is_card:
                self.repeat(int(seconds / once) + 1)
                once = self.repeat(10)
        self.per_round = max(1, round(seconds / once))
        return once * self.per_round
