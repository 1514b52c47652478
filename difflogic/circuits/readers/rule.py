"""A circuit without training: that of a rule, which is known as a table."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.symmetric import rebuilt_symmetric
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder
from difflogic.config.customise import load_rule
from difflogic.core import rules, wiring
from difflogic.errors import ConfigError
from difflogic.model.cell_netlist import CellNetlist


def named(path: Path) -> str | None:
    """The rule that is written where a path is expected, or the table that a file holds; None where neither is.

    What there is at a path goes first: a file that is called 110 is no rule.
    """
    if not path.exists() and (reason := rules.refusal(str(path))):
        raise ConfigError(reason)
    with suppress(ConfigError):
        if not path.exists():
            return rules.canonical(str(path))
        if path.is_file() and path.suffix in (".txt", ".npy"):
            return load_rule(path)
    return None


def rule_netlist(rule: str, periodic: bool) -> CellNetlist:
    """The rule as a circuit of one channel: of its decision diagram and its counts of neighbours what has fewer gates.

    In milliseconds, and not the smallest: that is what `simplify` searches for.
    """
    around = rules.neighbourhood(rule) or "moore"
    like = CellNetlist.build(1, periodic, [], [], [wiring.CENTRE], neighbourhood=around)
    diagram = _diagram(rule)
    return to_netlist(min(diagram, rebuilt_symmetric(diagram), key=lambda graph: len(graph.gates)), like)


def _diagram(rule: str) -> XAG:
    """The table of 512 entries, halved by one input after the other; equal parts of it are the same gates."""
    builder = Builder(wiring.PATCH)
    # The entry's number has the patch's first cell as its highest bit: halves of the table differ in that cell, so the
    # lowest bit is decided first.
    level = [TRUE if entry else FALSE for entry in rules.table(rule).tolist()]
    for patch in reversed(range(wiring.PATCH)):
        cell = 2 * (1 + patch)
        level = [
            zero if zero == one else builder.or_(builder.and_(cell, one), builder.and_(cell ^ 1, zero))
            for zero, one in zip(level[::2], level[1::2], strict=True)
        ]
    return builder.finish(level)
