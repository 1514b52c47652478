"""Reader of BLIF, files of gates as truth tables that ABC, yosys, SIS and difflogic write.

It accepts one model: `.inputs`, `.outputs`, `.names` with any number of inputs, and `.latch` with an initial 0 or 1.
Source: *Berkeley Logic Interchange Format (BLIF)*, University of California, Berkeley (1992).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product

from difflogic.circuits.readers.signals import Row, Signals, row
from difflogic.errors import CircuitError
from difflogic.model.straight_line import FALSE, NOT_A, TRUE, A

_LINE = re.compile(r"([01-]*)\s*([01])")
_IGNORED = {".model", ".end", ".clock", ".area", ".delay", ".default_input_arrival", ".attr", ".param", ".cname"}


def read(text: str) -> Signals:
    """Parse the contents of a BLIF file with one model. Raises CircuitError if they are invalid or unsupported."""
    signals = Signals(comment="\n".join(re.findall(r"#(.*)", text)))
    logical = re.sub(r"\\[ \t]*\n", " ", re.sub(r"#.*", "", text))
    # Each part is a command followed by its rows.
    for part in re.split(r"^[ \t]*(?=\.)", logical, flags=re.MULTILINE)[1:]:
        head, *lines = (line for line in map(str.strip, part.splitlines()) if line)
        command, *words = head.split()
        match command:
            case ".model" if signals.inputs or signals.gates:
                raise CircuitError("Expected one model, got several: flatten the file, as with `flatten` in yosys.")
            case ".inputs":
                signals.inputs += words
            case ".outputs":
                signals.outputs += [(word, word) for word in words]
            case ".names" if words:
                signals.gates += _table(words[-1], words[:-1], lines)
            case ".latch":
                if len(words) not in (3, 5) or words[-1] not in ("0", "1"):
                    raise CircuitError(f"Expected IN OUT [TYPE CLOCK] 0|1 after .latch, got {' '.join(words)!r:.60}.")
                signals.latches.append((words[1], words[0], int(words[-1])))
            case _ if command not in _IGNORED:
                raise CircuitError(
                    f"Unsupported command {head!r:.60}: expected .names and .latch; use `flatten; dffunmap` in yosys."
                )
    return signals


def _table(name: str, reads: Sequence[str], lines: Sequence[str]) -> Iterator[Row]:
    """Yield the gates of a table: one gate for up to two signals in `reads`, else ANDs and ORs. Raises CircuitError."""
    matches = [match for match in map(_LINE.fullmatch, lines) if match and len(match[1]) == len(reads)]
    values = {match[2] for match in matches}
    if len(matches) < len(lines) or len(values) > 1:
        raise CircuitError(
            f"Each row of {name!r:.60} must have {len(reads)} characters 0, 1 or -, then 0 or 1, equal in all rows."
        )
    cover, inverted = [match[1] for match in matches], "0" in values
    if len(reads) <= 2:
        # The highest bit of a gate id is the value for 00.
        gate = 0
        for place, pair in enumerate(product("01", repeat=2)):
            is_hit = any(all(x in (y, "-") for x, y in zip(line, pair, strict=False)) for line in cover)
            gate |= (is_hit != inverted) * 8 >> place
        yield row(name, gate, *reads)
        return
    terms = [f"{name} row {place}" for place in range(len(cover))]
    for term, line in zip(terms, cover, strict=True):
        yield from _and(term, [(name, sign == "0") for name, sign in zip(reads, line, strict=True) if sign != "-"])
    # An OR is the inverse of an AND of inverses.
    *rows, last = _and(name, [(term, True) for term in terms])
    yield from rows
    yield {**last, "gate": int(last["gate"]) ^ (FALSE if inverted else TRUE)}


def _and(name: str, literals: Sequence[tuple[str, bool]]) -> Iterator[Row]:
    """Yield a chain of gates for the signal `name`, the AND of `literals`: signals, each with True if inverted."""
    if not literals:
        yield row(name, TRUE)
        return
    (result, is_inverted), *rest = literals
    if not rest:
        yield row(name, NOT_A if is_inverted else A, result)
    for place, (signal, inverted) in enumerate(rest, 1):
        own = name if place == len(rest) else f"{name} {place}"
        yield row(own, 1 << 2 * is_inverted + inverted, result, signal)
        result, is_inverted = own, False
