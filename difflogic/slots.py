"""A netlist as a short program over few slots: what an interpreter of gates runs.

Only gates that an output depends on are computed, and a slot is used again once its value has been read for the
last time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from difflogic.netlist import Netlist
from difflogic.straight_line import lines, read_inputs

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SlotProgram:
    """Input `patches[i]`, `9*channel + patch`, goes to slot `i`; then the gates in order; then `outputs` are read."""

    patches: Index
    """int64 `[p]`."""
    code: Index
    """int64 `[n, 4]`: gate id, the slots of a and b, and the slot that its value goes to, maybe one of them."""
    outputs: Index
    """int64 `[C]`: slots."""
    slots: int


def slot_program(netlist: Netlist) -> SlotProgram:
    """Slots are handed out in order, the one freed last first."""
    patches, gates = read_inputs(netlist), lines(netlist)
    last_read = {bit: line.bit for line in gates for bit in line.reads}
    last_read |= dict.fromkeys(netlist.outputs.tolist(), len(netlist.gates) + netlist.inputs)
    slot = {bit: index for index, bit in enumerate(patches)}
    free: list[int] = []
    slots = len(patches)
    code = []
    for line in gates:
        a, b = ([slot[bit] for bit in line.reads] * 2 or [0, 0])[:2]
        free.extend(slot[bit] for bit in line.reads if last_read[bit] == line.bit)
        if not free:
            free.append(slots)
            slots += 1
        slot[line.bit] = free.pop()
        code.append((line.gate, a, b, slot[line.bit]))
    return SlotProgram(
        np.array(patches, dtype=np.int64),
        np.array(code, dtype=np.int64).reshape(-1, 4),
        np.array([slot[output] for output in netlist.outputs.tolist()], dtype=np.int64),
        slots,
    )
