"""What a run tells whoever watches it: the command line prints it, a notebook may draw it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from difflogic.config import Config
from difflogic.engine import EngineInfo
from difflogic.train.journal import Row


@dataclass(frozen=True)
class Beginning:
    """What is known before the first epoch."""

    config: Config
    engine: EngineInfo
    reason: str
    path: Path | None
    """The run folder; None where the run stays in memory."""
    epoch: int
    """Epochs done already: 0 for a new run."""


class Observer:
    """Override what you want to hear. Calls come from the thread that trains."""

    def began(self, beginning: Beginning) -> None:
        """Before the first epoch."""

    def advanced(self, epoch: int) -> None:
        """Epochs up to this one were given to the engine."""

    def logged(self, row: Row, accuracy: float) -> None:
        """A row at the log interval, at an evaluation or at the end; `accuracy` is the last one measured."""

    def noticed(self, text: str) -> None:
        """Something that a person should know, one sentence."""

    def saved(self, epoch: int) -> None:
        """A checkpoint of this epoch is on the disk."""
