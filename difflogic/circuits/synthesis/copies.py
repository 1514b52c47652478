"""Copying of a trained channel to all identical channels of an image.

For example, a magenta cat on black has identical red and blue channels and a zero green one. Training both takes far
longer than training one, since two channels share few gates near their outputs.
"""

from dataclasses import replace

import numpy as np

from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist

DARK = -1


def sources(image: Bits) -> list[int]:
    """Return a number for each channel of `image [H, W, C]`: 0, 1, ..., shared by equal channels, or DARK if all 0."""
    numbers: dict[bytes, int] = {}
    channels = np.moveaxis(image, -1, 0)
    return [numbers.setdefault(bits.tobytes(), len(numbers)) if bits.any() else DARK for bits in channels]


def widened(netlist: CellNetlist, shown: list[int]) -> CellNetlist:
    """Return a circuit whose visible channels are copies of channels `shown`, or zeros for DARK; hidden ones remain."""
    # Channels a b h with h hidden and shown = [1, 0, DARK, 1] become b a - b h: a, b and h are now channels 1, 0 and
    # 4. Gates read only the first of several copies.
    hidden = netlist.channels - netlist.visible
    channels = len(shown) + hidden
    places = [*map(shown.index, range(netlist.visible)), *range(len(shown), channels)]
    # `bits[old]` is the new number of a bit, which is an input or a gate.
    inputs = wiring.PATCH * np.array(places)[:, None] + np.arange(wiring.PATCH)
    bits = np.concatenate([inputs.reshape(-1), wiring.PATCH * channels + np.arange(len(netlist.gates))])
    dark = wiring.PATCH * channels + len(netlist.gates)
    ends = bits[netlist.outputs].tolist()
    frame = replace(netlist, channels=channels, visible=len(shown), origin=tuple(range(channels)))
    outputs = [dark if source == DARK else ends[source] for source in shown] + ends[netlist.visible :]
    return frame.with_gates([*netlist.gates, 0], [*bits[netlist.wires], (0, 0)], outputs)
