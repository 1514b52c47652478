"""A circuit from a rule that is known as a table."""

from __future__ import annotations

from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.xag import FALSE, TRUE, Builder
from difflogic.core import rules, wiring
from difflogic.model.cell_netlist import CellNetlist


def rule_netlist(rule: str, periodic: bool) -> CellNetlist:
    """The rule as a circuit of one channel: its table of 512 entries, halved by one input after the other."""
    builder = Builder(wiring.PATCH)
    # The entry's number has the patch's first cell as its highest bit: halves of the table differ in that cell, so the
    # lowest bit is decided first.
    level = [TRUE if entry else FALSE for entry in rules.table(rule).tolist()]
    for patch in reversed(range(wiring.PATCH)):
        cell = 2 * (1 + patch)
        level = [
            builder.or_(builder.and_(cell, one), builder.and_(cell ^ 1, zero))
            for zero, one in zip(level[::2], level[1::2], strict=True)
        ]
    like = CellNetlist.build(1, periodic, [], [], [wiring.CENTRE])
    return to_netlist(builder.finish(level), like)
