"""These words say when a waiting job begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def turn_words(turn: Mapping[str, Any] | None) -> str | None:
    """A sentence; None where nothing is known of it."""
    if turn is None or turn["position"] is None:
        return None
    place = "it is next" if turn["position"] == 1 else f"its position in the queue is {turn['position']}"
    if turn["begins_s"] is None:
        return f"{place}; its start time is unknown."
    return f"{place} and it starts {_in(turn['begins_s'])}."


def _in(seconds: int) -> str:
    """`now`, `in about 5 min`, as the page has it."""
    if seconds < 1:
        return "now"
    if seconds < 90:
        return f"in about {seconds} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"in about {minutes} min"
    return f"in about {minutes // 60} h {minutes % 60} min" if minutes < 48 * 60 else f"in about {minutes // 1440} days"
