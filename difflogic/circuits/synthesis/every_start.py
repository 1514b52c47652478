"""Does a circuit reach its target from every start? Answered as a theorem, not by trying starts.

A start of a 16x16 grid with 8 channels is one of 2^2048. The proof simulates them all at once: every cell of every
channel begins as *unknown*, and each gate says what it can of its output (Kleene's three values: 0, 1, unknown;
`BitProgram.possible_bits`). An AND of an unknown with 0 is 0, whatever the unknown is, and outside the grid of a zero
boundary a cell reads 0: from there knowledge spreads.

    a row of four cells, each of which becomes (left neighbour AND itself), boundary 0
    step 0:  ? ? ? ?        nothing is known
    step 1:  0 ? ? ?        the first cell reads 0 at its left
    step 2:  0 0 ? ?        the second now reads that 0
    step 4:  0 0 0 0        every one of the 16 starts ends here, and stays

What is known stays known, and stays the same: more knowledge about a step's inputs never makes less of its outputs, so
by induction each step knows what the step before knew. So the simulation ends, where a step adds nothing; and where the
visible channels are known, they show the same for ever.

Where something visible stays unknown, nothing is proved: an answer gate by gate loses that `x XOR x` is 0. Then a SAT
solver is asked for a start that is wrong at the compared step. If there is none, that is a proof too, and for all later
steps as well: what a start shows one step later is what its next state, a start like any other, shows in time.

Source of the method: S. C. Kleene, Introduction to metamathematics (1952), section 64; R. E. Bryant, Symbolic
simulation (1990), for circuits.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from difflogic.circuits.synthesis import convert
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, mapped, rebuilt
from difflogic.core import wiring
from difflogic.core.bits import Bits
from difflogic.errors import LimitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.system.brief import brief

THREE_VALUED, SAT, RANDOM = "three-valued simulation", "SAT", "random starts"

RANDOM_STARTS, SEED = 1024, 11
"""So many starts are tried before the solver is asked: a circuit that is often wrong needs no solver."""
CONFLICTS = 2000
"""The solver looks at the clock after so many."""
MOST_NODES = 30_000_000
"""Gates of an unrolled circuit: the solver would take some ten gigabytes."""
UNLIKELY = 1e-9
"""The probability that an asynchronous automaton needs more steps than are named."""


@dataclass(frozen=True, eq=False)
class EveryStart:
    """A finding holds what was found out about all starts of one grid."""

    proved: bool | None
    """True: a theorem. False: `counterexample` is wrong. None: inconclusive."""
    method: str
    """`three-valued simulation`, `SAT`, or `random starts` where such a one is the counterexample."""
    reason: str
    """What was found, in words that continue a sentence."""
    from_step: int | None = None
    """Where proved, every start shows the target after so many steps and after all later ones."""
    counterexample: Bits | None = None
    """`[H, W, C]`, a start that does not show the target at the compared step."""

    __repr__ = brief


def prove_every_start(
    netlist: CellNetlist, target: Bits, steps: int, seconds: float | None, synchronous: bool = True
) -> EveryStart:
    """Do all starts show `target`, uint8 `[H, W, L]`, after `steps` steps, on a grid of its size?

    All cells fire in each step. Where they do not, `synchronous` is False and `from_step` counts rounds, in each of
    which every cell fires at least once: a cell that fires in round k finds neighbours that know at least what they
    know after k - 1 synchronous steps, and what it knows it keeps. The search for a counterexample ends after so
    many `seconds`; None leaves it out.
    """
    lean = convert.lean(netlist)
    step, wrong, unknown, wanted = 0, 0, 0, _numbers(target)
    for values in _known(lean, *target.shape[:2]):
        shown = list(zip(*values, wanted, strict=False))  # the visible channels come first
        unknown = sum((can ^ must).bit_count() for can, must, _ in shown)
        wrong = sum((must & ~want | want & ~can).bit_count() for can, must, want in shown)
        if wrong or not unknown:
            break
        step += 1
    if wrong:
        reason = f"{wrong} of {target.size} values are known from step {step} on, and wrong, whatever the start"
        late = step > steps or not synchronous  # then no single step can be shown to be wrong
        anything = None if late else np.zeros((*target.shape[:2], netlist.channels), dtype=np.uint8)
        return EveryStart(False, THREE_VALUED, reason, counterexample=anything)
    if not unknown:
        return EveryStart(True, THREE_VALUED, "all of the picture is known", from_step=step)
    reason = (
        f"{unknown} of {target.size} values stay unknown in three-valued simulation, which ended after {step} steps"
    )
    if not synchronous or seconds is None:
        return EveryStart(None, THREE_VALUED, reason)
    return find_wrong_start(lean, target, steps, seconds, reason)


def memory(netlist: CellNetlist, height: int, width: int) -> int:
    """Bytes that a proof takes on a grid, about: patches as bytes, as a rollout has them, and two bits of each gate."""
    cells, bits = height * width, wiring.PATCH * netlist.channels
    return cells * (4 * bits + 2 * (bits + convert.gate_count(netlist)) // 8)


def check_fits(netlist: CellNetlist, height: int, width: int, available: int | None) -> None:
    """Raises LimitError where a proof on that grid would take more than the memory that is available."""
    needed = memory(netlist, height, width)
    if available is not None and needed > available:
        raise LimitError(
            f"A proof on {width}x{height} cells takes {needed / 1e9:.3g} GB of memory, "
            f"{available / 1e9:.3g} GB are free: give a smaller grid by `size`."
        )


def asynchronous_steps(rounds: int, cells: int, fire_rate: float) -> int:
    """Steps within which so many rounds are over, but for a probability of UNLIKELY.

    In each round every cell fires at least once. A cell that fires with the probability p in each step has not
    fired in s steps with the probability (1 - p)^s. So a round of s steps fails with at most `cells * (1 - p)^s`.
    """
    if fire_rate == 1:
        return rounds
    return rounds * math.ceil(math.log(UNLIKELY / (rounds * cells)) / math.log(1 - fire_rate))


def _known(netlist: CellNetlist, height: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield which values can be 1, and which are 1, for each step from the start on: a number per channel.

    Its bits are the cells, row by row from the lowest on. It ends where a step adds no knowledge, for then none does.
    """
    cells = (1 << height * width) - 1
    used = {*netlist.wires.ravel().tolist(), *netlist.outputs.tolist()}
    can, must = [cells] * netlist.channels, [0] * netlist.channels
    while True:
        yield can, must
        zero, one = [0] * netlist.inputs, [0] * netlist.inputs
        for bit in used & set(range(netlist.inputs)):
            channel, patch = divmod(bit, wiring.PATCH)
            # Outside the grid is a known 0: a value that cannot be 1, and is not.
            one[bit], is_one = (_seen(each[channel], patch, height, width, netlist.periodic) for each in (can, must))
            zero[bit] = cells ^ is_one
        can_be_zero, can_be_one = netlist.program.possible_bits(zero, one)
        before = can, must
        can, must = [can_be_one[bit] for bit in netlist.outputs], [cells ^ can_be_zero[bit] for bit in netlist.outputs]
        if before == (can, must):
            return


def _seen(grid: int, patch: int, height: int, width: int, periodic: bool) -> int:
    """What each cell sees at a place of its patch: the grid, moved by up to a cell down or across."""
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
    # A 1 in each row: all ones of the grid over those of a row, which is a long division.
    first = ((1 << height * width) - 1) // ((1 << width) - 1)
    return first, first << (width - 1)


def _numbers(grid: Bits) -> list[int]:
    """A grid `[H, W, C]` as a number per channel."""
    return [
        int.from_bytes(np.packbits(plane, bitorder="little").tobytes(), "little") for plane in np.moveaxis(grid, 2, 0)
    ]


def _grid(numbers: Sequence[int], height: int, width: int) -> Bits:
    """The reverse of `_numbers`, uint8 `[H, W, C]`."""
    size = -(-height * width // 8)
    planes = [np.frombuffer(number.to_bytes(size, "little"), dtype=np.uint8) for number in numbers]
    bits = np.unpackbits(np.stack(planes), axis=1, count=height * width, bitorder="little")
    return np.moveaxis(bits.reshape(-1, height, width), 0, 2)


def find_wrong_start(
    netlist: CellNetlist, target: Bits, steps: int, seconds: float, reason: str = "the circuit is large"
) -> EveryStart:
    """A start that is wrong at the compared step, or the proof that there is none, within so many seconds.

    `netlist` is what `convert.lean` leaves; with `reason` begins what is said where it was not decided.
    """
    end = time.monotonic() + seconds
    shape = (*target.shape[:2], netlist.channels)
    starts = np.random.default_rng(SEED).integers(0, 2, (RANDOM_STARTS, *shape), dtype=np.uint8)
    *_, last = netlist.steps(starts, steps)
    wrong = (last[..., : target.shape[-1]] != target).any(axis=(1, 2, 3))
    if wrong.any():
        found = f"{int(wrong.sum())} of {RANDOM_STARTS} random starts are wrong at step {steps}"
        return EveryStart(False, RANDOM, found, counterexample=starts[int(wrong.argmax())])
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
    """Return the condition of a wrong start: an output per value of the target, 1 where the last step differs.

    Its inputs are the start's values in the order `[H, W, C]`. None where it grows beyond MOST_NODES, or `end`, a time
    of the monotonic clock, is over.
    """
    height, width = target.shape[:2]
    cell = convert.to_xag(netlist, share=True)
    builder = Builder(height * width * netlist.channels)
    first = 2 * np.arange(1, builder.inputs + 1).reshape(height, width, netlist.channels)
    state = first.tolist()
    for known, _ in zip(_known_steps(netlist, height, width), range(steps), strict=False):
        can, must = (_grid(numbers, height, width) for numbers in known)
        # What is known of the step folds away the gates behind it: much of the grid, near a zero boundary.
        values = [[_next(builder, cell, state, y, x, netlist.periodic) for x in range(width)] for y in range(height)]
        for y, x, channel in np.argwhere(can == must).tolist():
            values[y][x][channel] = TRUE if must[y, x, channel] else FALSE
        state = values
        if len(builder.gates) > MOST_NODES or time.monotonic() > end:
            return None
    outputs = [
        state[y][x][channel] ^ int(target[y, x, channel])
        for y in range(height)
        for x in range(width)
        for channel in range(target.shape[-1])
    ]
    return rebuilt(builder.finish(outputs))


def _known_steps(netlist: CellNetlist, height: int, width: int) -> Iterator[tuple[list[int], list[int]]]:
    """Return what is known after 1, 2, ... steps, for ever."""
    known = _known(netlist, height, width)
    last = next(known)
    for last in known:
        yield last
    while True:
        yield last


def _next(builder: Builder, cell: XAG, state: list[list[list[int]]], y: int, x: int, periodic: bool) -> list[int]:
    """The literals of a cell's next state."""
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
    """Inputs that make any output 1, False where there are none, None where the time is over."""
    with Solver(graph, CONFLICTS) as solver:
        wrong = [solver.variable(output) for output in graph.outputs if output != FALSE]
        if not wrong:
            return False
        solver.add(wrong)
        while (answer := solver.solve([])) is None:  # what it has learned it keeps
            if time.monotonic() > end:
                return None
        if not answer:
            return False
        true = solver.true()
        return np.array([node in true for node in range(1, graph.first)], dtype=np.uint8)
