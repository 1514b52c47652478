"""Golly: a `.rule` file with the exact transition tree, and a start on a torus or a bounded plane.

A cell's state is its channels as a number, `sum of bit[channel] << channel`. Golly holds that nothing comes of
nothing: where the circuit makes something of an empty neighbourhood, state 0 is kept for what is outside the grid
and the number is one more, so that an 8th channel no longer fits in Golly's 256 states.
Source of the format: Golly's help, *File formats*, "Rule files".
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from difflogic import prng
from difflogic.circuits.export.diagram import Forest, too_large
from difflogic.circuits.export.text import Files, about
from difflogic.circuits.export.vectors import random_bits
from difflogic.errors import CircuitError
from difflogic.netlist import Bits, Netlist

SIDE = 48
"""Of a random grid that the pattern brings."""
MAX_CHANNELS = 8
_MAX_STATES = 256
_MAX_ENTRIES = 1 << 21
"""Children in the tree: Golly reads a larger file for minutes."""
_ORDER = (0, 2, 6, 8, 1, 3, 5, 7, 4)
"""Patch positions as the tree asks for them: north-west, north-east, south-west, ... centre."""
_SEED = 23


def export(netlist: Netlist, name: str) -> Files:
    """`NAME_ca.rule` and `NAME_ca.rle`. Raises CircuitError where Golly has too few states or the tree is too large."""
    rule = f"{name}_ca"  # never one of Golly's own names
    first = first_state(netlist)
    nodes = _tree(netlist, first)
    states = first + (1 << netlist.channels)
    text = [f"@RULE {rule}", about(netlist), "", "@TREE", f"num_states={states}", "num_neighbors=8"]
    text += [f"num_nodes={len(nodes)}", *nodes, "", "@COLORS", *_colours(netlist, first), ""]
    return {f"{rule}.rule": "\n".join(text), f"{rule}.rle": pattern(netlist, rule, start(netlist))}


def first_state(netlist: Netlist) -> int:
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
            f"Golly has {_MAX_STATES} states, and a circuit of {netlist.channels} channels that makes something of an "
            "empty neighbourhood needs one more: drop a channel that the picture does not need (difflogic simplify)."
        )
    return first


def _tree(netlist: Netlist, first: int) -> list[str]:
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
            if depth == 1:
                children = [first + forest.number(branch) for branch in branches]
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


def _colours(netlist: Netlist, first: int) -> list[str]:
    """The visible channels: one in white, three as red, green and blue; others by the share of their bits."""
    rows = ["0 24 24 32"] if first else []
    for number in range(1 << netlist.channels):
        bits = [number >> channel & 1 for channel in range(netlist.visible)]
        rgb = [255 * bit for bit in bits] if netlist.visible == 3 else [255 * sum(bits) // netlist.visible] * 3
        rows.append(" ".join(map(str, [first + number, *rgb])))
    return rows


def start(netlist: Netlist) -> Bits:
    """What it was trained to start from, uint8 `[H, W, C]`; else a random grid of SIDE cells, the same each time."""
    own = None if netlist.habitat is None else netlist.habitat.grid(netlist.origin)
    return random_bits(prng.key_from_seed(_SEED), (SIDE, SIDE, netlist.channels)) if own is None else own


def pattern(netlist: Netlist, rule: str, grid: Bits) -> str:
    """A grid in Golly's run-length code, with its boundary: a torus, or a plane of that size."""
    height, width, channels = grid.shape
    numbers = first_state(netlist) + (grid.astype(np.int64) << np.arange(channels)).sum(axis=-1)
    two_states = first_state(netlist) + (1 << channels) == 2
    words: list[str] = []
    for row in numbers.tolist():
        words += [_run(*run, two_states) for run in _runs(row)] + ["$"]
    words[-1] = "!"
    boundary = f"{'T' if netlist.periodic else 'P'}{width},{height}"
    return "\n".join([f"x = {width}, y = {height}, rule = {rule}:{boundary}", *_wrapped(words), ""])


def _wrapped(words: list[str], most: int = 70) -> list[str]:
    """Lines of at most so many characters; Golly wants each word whole."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > most:
            lines.append("")
        lines[-1] += word
    return lines


def _runs(row: list[int]) -> list[tuple[int, int]]:
    return [(len(list(group)), state) for state, group in groupby(row)]


def _run(length: int, state: int, two_states: bool) -> str:
    """`b` and `o` of two states, else `.`, `A` to `X`, then `pA` to `pX`, `qA` and so on."""
    if two_states:
        letter = "bo"[state]
    elif state == 0:
        letter = "."
    else:
        prefix, rest = divmod(state - 1, 24)
        letter = ("" if prefix == 0 else chr(ord("p") + prefix - 1)) + chr(ord("A") + rest)
    return letter if length == 1 else f"{length}{letter}"
