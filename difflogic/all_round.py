"""A start in which signals get everywhere: `all_round` of the configuration.

Where all gates pass A on, a kernel's output is one neighbour's bit, so that a signal moves one way only. Four kernels
with neighbours drawn at random rarely lead everywhere within the steps, and a cell that no signal reaches cannot learn
to differ from the others of its kind. Four diagonals and one side do: in `n + 1` steps to each cell within `n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import gates, prng

STREAM = 0x616C6C72
"""`fold_in` data of the turn and the mirror ("allr")."""
RING = np.array([1, 2, 5, 8, 7, 6, 3, 0])
"""The neighbours in a 3x3 patch clockwise, from the one above: sides are even, diagonals odd."""
BEGINNINGS = ((7,), (0, 1), (3,), (5,))
"""Of each kernel the places on the ring that it begins with, where nothing is turned or mirrored."""
KERNELS = len(BEGINNINGS)

Array = npt.NDArray[Any]


def aim(logits: Sequence[Array], wires: Sequence[Array], key: prng.Key) -> None:
    """Swap wires of the first layer, and set a last gate to OR, in place: perception as it begins.

    `logits[l]` float `[K, out, 16]`, every gate the pass-through; `wires[l]` int `[K, 2, out]`, the first layer
    `first_kernel`, whose row 0 has each neighbour once. Turned and mirrored by `key`.
    """
    turn, mirror = (int(word) for word in prng.random_bits(key, 2))
    for kernel, places in enumerate(BEGINNINGS):
        own = [layer[kernel] for layer in wires]
        last = logits[-1][kernel, 0]
        if len(places) > 1:
            last[[gates.PASS_THROUGH, gates.OR]] = last[[gates.OR, gates.PASS_THROUGH]]
        neighbours = own[0][0]
        for place, bit in zip(places, own[-1][:, 0], strict=False):
            here = _passed_on(own[:-1], int(bit))
            wanted = RING[(2 * turn + (-place if mirror & 1 else place)) % len(RING)]
            there = int(np.flatnonzero(neighbours == wanted)[0])
            neighbours[[here, there]] = neighbours[[there, here]]


def _passed_on(wires: Sequence[Array], bit: int) -> int:
    """The gate of the first layer whose bit pass-through gates hand on as that bit of the last layer's inputs."""
    for layer in reversed(wires[1:]):
        bit = int(layer[0, bit])
    return bit
