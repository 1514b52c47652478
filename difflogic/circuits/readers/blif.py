"""BLIF: gates as tables of rows, as ABC, yosys, SIS and our exports write them.

One model is read: `.inputs`, `.outputs`, `.names` with any number of inputs, and `.latch` with a first value of 0 or 1.
Source: *Berkeley Logic Interchange Format (BLIF)*, University of California, Berkeley (1992).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from difflogic.circuits.readers.signals import Signals
from difflogic.circuits.synthesis.xag import FALSE, TRUE, Builder
from difflogic.errors import CircuitError

MOST_LISTED = 8
"""Inputs up to which a table is built from all its values; a larger one is an OR of ANDs."""
_ROW = re.compile(r"([01-]*)\s*([01])")
_IGNORED = frozenset({".clock", ".area", ".delay", ".default_input_arrival", ".attr", ".param", ".cname"})


def read(text: str) -> Signals:
    """Return the signals of the only model in a text. Raises CircuitError."""
    signals = Signals(comment="\n".join(re.findall(r"#(.*)", text)))
    logical = re.sub(r"\\[ \t]*\n", " ", re.sub(r"#.*", "", text))
    # A command and the rows below it.
    for part in re.split(r"^[ \t]*(?=\.)", logical, flags=re.MULTILINE)[1:]:
        head, *rows = (line for line in map(str.strip, part.splitlines()) if line)
        command, *words = head.split()
        match command:
            case ".model" if signals.nodes or signals.inputs:
                raise CircuitError("The file has several models: flatten it, for example with `flatten` in yosys.")
            case ".inputs":
                signals.inputs |= {word: word for word in words}
            case ".outputs":
                signals.outputs += [(word, word) for word in words]
            case ".names" if words:
                *reads, name = words
                signals.drive(name, reads, _table(name, len(reads), rows))
            case ".latch":
                _latch(signals, words)
            case ".end":
                break
            case ".model" | ".names":
                pass
            case _ if command not in _IGNORED:
                raise CircuitError(f"{command:.40} is not read: expected gates as .names, and .latch.")
    return signals


def _latch(signals: Signals, words: Sequence[str]) -> None:
    """Add a latch: its next value, its name, perhaps a clock, and its first value."""
    if len(words) not in (3, 5) or words[-1] not in ("0", "1"):
        raise CircuitError(f"The latch {' '.join(words)!r:.60} must begin at 0 or 1.")
    after, name = words[:2]
    if name in signals.latches:
        raise CircuitError(f"The signal {name!r:.60} is driven twice.")
    signals.latches[name] = name, after, int(words[-1])


def _table(name: str, inputs: int, rows: Sequence[str]) -> partial[int]:
    """Return what builds a table of rows that are all 1, or all 0, where an input matches."""
    matches = [_ROW.fullmatch(row) for row in rows]
    cover = [match[1] for match in matches if match]
    values = {match[2] for match in matches if match}
    if len(cover) < len(rows) or len(values) > 1 or any(len(row) != inputs for row in cover):
        raise CircuitError(f"The rows of {name!r:.60} must have {inputs} signs 0, 1 or -, and all 1, or all 0, behind.")
    return partial(_built, cover, int("0" in values))


def _built(cover: Sequence[str], inverted: int, builder: Builder, literals: Sequence[int]) -> int:
    """Build an OR of rows, each an AND of literals, or its opposite."""
    if len(literals) > MOST_LISTED:
        ands = (
            reduce(
                builder.and_,
                (each ^ (sign == "0") for sign, each in zip(row, literals, strict=True) if sign != "-"),
                TRUE,
            )
            for row in cover
        )
        return reduce(builder.or_, ands, FALSE) ^ inverted
    table = np.full((2,) * len(literals), bool(inverted))
    for row in cover:
        table[tuple(slice(None) if sign == "-" else int(sign) for sign in row)] = not inverted
    return _decided(table, builder, literals)


def _decided(table: np.ndarray, builder: Builder, literals: Sequence[int]) -> int:
    """Build a table `[2, ..., 2]`: halves of it, as the first input is 0 or 1; of two inputs it is one gate."""
    if table.all() or not table.any():
        return int(table.any())
    if table.ndim <= 2:
        (f00, f01), (f10, f11) = (
            np.broadcast_to(table if table.ndim == 2 else table[:, None], (2, 2)).astype(int).tolist()
        )
        return builder.gate(8 * f00 + 4 * f01 + 2 * f10 + f11, literals[0], literals[-1])
    zero, one = table
    if (zero == one).all():
        return _decided(zero, builder, literals[1:])
    if (zero != one).all():
        return builder.xor(literals[0], _decided(zero, builder, literals[1:]))
    low, high = (_decided(half, builder, literals[1:]) for half in (zero, one))
    return builder.or_(builder.and_(literals[0] ^ 1, low), builder.and_(literals[0], high))
