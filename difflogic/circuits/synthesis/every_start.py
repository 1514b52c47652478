"""Proof that a circuit shows its target after every initial state, by three-valued simulation or SAT.

A 16x16 grid with 8 channels has 2^2048 initial states. The proof simulates all at once: every cell of every channel
begins as *unknown*, and cells compute with 0, 1 and unknown. An AND of an unknown with 0 is 0, whatever the unknown is,
and outside the grid of a zero boundary cells are 0: from there known values spread.

    a row of four cells, each of which becomes (left neighbour AND itself), boundary 0
    step 0:  ? ? ? ?        nothing is known
    step 1:  0 ? ? ?        the first cell reads 0 on its left
    step 2:  0 0 ? ?        the second now reads that 0
    step 4:  0 0 0 0        each of the 16 initial states reaches this state, and keeps it

Known values never change: if more inputs of a step are known, at least the same outputs are known. By induction, a
value that is known after a step is known and unchanged after the next step. The simulation ends when a step adds no
known value, and known visible channels never change again.

A cell's next value is known if it is equal for all values of its unknown inputs. Decision diagrams decide this exactly
(`Forest.possible`). A circuit too large for them is simulated gate by gate (Kleene; `BitProgram.possible_bits`), which
finds `x XOR x` unknown, not 0.

If a visible value remains unknown, nothing is proved, since unknown cells count as independent, even if equal. Then SAT
searches for an initial state that is wrong at the compared step. If there is none, all later steps are proved too: a
later state is the state at the compared step of another rollout, which begins later.

Source of the method: S. C. Kleene, Introduction to metamathematics (1952), section 64; R. E. Bryant, Symbolic
simulation (1990), for circuits.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from difflogic.circuits.synthesis import convert
from difflogic.circuits.synthesis.bdd import Forest
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, mapped, rebuilt
from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.errors import CircuitError, LimitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import read_inputs
from difflogic.system.brief import brief

THREE_VALUED, SAT, RANDOM = "three-valued simulation", "SAT", "random starts"

RANDOM_STARTS, SEED = 1024, 11
"""Number and seed of random initial states tested before SAT, since a circuit that is often wrong needs no solver."""
MOST_READ, MOST_DECISIONS, MOST_PER_GATE = 128, 2000, 8
"""Maximum inputs, decision diagram nodes, and live nodes per gate of a circuit; others are simulated gate by gate."""
CONFLICTS = 2000
"""Number of SAT solver conflicts between two checks of the time limit."""
MOST_NODES = 30_000_000
"""Maximum number of gates of an unrolled circuit, for which the solver needs about ten gigabytes."""
UNLIKELY = 1e-9
"""Maximum probability that an asynchronous automaton needs more steps than reported."""


@dataclass(frozen=True, eq=False)
class EveryStart:
    """Result of a proof for all initial states on one grid."""

    proved: bool | None
    """True if proved, False if refuted by `counterexample`, None if undecided."""
    method: str
    """Name of the method, such as `SAT`; `random starts` if a random initial state is the counterexample."""
    reason: str
    """Explanation of the result, as part of a sentence."""
    from_step: int | None = None
    """If proved, number of steps after which every rollout shows the target permanently."""
    counterexample: Bits | None = None
    """Initial state `[H, W, C]` whose rollout does not show the target at the compared step."""

    __repr__ = brief


def prove_every_start(
    netlist: CellNetlist, target: Bits, steps: int, seconds: float | None, synchronous: bool = True
) -> EveryStart:
    """Decide if every initial state leads to `target`, uint8 `[H, W, L]`, after `steps` steps on a grid of its size.

    Args:
        netlist: The circuit.
        target: Expected visible channels.
        steps: Number of steps after which the state is compared with `target`.
        seconds: Time limit in seconds of the search for a counterexample; None for no search.
        synchronous: True if all cells fire in each step. Otherwise `from_step` counts rounds, in each of which every
            cell fires at least once. All values that are known after k synchronous steps are known after k rounds,
            since a cell that does not fire retains its known values.
    """
    lean = convert.lean(netlist)
    step, wrong, unknown, expected = 0, 0, 0, _numbers(target)
    for values in _known(lean, *target.shape[:2]):
        shown = list(zip(*values, expected, strict=False))  # the visible channels come first
        unknown = sum((can ^ must).bit_count() for can, must, _ in shown)
        wrong = sum((must & ~want | want & ~can).bit_count() for can, must, want in shown)
        if wrong or not unknown:
            break
        step += 1
    if wrong:
        reason = f"{wrong} of {target.size} values are known from step {step} on, and wrong, for every initial state"
        late = step > steps or not synchronous  # in these cases no single step is proved wrong
        anything = None if late else np.zeros((*target.shape[:2], netlist.channels), dtype=np.uint8)
        return EveryStart(False, THREE_VALUED, reason, counterexample=anything)
    if not unknown:
        return EveryStart(True, THREE_VALUED, "the complete image is known", from_step=step)
    unknown_values = f"{unknown} of {target.size} values stay unknown"
    reason = f"{unknown_values} in three-valued simulation, which ended after {step} steps"
    if not synchronous or seconds is None:
        return EveryStart(None, THREE_VALUED, reason)
    return find_wrong_start(lean, target, steps, seconds, reason)


def check_fits(netlist: CellNetlist, height: int, width: int, available: int | None) -> None:
    """Raise LimitError if a proof on such a grid needs more than `available` bytes of memory."""
    # Patches, and for each cell two bits per gate, or per node of decision diagrams.
    bits, gates = wiring.PATCH * netlist.channels, convert.gate_count(netlist)
    nodes = min(MOST_PER_GATE * gates, max(gates, MOST_DECISIONS))
    needed = height * width * (4 * bits + 2 * (bits + nodes) // 8)
    if available is not None and needed > available:
        raise LimitError(
            f"A proof on {width}x{height} cells takes {needed / 1e9:.3g} GB of memory, "
            f"but {available / 1e9:.3g} GB are free: use a smaller grid with `size`."
        )


def asynchronous_steps(rounds: int, cells: int, fire_rate: float) -> int:
    """Return a number of steps that suffice for `rounds` rounds with a probability of at least 1 - UNLIKELY.

    In each round every cell fires at least once. A cell that fires with probability p in each step does not fire in s
    steps with probability (1 - p)^s, so a round takes more than s steps with probability at most `cells * (1 - p)^s`.
    """
    if fire_rate == 1:
        return rounds
    return rounds * math.ceil(math.log(UNLIKELY / (rounds * cells)) / math.log(1 - fire_rate))


def _known(netlist: CellNetlist, height: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield for each step the cells that can be 1 and those that must be 1, each as one integer per channel.

    Bits of an integer, lowest first, are cells row by row. The iterator ends when a step adds no known value.
    """
    cells, reads = (1 << height * width) - 1, read_inputs(netlist)
    forest = None
    if len(reads) <= MOST_READ:
        with suppress(CircuitError):
            forest = Forest(netlist, reads, MOST_DECISIONS)
    if forest and len(forest.live) > MOST_PER_GATE * len(netlist.gates):
        forest = None
    can, must = [cells] * netlist.channels, [0] * netlist.channels
    while True:
        yield can, must
        zero, one = [0] * netlist.inputs, [0] * netlist.inputs
        for bit in reads:
            channel, patch = divmod(bit, wiring.PATCH)
            # Cells outside the grid are known to be 0: they neither can nor must be 1.
            one[bit], is_one = (_seen(grid[channel], patch, height, width, netlist.periodic) for grid in (can, must))
            zero[bit] = cells ^ is_one
        if forest:
            can_be_zero, can_be_one = forest.possible([zero[bit] for bit in reads], [one[bit] for bit in reads], cells)
        else:
            bits = netlist.program.possible_bits(zero, one)
            can_be_zero, can_be_one = ([values[bit] for bit in netlist.outputs] for values in bits)
        before = can, must
        can, must = can_be_one, [cells ^ value for value in can_be_zero]
        if before == (can, must):
            return


def _seen(grid: int, patch: int, height: int, width: int, periodic: bool) -> int:
    """Return each cell's neighbour at patch position `patch`: the bits `grid` shifted by at most one row and column."""
    row, rows, across = (1 << width) - 1, (height - 1) * width, width - 1
    first, last = _first_and_last_column(height, width)
    if patch // 3 == 0:
        grid = (grid & ((1 << rows) - 1)) << width | (grid >> rows if periodic else 0)
    elif patch // 3 == 2:
        grid = grid >> width | ((grid & row) << rows if periodic else 0)
    if patch % 3 == 0:
        return (grid & ~last) << 1 | ((grid & last) >> across if periodic else 0)
    if patch % 3 == 2:
        return (grid & ~first) >> 1 | ((grid & first) << across if periodic else 0)
    return grid


@lru_cache(maxsize=8)
def _first_and_last_column(height: int, width: int) -> tuple[int, int]:
    # Ones in all cells divided by ones in one row give a 1 in each row. The result of this slow division is cached.
    first = ((1 << height * width) - 1) // ((1 << width) - 1)
    return first, first << (width - 1)


def _numbers(grid: Bits) -> list[int]:
    """Pack a grid `[H, W, C]` into one integer per channel, with one bit per cell."""
    planes = (np.packbits(plane, bitorder="little") for plane in np.moveaxis(grid, 2, 0))
    return [int.from_bytes(plane.tobytes(), "little") for plane in planes]


def _grid(numbers: Sequence[int], height: int, width: int) -> Bits:
    """Unpack a grid, uint8 `[H, W, C]`, from one integer per channel: the inverse of `_numbers`."""
    size = -(-height * width // 8)
    planes = [np.frombuffer(number.to_bytes(size, "little"), dtype=np.uint8) for number in numbers]
    bits = np.unpackbits(np.stack(planes), axis=1, count=height * width, bitorder="little")
    return np.moveaxis(bits.reshape(-1, height, width), 0, 2)


def find_wrong_start(
    netlist: CellNetlist, target: Bits, steps: int, seconds: float, reason: str = "the circuit is large"
) -> EveryStart:
    """Search for an initial state that does not lead to `target` after `steps` steps, or prove that there is none.

    `netlist` must be a result of `convert.lean`. The explanation of an undecided result begins with `reason`.
    """
    end = time.monotonic() + seconds
    shape = (*target.shape[:2], netlist.channels)
    starts = np.random.default_rng(SEED).integers(0, 2, (RANDOM_STARTS, *shape), dtype=np.uint8)
    *_, last = netlist.steps(starts, steps)
    wrong = (last[..., : target.shape[-1]] != target).any(axis=(1, 2, 3))
    if wrong.any():
        reason = f"{int(wrong.sum())} of {RANDOM_STARTS} random starts are wrong at step {steps}"
        return EveryStart(False, RANDOM, reason, counterexample=starts[int(wrong.argmax())])
    graph = unroll(netlist, target, steps, end)
    if graph is None:
        return EveryStart(None, SAT, f"{reason}; unrolled over {steps} steps the circuit is too large for the time")
    answer = _satisfied(graph, end)
    if answer is None:
        return EveryStart(None, SAT, f"{reason}; the SAT solver had not decided after {seconds:g} s")
    if answer is False:
        return EveryStart(True, SAT, f"no start is wrong at step {steps}", from_step=steps)
    return EveryStart(False, SAT, f"a start is wrong at step {steps}", counterexample=answer.reshape(shape))


def unroll(netlist: CellNetlist, target: Bits, steps: int, end: float) -> XAG | None:
    """Return the graph from the bits of an initial state to one output per value of `target`, 1 if that value is wrong.

    Return None if the graph has more than MOST_NODES gates, or at `end`, a time of the monotonic clock.
    """
    height, width = target.shape[:2]
    cell = convert.to_xag(netlist, share=True)
    builder = Builder(height * width * netlist.channels)
    first = 2 * np.arange(1, builder.inputs + 1).reshape(height, width, netlist.channels)
    state = first.tolist()
    simulation = _known(netlist, height, width)
    known = next(simulation)
    for _ in range(steps):
        known = next(simulation, known)
        can, must = (_grid(numbers, height, width) for numbers in known)
        # Constants replace known values and their cones, of which there are many near a zero boundary.
        values = [[_next(builder, cell, state, y, x, netlist.periodic) for x in range(width)] for y in range(height)]
        for y, x, channel in np.argwhere(can == must).tolist():
            values[y][x][channel] = TRUE if must[y, x, channel] else FALSE
        state = values
        if len(builder.gates) > MOST_NODES or time.monotonic() > end:
            return None
    outputs = [state[y][x][channel] ^ int(target[y, x, channel]) for y, x, channel in np.ndindex(target.shape)]
    return rebuilt(builder.finish(outputs))


def _next(builder: Builder, cell: XAG, state: list[list[list[int]]], y: int, x: int, periodic: bool) -> list[int]:
    """Build the next state of the cell at row `y` and column `x`, and return its literals by channel."""
    height, width = len(state), len(state[0])
    literals = cell.on_same_inputs()
    for channel in range(len(state[0][0])):
        for patch in range(wiring.PATCH):
            row, column = y + patch // 3 - 1, x + patch % 3 - 1
            inside = periodic or (0 <= row < height and 0 <= column < width)
            value = state[row % height][column % width][channel] if inside else FALSE
            literals[1 + wiring.PATCH * channel + patch] = value
    builder.copy(cell, cell.nodes, literals)
    return [mapped(output, literals) for output in cell.outputs]


def _satisfied(graph: XAG, end: float) -> Bits | Literal[False] | None:
    """Return input values for which an output is 1, False if there are none, or None if undecided at `end`."""
    with Solver(graph, CONFLICTS) as solver:
        wrong = [solver.variable(output) for output in graph.outputs if output != FALSE]
        if not wrong:
            return False
        solver.add(wrong)
        while (answer := solver.solve([])) is None:  # the solver keeps learned clauses
            if time.monotonic() > end:
                return None
        if not answer:
            return False
        true = solver.true()
        return np.array([node in true for node in range(1, graph.first)], dtype=np.uint8)
