"""Identical channels of an image, which are learned once and copied.

A cat in magenta on black has identical red and blue, and no green. To learn both takes far longer than one, since two
channels share few gates near their outputs.
"""

from dataclasses import replace

import numpy as np

from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist

DARK = -1


def sources(image: Bits) -> list[int]:
    """Return for each channel of `picture [H, W, C]` the number of its pattern, counted from 0, or DARK."""
    numbers: dict[bytes, int] = {}
    return [
        numbers.setdefault(pattern.tobytes(), len(numbers)) if pattern.any() else DARK
        for pattern in np.moveaxis(image, -1, 0)
    ]


def widened(netlist: CellNetlist, shown: list[int]) -> CellNetlist:
    """Return the circuit with these of its own channels as visible ones, or DARK; hidden channels stay."""
    # Channels a b h with h hidden and shown = [1, 0, DARK, 1] become b a - b h: the old ones are now 1, 0 and 4. Of
    # copies the first is read, the others by nothing.
    hidden = netlist.channels - netlist.visible
    channels = len(shown) + hidden
    places = [*map(shown.index, range(netlist.visible)), *range(len(shown), channels)]
    # The old number of a bit, of an input or a gate, is the index of the new one.
    inputs = wiring.PATCH * np.array(places)[:, None] + np.arange(wiring.PATCH)
    bits = np.concatenate([inputs.reshape(-1), wiring.PATCH * channels + np.arange(len(netlist.gates))])
    dark = wiring.PATCH * channels + len(netlist.gates)
    ends = bits[netlist.outputs].tolist()
    frame = replace(netlist, channels=channels, visible=len(shown), origin=tuple(range(channels)))
    return frame.with_gates(
        [*netlist.gates, 0],
        [*bits[netlist.wires], (0, 0)],
        [*(dark if source == DARK else ends[source] for source in shown), *ends[netlist.visible :]],
    )
