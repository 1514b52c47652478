"""Invariants: clauses of one or two channels that are true in every cell of all states after the initial state.

A clause has two literals `2*channel + inverted`, at least one of which is true. Clauses are true in all cells of the
initial state and outside the grid. SAT proves that if they are true in a neighbourhood, they are true in its centre
after a step. A cell that does not fire does not change, so clauses are true in all steps, on any grid, whichever
cells fire. Source: van Eijk, *Sequential equivalence checking based on structural similarities* (2000), for clauses.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.cell import neighbour
from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.sat import Clause, Solver
from difflogic.circuits.synthesis.xag import rebuilt
from difflogic.core import wiring
from difflogic.core.bits import Bits, Words, pack_bits
from difflogic.core.neighbourhoods import patches
from difflogic.errors import ToolError, UsageError
from difflogic.model.cell_netlist import CellNetlist

FIRE_RATE = 0.6
"""Fire rate of the asynchronous rollout that clauses are sampled from."""
LEAST_STEPS = 32
"""Minimum number of steps of a rollout, which otherwise has twice as many steps as the task."""
SAMPLES = 4096
"""Maximum number of neighbourhoods that are sampled from the rollouts."""
MOST_CHANNELS = 256
"""Maximum number of channels of a circuit, since more channels have too many pairs."""
_SEED = 11


@dataclass(frozen=True, eq=False)
class Invariant:
    """Proved clauses, each a pair of channel literals, and sampled neighbourhoods, uint64 `[9*C, N]`."""

    clauses: tuple[tuple[int, int], ...]
    samples: Words

    def on_inputs(self, cells: int = wiring.PATCH) -> list[Clause]:
        """Return the clauses for each cell in a neighbourhood of `cells` cells, as input literals of a graph."""
        return [(in_cell(a, cell, cells), in_cell(b, cell, cells)) for a, b in self.clauses for cell in range(cells)]

    def replacements(self) -> dict[int, int]:
        """Return a mapping from redundant channels to -2 (constant 0), -1 (constant 1) or an equal earlier literal."""
        # Clauses (a or NOT b), (NOT a or b) mean a = b; (a or b), (NOT a or NOT b) mean a = NOT b; (a or a): a = 1.
        # By (2, 5) and (3, 4) channels 1 and 2 are equal, and channel 2 is replaced by channel 1: {2: 2}.
        clauses, literals = set(self.clauses), dict[int, int]()
        for channel in sorted({literal >> 1 for clause in self.clauses for literal in clause}):
            plain, inverted = 2 * channel, 2 * channel + 1
            if (plain, plain) in clauses or (inverted, inverted) in clauses:
                literals[channel] = -1 if (plain, plain) in clauses else -2
                continue
            for earlier in range(channel):
                same = (2 * earlier, inverted) in clauses and (2 * earlier + 1, plain) in clauses
                opposite = (2 * earlier, plain) in clauses and (2 * earlier + 1, inverted) in clauses
                if earlier not in literals and (same or opposite):
                    literals[channel] = 2 * earlier + int(opposite)
                    break
        return literals


def find(netlist: CellNetlist) -> Invariant:
    """Return clauses that are true in rollouts and proved by induction. Raises UsageError without an initial state."""
    start = start_of(netlist)
    if netlist.channels > MOST_CHANNELS:
        raise UsageError(
            f"`from_start` supports circuits of at most {MOST_CHANNELS} channels, got {netlist.channels}: omit it."
        )
    cells, samples = _seen(netlist, start)
    # The matrix product counts, for each pair of literals, the cells in which both are false.
    false = np.stack([1 - cells, cells], axis=-1).reshape(len(cells), -1).astype(np.float32)
    pairs = np.argwhere(np.triu(false.T @ false == 0))
    return Invariant(tuple(_inductive(netlist, pairs[pairs[:, 0] ^ 1 != pairs[:, 1]])), samples)


def start_of(netlist: CellNetlist) -> Bits:
    """Return the initial state `[H, W, C]` of a circuit. Raises UsageError if it is unknown or random."""
    scenario = netlist.scenario
    start = None if scenario is None else scenario.grid(netlist.origin)
    if start is None:
        how = "a circuit without initial state" if scenario is None else "a random initial state"
        raise UsageError(f"`from_start` needs a circuit with a fixed initial state, got {how}.")
    return start


def base(netlist: CellNetlist, start: Bits) -> Bits:
    """Return the distinct cell states in `start` and outside the grid, uint8 `[n, C]`."""
    outside = np.zeros((1, netlist.channels), dtype=np.uint8)
    return np.unique(np.concatenate([start.reshape(-1, netlist.channels), outside]), axis=0)


def hold(clauses: tuple[tuple[int, int], ...], cells: Bits) -> bool:
    """Return whether every clause is true in each of the cell states `cells`, `[n, C]`."""
    # Columns are numbered like literals: `2*channel` is the channel and `2*channel + 1` its inverse.
    literals = np.stack([cells, 1 - cells], axis=-1).reshape(len(cells), -1)
    pairs = np.array(clauses, dtype=np.int64).reshape(-1, 2)
    return bool((literals[:, pairs[:, 0]] | literals[:, pairs[:, 1]]).all())


def in_cell(literal: int, cell: int, cells: int = wiring.PATCH) -> int:
    """Return the graph's input literal for a channel literal in cell number `cell` of a neighbourhood."""
    return neighbour(literal >> 1, cell, cells) ^ (literal & 1)


def _seen(netlist: CellNetlist, start: Bits) -> tuple[Bits, Words]:
    """Return distinct cell states, uint8 `[n, C]`, and sampled neighbourhoods of two rollouts, one asynchronous."""
    rng = np.random.default_rng(_SEED)
    steps = LEAST_STEPS if netlist.scenario is None else max(LEAST_STEPS, 2 * netlist.scenario.steps)
    cells, columns = [base(netlist, start)], []
    for rate in (1.0, FIRE_RATE):
        fires = rng.random((steps, *start.shape[:2], 1)) < rate
        states = [start[None], *netlist.steps(start[None], steps, fires)]
        columns += [patches(state, netlist.periodic) for state in states[:-1]]
        cells += [np.unique(state.reshape(-1, netlist.channels), axis=0) for state in states[1:]]
    samples = np.concatenate(columns, axis=1)
    chosen = rng.permutation(samples.shape[1])[:SAMPLES]
    return np.unique(np.concatenate(cells), axis=0), pack_bits(samples[:, chosen])


def _inductive(netlist: CellNetlist, clauses: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the clauses of the largest inductive subset: drop all that a counterexample violates, until none exists."""
    graph = rebuilt(to_xag(netlist))
    with Solver(graph) as solver:
        outputs = [solver.variable(output) for output in graph.outputs]
        after = np.array([sign * output for output in outputs for sign in (1, -1)])
        # Each clause has two variables: `assumed` makes it true in all nine cells, `broken` makes it false in the next
        # state. The solver searches for a neighbourhood with all assumed clauses true and one broken. A broken
        # clause is no longer assumed, which may break other clauses.
        assumed = []
        broken = []
        for a, b in clauses.tolist():
            assumed.append(solver.new())
            broken.append(solver.new())
            for patch in range(wiring.PATCH):
                solver.add([-assumed[-1], *(solver.variable(in_cell(literal, patch)) for literal in (a, b))])
            for implied in (assumed[-1], -after[a], -after[b]):
                solver.add([-broken[-1], int(implied)])
        solver.add(broken)
        alive = np.ones(len(clauses), dtype=bool)
        while solver.solve([assumed[index] for index in np.flatnonzero(alive)]):
            true = solver.true()
            holds = np.array([value in true if value > 0 else -value not in true for value in after.tolist()])
            dead = alive & ~holds[clauses].any(axis=1)
            if not dead.any():
                raise ToolError("The SAT solver returned an invalid counterexample: omit `from_start`.")
            for index in np.flatnonzero(dead):
                solver.add([-assumed[index]])
            alive &= ~dead
        yield from map(tuple, clauses[alive].tolist())
