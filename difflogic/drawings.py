"""The pictures of the presets, in the characters of `difflogic.raster`.

The paper's own are not here; these have as many ones, so that training costs the same, but not the same pixels.
"""

from __future__ import annotations

LIZARD = (
    "....................",
    "....111.............",
    "....111.............",
    "...11111.111........",
    "...11111.111........",
    "....1111..1.........",
    "....1111.11....11...",
    ".....111111...111...",
    "....11111111.111....",
    "...11.11111111......",
    "....1111111111......",
    "........111111......",
    "........1111111.....",
    ".........111111.....",
    ".......1111.111.....",
    ".......111..111.....",
    ".............11.11..",
    ".............111.11.",
    "..............1111..",
    "....................",
)
"""20x20, 120 ones, as the paper's. Origin: the lizard (U+1F98E) of the font Noto Color Emoji 2.042, SIL Open Font
License 1.1, scaled to 20x20, where red, green or blue is above 0.26, and eight cells of head, toes and tail set by
hand: with them the paper's recipe reaches a hard loss of 0 at seed 23, which not every drawing does."""

LETTER_G = (
    "................",
    "...1111111111...",
    "...1111111111...",
    "...1111111111...",
    "..33............",
    "..33............",
    "..33............",
    "..33...4444444..",
    "..33...4444444..",
    "..33...4444444..",
    "..33.......444..",
    "..33.......444..",
    "...2222222222...",
    "...2222222222...",
    "................",
    "................",
)
"""16x16, with 46, 36 and 27 ones in red, green and blue, as the paper's. Drawn for this project, under its licence;
learned exactly at seed 23 as well."""

HEART = (
    "..........",
    ".11...11..",
    "1111.1111.",
    "111111111.",
    "111111111.",
    ".1111111..",
    "..11111...",
    "...111....",
    "....1.....",
    "..........",
)
"""10x10, 46 ones: not the paper's."""
