"""What a running job does, and how long each may take before its worker counts as hung."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

Phase = Literal["starting", "compiling", "training", "evaluating", "drawing", "finishing", "working"]
"""starting: loading what an engine needs; compiling: until the first epochs are done; evaluating: and saving; drawing:
the first state frame; finishing: the results' pictures; working: a follow-up."""


@dataclass(frozen=True)
class Limits:
    """Seconds. A process that compiles cannot say that it is alive, so what comes first has time."""

    first: float = 300.0
    """For starting, compiling, the first evaluation and frame, and the results' pictures."""
    beat: float = 12.0
    """Between two signs of life while it trains, evaluates and saves: a hang is seen in a second more..."""
    factor: float = 20.0
    """...unless so many times the slowest of the last ones is longer."""
    follow_up: float = 3600.0
    """For a follow-up as a whole, which has no checkpoints..."""
    still: float = 120.0
    """...and for the time in which no processor works for it."""
    rest: float = 60.0
    """Without a follow-up, after which their worker ends."""
    stop: float = 60.0
    """To save and end, when asked to."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Limits:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))
