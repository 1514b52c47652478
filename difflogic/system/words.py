"""Words that agree with numbers."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 gate`, `2 gates`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
