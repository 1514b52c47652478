"""Export for Golly: a `.rule` file with the exact transition tree, and a pattern on a torus or a bounded plane.

For neighbourhoods other than Moore's, the file has a transition table instead, which names the neighbourhood; so Golly
can draw hexagons. A cell's state is the sum of `bit[channel] << channel`. In Golly, a cell stays 0 if all cells of its
neighbourhood are 0. If the circuit's cells do not, state 0 represents the outside of the grid, and a cell's state is
the sum plus one. Such a circuit of eight channels is refused, since it needs 257 states and Golly has 256.

Verification runs the pattern in `bgolly` for 100 generations.
Source of the format: Golly's help, *File formats*, "Rule files".
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits import rle
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.testbench import random_bits
from difflogic.circuits.export.text import Files, about
from difflogic.circuits.readers.rule_file import CELLS, TREE_CELLS
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.bdd import Forest, too_large
from difflogic.core import patterns, prng
from difflogic.core.bits import Bits
from difflogic.errors import CircuitError, ExportError
from difflogic.model.cell_netlist import CellNetlist

GENERATIONS = 100
"""Number of steps after which `bgolly` and the circuit must agree."""
SIDE = 48
"""Side in cells of the random grid in a pattern."""
_MAX_STATES = 256
_MAX_ENTRIES = 1 << 21
"""Maximum number of entries in all nodes of the tree: Golly takes minutes to read a larger file."""
_ORDER = TREE_CELLS[8]
_MAX_LINES = 1 << 16
_SEED = 23


def export(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of `NAME_ca.rule` and `NAME_ca.rle`. Raises CircuitError for too large a rule."""
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
    """Return Golly's state of a cell with all bits 0: 0, or 1 if 0 means outside the grid. Raises CircuitError."""
    if netlist.channels > rle.MOST_CHANNELS:
        raise CircuitError(
            f"Golly supports {_MAX_STATES} states, enough for {rle.MOST_CHANNELS} channels, but the circuit has "
            f"{netlist.channels}: remove channels that the image does not need (difflogic simplify)."
        )
    empty = netlist.evaluate(np.zeros((netlist.inputs, 1), dtype=np.uint64))
    first = int(empty.any())
    if first + (1 << netlist.channels) > _MAX_STATES:
        raise CircuitError(
            f"Golly supports {_MAX_STATES} states, but a circuit of {netlist.channels} channels needs one more if "
            "cells in an empty neighbourhood do not stay empty: remove a channel that the image does not need "
            "(difflogic simplify)."
        )
    return first


def _tree(netlist: CellNetlist, first: int) -> list[str]:
    """Return the lines of Golly's tree, one per node, children before parents; `first` is the state with all bits 0."""
    order = [9 * channel + patch for patch in _ORDER for channel in range(netlist.channels)]
    forest = Forest(netlist, order)
    lines: list[str] = []
    rows: dict[tuple[int, tuple[int, ...]], int] = {}

    def node(depth: int, functions: tuple[int, ...]) -> int:
        key = (depth, functions)
        if key not in rows:
            branches = forest.branches(functions, (len(_ORDER) - depth) * netlist.channels, netlist.channels)
            # Each level of the tree branches on all channels of one neighbour; the leaves are new states. Equal
            # functions share a line, so Life takes 32 lines instead of 511.
            if depth == 1:
                children = [first + forest.number(branch) for branch in branches]
                # The centre is last. If state 0 means outside the grid, a cell in state 0 stays 0.
                children = [0] * first + children
            else:
                children = [node(depth - 1, branch) for branch in branches]
                children = [children[0]] * first + children  # outside the grid all bits are 0
            if len(rows) << netlist.channels > _MAX_ENTRIES:
                raise too_large("Golly's tree of this rule", _MAX_ENTRIES)
            rows[key] = len(lines)
            lines.append(" ".join(map(str, [depth, *children])))
        return rows[key]

    node(len(_ORDER), tuple(forest.outputs))
    return lines


def _table(netlist: CellNetlist, first: int, order: Sequence[int]) -> list[str]:
    """Return the lines of Golly's table: variables, then transitions, which list cells in the patch order `order`."""
    forest = Forest(netlist, [9 * channel + patch for patch in order for channel in range(netlist.channels)])

    @cache
    def transitions(depth: int, functions: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
        """Return transitions as tuples: the matching states of each cell from index `depth` on, then the new state."""
        if depth == len(order):
            return [((first + forest.number(functions),),)]
        # States of a cell with equal cofactors share transitions, with a variable for the cell.
        states: dict[tuple[int, ...], list[int]] = {}
        for number, branch in enumerate(forest.branches(functions, depth * netlist.channels, netlist.channels)):
            outside = [0] if first and not number and depth else []  # outside all bits are 0; a centre outside stays 0
            states.setdefault(branch, []).extend([*outside, first + number])
        rows = [(tuple(equal), *rest) for branch, equal in states.items() for rest in transitions(depth + 1, branch)]
        if len(rows) > _MAX_LINES:
            raise too_large("Golly's table of this rule", _MAX_LINES)
        return rows

    # A variable that occurs twice in a transition stands for one state, so each cell has separate variables.
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
    """Return the lines of state colours: the circuit's, else RGB for three visible channels, else shades of grey."""
    rows = ["0 24 24 32"] if first else []
    for number in range(1 << netlist.channels):
        bits = [number >> channel & 1 for channel in range(netlist.visible)]
        rgb = [255 * bit for bit in bits] if netlist.visible == 3 else [255 * sum(bits) // netlist.visible] * 3
        if netlist.colours:
            rgb = netlist.palette[number % len(netlist.palette)].tolist()
        rows.append(" ".join(map(str, [first + number, *rgb])))
    return rows


def start(netlist: CellNetlist) -> Bits:
    """Return the initial state in the circuit's scenario, uint8 `[H, W, C]`, or a random grid from a fixed seed."""
    own = None if netlist.scenario is None else netlist.scenario.grid(netlist.origin)
    rows = 1 if netlist.neighbourhood == "line" else SIDE
    return random_bits(prng.key_from_seed(_SEED), (rows, SIDE, netlist.channels)) if own is None else own


def pattern(netlist: CellNetlist, rule: str, grid: Bits) -> str:
    """Return a grid as the text of an RLE pattern, with the boundary: a torus or bounded plane of the grid's size."""
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
    """Verify the exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    rule, grid = f"{name}_ca", start(netlist)
    with folder_of(files) as folder:
        bounded = f"{rule}:{_boundary(netlist, grid)}"
        arguments = ["-a", "RuleLoader", "-s", f"{folder}/", "-r", bounded, "-m", str(GENERATIONS)]
        tools.run_in(folder, "bgolly", *arguments, "-o", "after.rle", f"{rule}.rle")
        after = cut(patterns.read(folder / "after.rle").states)
    expected = first_state(netlist) + rle.numbers(netlist.after(grid, GENERATIONS))
    if not np.array_equal(after, cut(expected)):
        raise ExportError(f"The grid of bgolly differs from that of the circuit after {GENERATIONS} generations.")
    where = "torus" if netlist.periodic else "bounded plane"
    return [f"bgolly agrees after {GENERATIONS} generations on a {where} of {grid.shape[1]}x{grid.shape[0]}"]


def cut(grid: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the bounding box of all states other than 0, which is what bgolly writes."""
    rows, columns = np.nonzero(grid)
    if not len(rows):
        return grid[:0, :0]
    return grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
