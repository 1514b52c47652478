"""Golly: a `.rule` file with the exact transition tree, and a start on a torus or a bounded plane.

Of fewer neighbours than eight it has a transition table, which names the neighbourhood: then Golly draws hexagons.

A cell's state is its channels as a number, `sum of bit[channel] << channel`. Golly holds that nothing comes of
nothing: where the circuit makes something of an empty neighbourhood, state 0 is kept for what is outside the grid
and the number is one more, so that an 8th channel no longer fits in Golly's 256 states.
The proof has `bgolly` run the pattern for a hundred generations on the pattern's own grid.
Source of the format: Golly's help, *File formats*, "Rule files".
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits import rle
from difflogic.circuits.export.bdd import Forest, too_large
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.testbench import random_bits
from difflogic.circuits.export.text import Files, about
from difflogic.circuits.readers.rule_file import CELLS, TREE_CELLS
from difflogic.circuits.synthesis import tools
from difflogic.core import patterns, prng
from difflogic.core.bits import Bits
from difflogic.errors import CircuitError, ExportError
from difflogic.model.cell_netlist import CellNetlist

GENERATIONS = 100
"""So long `bgolly` and the circuit must agree."""
SIDE = 48
"""Of a random grid that the pattern brings."""
MAX_CHANNELS = 8
_MAX_STATES = 256
_MAX_ENTRIES = 1 << 21
"""Children in the tree: Golly reads a larger file for minutes."""
_ORDER = TREE_CELLS[8]
_MAX_LINES = 1 << 16
_SEED = 23


def export(netlist: CellNetlist, name: str) -> Files:
    """`NAME_ca.rule` and `NAME_ca.rle`. Raises CircuitError where Golly has too few states or the tree is too large."""
    rule = f"{name}_ca"  # never one of Golly's own names
    first = first_state(netlist)
    states = first + (1 << netlist.channels)
    if netlist.neighbourhood == "moore":
        nodes = _tree(netlist, first)
        body = ["@TREE", f"num_states={states}", "num_neighbors=8", f"num_nodes={len(nodes)}", *nodes]
    else:
        called, order = CELLS[netlist.neighbourhood]
        body = ["@TABLE", f"n_states:{states}", f"neighborhood:{called}", "symmetries:none"]
        body += _table(netlist, first, order)
    text = [f"@RULE {rule}", about(netlist), "", *body, "", "@COLORS", *_colours(netlist, first), ""]
    return {f"{rule}.rule": "\n".join(text), f"{rule}.rle": pattern(netlist, rule, start(netlist))}


def first_state(netlist: CellNetlist) -> int:
    """The state of a cell whose bits are all 0: 0, or 1 where 0 is outside. Raises CircuitError."""
    if netlist.channels > MAX_CHANNELS:
        raise CircuitError(
            f"Golly has {_MAX_STATES} states, enough for {MAX_CHANNELS} channels, and the circuit has "
            f"{netlist.channels}: drop those that the picture does not need (difflogic simplify)."
        )
    empty = netlist.evaluate(np.zeros((netlist.inputs, 1), dtype=np.uint64))
    first = int(empty.any())
    if first + (1 << netlist.channels) > _MAX_STATES:
        raise CircuitError(
            f"Golly has {_MAX_STATES} states, but a circuit of {netlist.channels} channels needs one more if cells in "
            "an empty neighbourhood do not stay empty: drop a channel that the picture does not need (difflogic "
            "simplify)."
        )
    return first


def _tree(netlist: CellNetlist, first: int) -> list[str]:
    """The tree's node lines, children before parents, the root last."""
    order = [9 * channel + patch for patch in _ORDER for channel in range(netlist.channels)]
    forest = Forest(netlist, order)
    numbers = range(1 << netlist.channels)
    lines: list[str] = []
    known: dict[tuple[int, tuple[int, ...]], int] = {}

    def node(depth: int, functions: tuple[int, ...]) -> int:
        key = (depth, functions)
        if key not in known:
            branches = forest.branches(functions, (len(_ORDER) - depth) * netlist.channels, netlist.channels)
            # The tree asks for one neighbour after the other, all channels of it at once, and its leaves are new
            # states. Nodes whose functions are the same are one line: 32 for Life, where a full tree has 511.
            if depth == 1:
                children = [first + forest.number(branch) for branch in branches]
                # The centre is asked for last. Where state 0 is outside, a cell that has it keeps it.
                children = [0] * first + children
            else:
                children = [node(depth - 1, branch) for branch in branches]
                children = [children[0]] * first + children  # what is outside counts as 0
            if len(known) * len(numbers) > _MAX_ENTRIES:
                raise too_large("Golly's tree of this rule", _MAX_ENTRIES)
            known[key] = len(lines)
            lines.append(" ".join(map(str, [depth, *children])))
        return known[key]

    node(len(_ORDER), tuple(forest.outputs))
    return lines


def _table(netlist: CellNetlist, first: int, order: Sequence[int]) -> list[str]:
    """Variables, then a transition for each way through the cells of `order` on which the new state depends."""
    forest = Forest(netlist, [9 * channel + patch for patch in order for channel in range(netlist.channels)])

    @cache
    def transitions(depth: int, functions: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
        """Each transition as the states of the cells from `depth` on, followed by the new state."""
        if depth == len(order):
            return [((first + forest.number(functions),),)]
        # States of a cell after which all is the same are one transition, with a variable in the cell's place.
        states: dict[tuple[int, ...], list[int]] = {}
        for number, branch in enumerate(forest.branches(functions, depth * netlist.channels, netlist.channels)):
            outside = [0] if first and not number and depth else []  # what is outside counts as 0, and stays
            states.setdefault(branch, []).extend([*outside, first + number])
        found = [(tuple(alike), *rest) for branch, alike in states.items() for rest in transitions(depth + 1, branch)]
        if len(found) > _MAX_LINES:
            raise too_large("Golly's table of this rule", _MAX_LINES)
        return found

    # A variable that stands twice in a transition is the same state: so each cell has variables of its own.
    variables: dict[tuple[int, tuple[int, ...]], str] = {}
    lines = []
    for transition in transitions(0, tuple(forest.outputs)):
        words = [
            str(states[0]) if len(states) == 1 else variables.setdefault((place, states), f"v{len(variables)}")
            for place, states in enumerate(transition)
        ]
        lines.append(",".join(words))
    declared = [f"var {name}={{{','.join(map(str, states))}}}" for (_, states), name in variables.items()]
    return [*declared, *lines]


def _colours(netlist: CellNetlist, first: int) -> list[str]:
    """The visible channels: one in white, three as red, green and blue; others by the share of their bits."""
    rows = ["0 24 24 32"] if first else []
    for number in range(1 << netlist.channels):
        if netlist.colours:
            rows.append(" ".join(map(str, [first + number, *netlist.palette[number % len(netlist.palette)]])))
            continue
        bits = [number >> channel & 1 for channel in range(netlist.visible)]
        rgb = [255 * bit for bit in bits] if netlist.visible == 3 else [255 * sum(bits) // netlist.visible] * 3
        rows.append(" ".join(map(str, [first + number, *rgb])))
    return rows


def start(netlist: CellNetlist) -> Bits:
    """Return what it was trained to start from, uint8 `[H, W, C]`; else a random grid, always the same."""
    own = None if netlist.scenario is None else netlist.scenario.grid(netlist.origin)
    return _random(netlist) if own is None else own


def _random(netlist: CellNetlist) -> Bits:
    rows = 1 if netlist.neighbourhood == "line" else SIDE
    return random_bits(prng.key_from_seed(_SEED), (rows, SIDE, netlist.channels))


def pattern(netlist: CellNetlist, rule: str, grid: Bits) -> str:
    """A grid in Golly's run-length code, with its boundary: a torus, or a plane of that size."""
    height, width, channels = grid.shape
    first = first_state(netlist)
    two_states = first + (1 << channels) == 2
    words = [word for row in first + rle.numbers(grid) for word in (*rle.runs_of(row, two_states), "$")]
    words[-1] = "!"
    head = f"x = {width}, y = {height}, rule = {rule}:{_boundary(netlist, grid)}"
    return "\n".join([head, *rle.wrapped(words), ""])


def _boundary(netlist: CellNetlist, grid: Bits) -> str:
    return f"{'T' if netlist.periodic else 'P'}{grid.shape[1]},{grid.shape[0]}"


def verify(netlist: CellNetlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    rule, grid = f"{name}_ca", start(netlist)
    with folder_of(files) as folder:
        bounded = f"{rule}:{_boundary(netlist, grid)}"
        arguments = ["-a", "RuleLoader", "-s", f"{folder}/", "-r", bounded, "-m", str(GENERATIONS)]
        tools.run_in(folder, "bgolly", *arguments, "-o", "after.rle", f"{rule}.rle")
        found = cut(patterns.read(folder / "after.rle").states)
    expected = first_state(netlist) + rle.numbers(netlist.after(grid, GENERATIONS))
    if not np.array_equal(found, cut(expected)):
        raise ExportError(f"bgolly shows another grid than the circuit after {GENERATIONS} generations.")
    where = "torus" if netlist.periodic else "bounded plane"
    return [f"bgolly agrees after {GENERATIONS} generations on a {where} of {grid.shape[1]}x{grid.shape[0]}"]


def cut(grid: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the rectangle that holds everything but state 0: bgolly writes no more."""
    rows, columns = np.nonzero(grid)
    if not len(rows):
        return grid[:0, :0]
    return grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
