"""How much of a fused step one dispatch does: a huge grid's takes several, so that each is short.

Parts change no result: every chunk's values are its own, and a block's chunks come in order.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple


class Span(NamedTuple):
    """What a dispatch does: tiles `[first, end)`, and of every block in them the chunks `[first_part, end_part)`."""

    first: int
    end: int
    first_part: int = 0
    end_part: int = 1

    @property
    def tiles(self) -> int:
        return self.end - self.first

    @property
    def parts(self) -> int:
        return self.end_part - self.first_part


def spans(tiles: int, parts: int, work: int, most: int) -> list[Span]:
    """Spans over all tiles and parts, in order, of at most `most` work each where one part of one tile is `work`.

    Parts are divided first: all tiles together fill a device better than a few. One part of one tile is never divided.
    """
    every_tile = most // (max(1, tiles) * work)
    by_part = _cut(parts, max(1, every_tile))
    by_tile = _cut(tiles, tiles if every_tile else max(1, most // work))
    return [Span(first, end, *part) for part in by_part for first, end in by_tile]


def _cut(items: int, most: int) -> list[tuple[int, int]]:
    """`[first, end)` of pieces of at most so many items, as even as can be."""
    count = max(1, -(-items // max(1, most)))
    return list(itertools.pairwise(items * piece // count for piece in range(count + 1)))
