"""A smaller circuit that shows the same from its own start, on one grid, in every step for ever.

All cells fire, so the start has one rollout, and as a grid has a finite number of states they come again some day. What
happens until then is all that ever happens, and the circuit only has to be right there. A letter of 64 channels, on
16x16 cells with nothing around it, is still from step 33 on. Until then at most 8,704 neighbourhoods occur (34 states
of 256 cells), of 2^576.

The proof needs nothing but both circuits: they are followed side by side until *both* states come again at the same
time. From there on all repeats, so what was shown until then was shown for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.behaviour import Rollouts, prune
from difflogic.circuits.synthesis.cell import Cell
from difflogic.circuits.synthesis.prove import Equivalence
from difflogic.circuits.synthesis.simplify import OnPass, Search, Simplified, silent, structural
from difflogic.core.bits import Bits
from difflogic.errors import LimitError, UsageError
from difflogic.model.cell_netlist import CellNetlist

MOST_UPDATES = 1_000_000
"""Cells times steps until a state comes again: their neighbourhoods take a gigabyte if they have a hundred channels."""


def of_size(netlist: CellNetlist, size: tuple[int, int]) -> CellNetlist:
    """The netlist with its start on `(height, width)` cells.

    Raises UsageError without a start that is always the same, or where cells fire at random, and LimitError where the
    grid is too large, or no state comes again in time.
    """
    height, width = size
    if not height or not width:
        raise UsageError(f"`size` must be at least 1 cell wide and 1 high, got {width}x{height}.")
    if height * width > MOST_UPDATES:
        raise LimitError(f"`size` must have at most {MOST_UPDATES} cells, got {width}x{height}: give a smaller one.")
    scenario = netlist.scenario
    if scenario is not None and scenario.fire_rate < 1:
        raise UsageError(
            "`size` needs a circuit that updates all cells in each step, but this one updates cells at random: leave "
            "`size` out, since `from_start` alone holds for any order of updates."
        )
    if scenario is not None:
        netlist = replace(netlist, scenario=replace(scenario, height=height, width=width))
    # A channel that nobody sees may count for ever.
    _repetition(structural(netlist))
    return netlist


def on_own_grid(netlist: CellNetlist, on_pass: OnPass = silent) -> Simplified[CellNetlist]:
    """The smaller netlist with the proof that it shows the same on its grid; `on_pass` hears of each pass.

    `netlist` is one of those that `of_size` lets pass.
    """
    # Every step is compared, and not that of the task alone: a chip shows each of them.
    steps = _repetition(netlist)
    rollouts = Rollouts(netlist, invariant.start_of(netlist)[None], None, steps, tuple(range(steps + 1)))
    search = Search(Cell.of(netlist), on_pass)
    prune(search, rollouts, lambda cell: proved(netlist, cell.netlist(netlist)).equal is True)
    return search.proved(netlist, search.cell.netlist(netlist), proved)


def proved(one: CellNetlist, other: CellNetlist) -> Equivalence:
    """Follow both from their starts until both states come again; undecided where they do not in time."""
    judge, step, height, width = "difflogic", 0, 0, 0
    try:
        for step, (a, b) in enumerate(_states(one, other)):
            if not np.array_equal(a[..., : one.visible], b[..., : other.visible]):
                return Equivalence(judge, False, f"they differ at step {step}")
            height, width = a.shape[1:3]
    except LimitError as error:
        return Equivalence(judge, None, str(error))
    how = f"on {width}x{height} cells by following both until step {step + 1}, where they are in an earlier state"
    return Equivalence(judge, True, how)


def _repetition(netlist: CellNetlist) -> int:
    """Return the first step whose state is an earlier one. Raises LimitError."""
    return sum(1 for _ in _states(netlist))


def _states(*netlists: CellNetlist) -> Iterator[tuple[Bits, ...]]:
    """The states `[1, H, W, C]` of circuits on equal grids, step by step until all come again at the same time.

    Raises LimitError where they do not within MOST_UPDATES.
    """
    # Two circuits with periods of 2 and 3 are both where they were after 6 steps: their states are told apart together.
    starts = [invariant.start_of(each)[None] for each in netlists]
    height, width = starts[0].shape[1:3]
    steps, seen = max(1, MOST_UPDATES // (height * width)), set()
    rollouts = [chain([start], each.steps(start, steps)) for each, start in zip(netlists, starts, strict=True)]
    for states in zip(*rollouts, strict=True):
        # A digest of 256 bits stands for the states themselves, which would fill the memory.
        digest = hashlib.blake2b(b"".join(state.tobytes() for state in states), digest_size=32).digest()
        if digest in seen:
            return
        seen.add(digest)
        yield states
    raise LimitError(
        f"No state repeats within {steps} steps on {width}x{height} cells, so the proof cannot cover all later steps: "
        "leave `size` out, or use `task` for the trained steps alone."
    )
