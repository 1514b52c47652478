"""Persistent images: with a clock and a latch in each cell, the image remains, and regrows after damage.

All cells count the steps from the initial state, in which all bits are 0. At the last step they latch their visible
channels and clear their hidden channels, so that the state repeats. If damage sets cells to 0, there are unlatched
cells next to latched ones, which starts an alarm. The alarm spreads by one cell per step, with a clock. All cells end
the alarm at the same step, with all bits 0. This is the initial state, from which the image grows again.

Example: an image of 12x12 cells grows in 12 steps, and a square is set to 0 at step 20. The alarm ends at step 32, when
it has reached every cell. At step 44 the image is complete again.
"""

from dataclasses import replace
from functools import reduce
from itertools import count

import numpy as np

from difflogic.circuits.synthesis.cell import Cell, neighbour
from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.xag import Builder
from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist

ALL = range(wiring.PATCH)
SQUARE, PART = 3, 1 << 9
"""Side of a damaged square in cells, and maximum number of damaged cells in all grids simulated at once."""
CONTROL = 2
"""Number of added channels that precede those of the clock: the latch and the alarm."""


def held(netlist: CellNetlist, steps: int) -> CellNetlist:
    """Return a circuit whose visible channels, `steps` steps after an initial state of zeros, no longer change."""
    cell = Cell.of(netlist).without_unseen_channels()
    channels, (taps, codes) = len(cell.origin), clock(steps)
    latch, alarm, first = channels, channels + 1, channels + CONTROL
    builder = Builder(wiring.PATCH * (first + len(codes[0])))

    def near(channel: int) -> int:
        return reduce(builder.or_, (neighbour(channel, place) for place in ALL))

    def both(*literals: int) -> int:
        return reduce(builder.and_, literals)

    is_latched = neighbour(latch, wiring.CENTRE)
    is_calm = both(near(alarm) ^ 1, both(is_latched ^ 1, near(latch)) ^ 1)
    # The clock of a latched cell is 0 and all other clocks are equal, so that an OR of neighbours copies the time.
    time = [near(first + bit) for bit in range(len(codes[0]))]
    is_last = both(*(bit ^ 1 ^ value for bit, value in zip(time, codes[steps - 1], strict=True)))
    goes_on = both(both(is_latched, is_calm) ^ 1, is_last ^ 1)
    following = [builder.xor(time[taps[0]], time[taps[1]]) ^ 1, *time[:-1]]
    grows, stays = both(is_calm, is_latched ^ 1), both(is_calm, is_latched)
    outputs = builder.embed(cell.graph, [neighbour(channel, place) for channel in range(channels) for place in ALL])
    outputs = [both(grows, output) for output in outputs]
    for channel in range(cell.visible):
        outputs[channel] = builder.or_(outputs[channel], both(stays, neighbour(channel, wiring.CENTRE)))
    control = [both(is_calm, builder.or_(is_latched, is_last)), both(is_calm ^ 1, is_last ^ 1)]
    outputs += [*control, *(both(goes_on, bit) for bit in following)]
    frame = replace(netlist, channels=len(outputs), origin=tuple(range(len(outputs))))
    return to_netlist(builder.finish(outputs), frame)


def returns(netlist: CellNetlist, target: Bits, steps: int) -> float | None:
    """Return the share of damaged squares after which `target` regrows; None if the undamaged image changes."""
    channels = target.shape[-1]
    *_, one, two = states = netlist.rollout(np.zeros((*target.shape[:2], netlist.channels), np.uint8), 2 * steps)
    if not np.array_equal(one, two) or not (states[steps:, ..., :channels] == target).all():
        return None
    cells = np.arange(two[..., 0].size).reshape(target.shape[:2])
    places = np.lib.stride_tricks.sliding_window_view(cells, (SQUARE, SQUARE))
    hits = 0
    for part in np.array_split(places.reshape(-1, SQUARE**2), -(-places.size // PART)):
        damaged = np.repeat(two.reshape(1, -1, netlist.channels), len(part), axis=0)
        damaged[np.arange(len(part))[:, None], part] = 0
        # Alarm and growth take `steps` steps each; one step later all other channels are 0.
        *_, last = netlist.steps(damaged.reshape(-1, *two.shape), 2 * steps + 1)
        hits += int((last == two).all(axis=(1, 2, 3)).sum())
    return hits / (places.size // SQUARE**2)


def clock(steps: int) -> tuple[tuple[int, int], list[tuple[int, ...]]]:
    """Return a shift register of at least `steps` states: the two bits whose XNOR is shifted in, and `steps` states."""
    for bits in count(2):
        for tap in range(bits - 1):
            states: list[tuple[int, ...]] = [(0,) * bits]
            while (
                len(states) < steps and (new := (1 ^ states[-1][tap] ^ states[-1][-1], *states[-1][:-1])) != states[0]
            ):
                states.append(new)
            if len(states) == steps:
                return (tap, bits - 1), states
    raise AssertionError
