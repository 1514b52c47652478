"""Base class for contenders, which times repetitions in rounds."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from difflogic.bench.engines import Bench
from difflogic.errors import DifflogicError


class WrongResultError(DifflogicError):
    """The results of an engine are wrong, so it is not timed."""


@dataclass(kw_only=True)
class Timed(ABC):
    """Base class of contenders; a contender is a case on an engine, with its measured times."""

    bench: Bench
    """Engine on which the case runs."""
    per_round: int = 1
    """Number of repetitions per round."""
    seconds: list[float] = field(default_factory=list)
    """Mean time of a repetition in seconds, for each round."""

    @abstractmethod
    def _repeat(self, count: int) -> None:
        """Run `count` repetitions and wait for them to finish."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources of the case, such as buffers."""

    @property
    def once(self) -> bool:
        """True if the contender is not timed in rounds, since its first step was timed when it was opened."""
        return False

    def repeat(self, count: int) -> float:
        """Run `count` repetitions and return the mean time of a repetition in seconds."""
        begin = time.perf_counter()
        self._repeat(count)
        return (time.perf_counter() - begin) / count

    def warm_up(self, seconds: float) -> float:
        """Warm up, set `per_round` so that a round takes about `seconds`, and return the expected time of a round."""
        once = self.repeat(1)
        if once < seconds:
            # The first repetition may include compilation or filling of caches, so more repetitions are timed.
            once = self.repeat(max(1, min(10, int(seconds / once))))
            if self.bench.is_card:
                self.repeat(int(seconds / once) + 1)
                once = self.repeat(10)
        self.per_round = max(1, round(seconds / once))
        return once * self.per_round
