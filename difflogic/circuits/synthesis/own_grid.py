"""Simplification for a single initial state on a grid of one size, valid in all steps.

If all cells fire, the initial state has one rollout. Its states repeat after some step, and the circuit must be correct
only until then. Example: a letter with 64 channels on 16x16 cells does not change after step 33, so at most 8,704 of
2^576 neighbourhoods occur. The proof simulates both circuits until the *pair* of their states repeats.
"""

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
"""Maximum number of cells times steps until a state repeats; at 100 channels, their neighbourhoods take a gigabyte."""


def of_size(netlist: CellNetlist, size: tuple[int, int]) -> CellNetlist:
    """Return the netlist with the grid of its scenario changed to `size`, `(height, width)`.

    Raises UsageError if the initial state or the firing of cells is random, or LimitError if no state repeats in time.
    """
    height, width = size
    if not height or not width:
        raise UsageError(f"`size` must be at least 1 cell wide and 1 high, got {width}x{height}.")
    if height * width > MOST_UPDATES:
        raise LimitError(f"`size` must have at most {MOST_UPDATES} cells, got {width}x{height}: use a smaller one.")
    scenario = netlist.scenario
    if scenario is not None and scenario.fire_rate < 1:
        raise UsageError(
            "`size` requires a circuit that updates all cells in each step, but this one updates random cells: omit "
            "`size`, since `from_start` alone is valid for any order of updates."
        )
    if scenario is not None:
        netlist = replace(netlist, scenario=replace(scenario, height=height, width=width))
    # Unseen channels are removed, since a channel that keeps counting might never repeat.
    _repetition(structural(netlist))
    return netlist


def on_own_grid(netlist: CellNetlist, on_pass: OnPass = silent) -> Simplified[CellNetlist]:
    """Return the netlist simplified for its initial state and grid size, with a proof for every step."""
    steps = _repetition(netlist)
    rollouts = Rollouts(netlist, invariant.start_of(netlist)[None], None, steps, tuple(range(steps + 1)))
    search = Search(Cell.of(netlist), on_pass)
    prune(search, rollouts, lambda cell: proved(netlist, cell.netlist(netlist)).equal is True)
    return search.proved(netlist, search.cell.netlist(netlist), proved)


def proved(one: CellNetlist, other: CellNetlist) -> Equivalence:
    """Compare visible channels step by step until the pair of states repeats; undecided after too many steps."""
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
    """Return the first step whose state has occurred before. Raises LimitError if there is none in time."""
    return sum(1 for _ in _states(netlist))


def _states(*netlists: CellNetlist) -> Iterator[tuple[Bits, ...]]:
    """Yield the states `[1, H, W, C]` of all circuits, step by step, until they repeat together.

    Periods 2 and 3 repeat together after 6 steps. Raises LimitError if this exceeds MOST_UPDATES.
    """
    starts = [invariant.start_of(netlist)[None] for netlist in netlists]
    height, width = starts[0].shape[1:3]
    steps, digests = max(1, MOST_UPDATES // (height * width)), set()
    rollouts = [chain([start], netlist.steps(start, steps)) for netlist, start in zip(netlists, starts, strict=True)]
    for states in zip(*rollouts, strict=True):
        # Only 256-bit digests are stored, since the states would fill the memory.
        digest = hashlib.blake2b(b"".join(state.tobytes() for state in states), digest_size=32).digest()
        if digest in digests:
            return
        digests.add(digest)
        yield states
    raise LimitError(
        f"No state repeats within {steps} steps on {width}x{height} cells, so the proof cannot cover all later steps: "
        "omit `size`, or use `task` to preserve only the trained steps."
    )
