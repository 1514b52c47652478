"""These words say where a waiting job stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def turn_words(turn: Mapping[str, Any] | None) -> str | None:
    """A sentence; None where nothing is known of it."""
    if turn is None or turn["position"] is None:
        return None
    return "it is next." if turn["position"] == 1 else f"its position in the queue is {turn['position']}."
