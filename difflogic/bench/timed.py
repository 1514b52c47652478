"""A timed thing is one that can be repeated, in rounds, once its results are right."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from difflogic.errors import DifflogicError


class WrongResultError(DifflogicError):
    """An engine computes something else: it is not timed."""


@dataclass(kw_only=True)
class Timed(ABC):
    """One engine on one case."""

    name: str
    """What the engine was asked for as."""
    per_round: int = 1
    """Repetitions of a round."""
    is_card: bool = False
    """Whether it runs on a card, whose clock is low after a pause."""
    seconds: list[float] = field(default_factory=list)
    """How long one repetition took, a value per round."""

    @abstractmethod
    def _repeat(self, count: int) -> None:
        """Return when `count` repetitions are done."""

    @abstractmethod
    def close(self) -> None:
        """Free what it holds."""

    @property
    def once(self) -> bool:
        """Whether what was timed when it was opened is all that is."""
        return False

    def repeat(self, count: int) -> float:
        """Seconds per repetition over `count` of them, waited for."""
        begin = time.perf_counter()
        self._repeat(count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> float:
        """Settle the engine, choose how many repetitions last `seconds`, and say how long a round will take."""
        once = self.repeat(1)
        if once < seconds:
            # The first repetition may still compile or fill caches, so a few more tell how long one takes.
            once = self.repeat(max(1, min(10, int(seconds / once))))
            if self.is_card:
                self.repeat(int(seconds / once) + 1)
                once = self.repeat(10)
        self.per_round = max(1, round(seconds / once))
        return once * self.per_round
