"""Channels of a picture that are alike are learned once: a cell's others are copies, or stay dark.

A cat in magenta on black has red and blue alike, and no green. Who learns all three learns the cat twice over, which
takes far longer than once, since two channels have few gates in common near their outputs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist

DARK = -1


def sources(picture: Bits) -> list[int]:
    """Of each channel of `picture [H, W, C]` which of the different ones it is, counted from 0, or DARK."""
    known: dict[bytes, int] = {}
    return [
        known.setdefault(pattern.tobytes(), len(known)) if pattern.any() else DARK
        for pattern in np.moveaxis(picture, -1, 0)
    ]


def widened(netlist: CellNetlist, shown: list[int]) -> CellNetlist:
    """Return the circuit whose visible channels are these of its own, or DARK; its other channels stay.

    Where several are the same, the first is read where that was read before, and nothing reads the others.
    """
    # Of the channels a b h, of which h is hidden, and shown = [1, 0, DARK, 1] the new ones are b a - b h: the old ones
    # are now 1, 0 and 4.
    hidden = netlist.channels - netlist.visible
    channels = len(shown) + hidden
    places = [*map(shown.index, range(netlist.visible)), *range(len(shown), channels)]
    # The old number of a bit, of an input or a gate, is the index of the new one.
    inputs = wiring.PATCH * np.array(places)[:, None] + np.arange(wiring.PATCH)
    bits = np.concatenate([inputs.reshape(-1), wiring.PATCH * channels + np.arange(len(netlist.gates))])
    dark = wiring.PATCH * channels + len(netlist.gates)
    ends = bits[netlist.outputs].tolist()
    made = replace(netlist, channels=channels, visible=len(shown), origin=tuple(range(channels)))
    return made.with_gates(
        [*netlist.gates, 0],
        [*bits[netlist.wires], (0, 0)],
        [*(dark if each == DARK else ends[each] for each in shown), *ends[netlist.visible :]],
    )
