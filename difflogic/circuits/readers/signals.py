"""Circuits of named signals, as BLIF and AIGER hold them: their gates, and the frame that their names give them.

Inputs `patch[i]` and outputs `result[c]` are those of a cell, in the numbering of our exports. Other names make a
function, whose inputs and outputs get words of letters. Latches are inputs and outputs of it, as ABC's `comb` makes
them: a latch `s` becomes an input, and its next value the output `next_s`. One that begins at 1 is read inverted, so
that all begin at 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import TypeVar

import numpy as np

from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.xag import Builder, input_literal
from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.grid import LatchNetlist
from difflogic.model.netlist import Netlist, gate_arrays
from difflogic.model.thermometer import Thermometer

N = TypeVar("N", bound=Netlist)
Signal = Hashable
Node = tuple[Sequence[Signal], Callable[[Builder, Sequence[int]], int]]
"""Signals that a node reads, and what builds it of their literals."""

_ABOUT = re.compile(
    r"channels?(?: \((\d{1,6}(?:(?:, |-)\d{1,6})*)\))?, (\d{1,6}) visible; (?:neighbourhood ([a-z-]+); )?"
    r"the grid (wraps around|is 0 outside)\."
)
"""Comment of an export: what the names of a cell do not say."""


@dataclass
class Signals:
    """Contents of a file: named ends, and nodes between them in any order."""

    inputs: dict[Signal, str] = field(default_factory=dict)
    latches: dict[Signal, tuple[str, Signal, int]] = field(default_factory=dict)
    """Name, signal of the next value, and first value of each latch."""
    outputs: list[tuple[str, Signal]] = field(default_factory=list)
    nodes: dict[Signal, Node] = field(default_factory=dict)
    comment: str = ""
    is_named: bool = True

    def drive(self, signal: Signal, reads: Sequence[Signal], build: Callable[[Builder, Sequence[int]], int]) -> None:
        """Add a node. Raises CircuitError if the signal has one."""
        if signal in self.nodes:
            raise CircuitError(f"The signal {signal!r:.60} is driven twice.")
        self.nodes[signal] = reads, build

    def netlist(self) -> LatchNetlist:
        """Return the gates in topological order. Raises CircuitError for a cycle, or a signal that nothing drives."""
        names = [name for name, _, _ in self.latches.values()]
        inputs = (*self.inputs.values(), *names)
        outputs = (*(name for name, _ in self.outputs), *(f"next_{name}" for name in names))
        if not inputs or not outputs:
            raise CircuitError("A circuit needs an input and an output.")
        builder = Builder(len(inputs), share=False)
        literals = {each: input_literal(bit) for bit, each in enumerate(chain(self.inputs, self.latches))}
        for ends in (inputs, outputs, [*self.inputs, *self.latches, *self.nodes]):
            if len(set(ends)) < len(ends):
                raise CircuitError(f"The signal {Counter(ends).most_common(1)[0][0]!r:.60} is driven or named twice.")
        for latch, (_, _, first) in self.latches.items():
            literals[latch] ^= first
        try:
            order = list(TopologicalSorter({each: reads for each, (reads, _) in self.nodes.items()}).static_order())
        except CycleError as error:
            raise CircuitError(f"The circuit has a cycle through the signal {error.args[1][0]!r:.60}.") from error
        results = [end for _, end in self.outputs] + [after for _, after, _ in self.latches.values()]
        for signal in (*order, *results):
            if signal in self.nodes and signal not in literals:
                reads, build = self.nodes[signal]
                literals[signal] = build(builder, [literals[each] for each in reads])
            elif signal not in literals:
                raise CircuitError(f"Nothing drives the signal {signal!r:.60}.")
        inverted = [0] * len(self.outputs) + [first for _, _, first in self.latches.values()]
        graph = builder.finish(literals[end] ^ flip for end, flip in zip(results, inverted, strict=True))
        empty = gate_arrays([], [], [])
        return to_netlist(graph, LatchNetlist(named_inputs=inputs, named_outputs=outputs, latches=len(names), **empty))

    def circuit(self) -> CellNetlist | FunctionNetlist:
        """Return the circuit that the names make. Raises CircuitError."""
        netlist = self.netlist()
        channels = len(netlist.named_outputs)
        patch, result = (
            [f"{bus}[{index}]" for index in range(count)]
            for bus, count in zip(CellNetlist.buses, (channels * wiring.PATCH, channels), strict=True)
        )
        if set(netlist.named_outputs) == set(result) and set(netlist.named_inputs) <= set(patch):
            return _between(netlist, _cell(self.comment, channels), patch, result, range(channels))
        empty = FunctionNetlist(
            thermometer=Thermometer.of_bits(netlist.inputs),
            observations=_words(netlist.named_inputs, "x"),
            named_outputs=_words(netlist.named_outputs, "y"),
            **gate_arrays([], [], []),
        )
        return empty.with_gates(netlist.gates, netlist.wires, netlist.outputs)

    def like(self, other: N) -> N:
        """Return the gates between the inputs and outputs of another circuit.

        Args:
            other: A circuit whose exports have the names of this file, or which has them itself. Signals without
                names are taken in their order.

        Raises:
            CircuitError: The inputs and outputs of the file are not those of the circuit.
        """
        netlist, latches, shown = self.netlist(), dict[int, int](), len(other.outputs)
        if isinstance(other, FunctionNetlist):
            latches, shown = other.latches, shown - other.memory
        numbered = [
            [f"{bus}[{k}]" for k in range(n)] for bus, n in zip(other.buses, (other.inputs, shown), strict=True)
        ]
        for inputs, outputs in (numbered, (other.input_names, other.output_names[:shown])):
            # What is remembered and never read is in no export, and is no part of a comparison.
            names = [*outputs, *(f"next_{inputs[bit]}" for bit in latches)]
            if not self.is_named and (len(inputs), len(names)) == (netlist.inputs, len(netlist.outputs)):
                inputs, names = netlist.named_inputs, [*netlist.named_outputs]
            if set(netlist.named_inputs) <= set(inputs) and set(netlist.named_outputs) == set(names):
                return _between(netlist, other, inputs, names, [*range(shown), *latches.values()])
        # An export has fewer channels than its circuit if the picture never depends on the others.
        if _ABOUT.search(self.comment) and isinstance(circuit := self.circuit(), type(other)):
            return circuit
        raise CircuitError(
            f"It reads {_few(netlist.named_inputs)} and gives {_few(netlist.named_outputs)}: expected the inputs "
            f"{_few(numbered[0])} and outputs {_few(numbered[1])} of the circuit that it is compared with."
        )


def _between(netlist: LatchNetlist, like: N, inputs: Sequence[str], outputs: Sequence[str], places: Sequence[int]) -> N:
    """Return the gates of `netlist` in the frame of `like`, whose inputs, and outputs at `places`, have these names."""
    place = {name: bit for bit, name in enumerate(inputs)}
    gates = range(like.inputs, like.inputs + len(netlist.gates))
    bits = np.array([*(place[name] for name in netlist.named_inputs), *gates])
    ends = dict(zip(netlist.named_outputs, bits[netlist.outputs].tolist(), strict=True))
    found = dict(zip(places, (ends[name] for name in outputs), strict=True))
    return like.with_gates(netlist.gates, bits[netlist.wires], [found.get(k, 0) for k in range(len(like.outputs))])


def _cell(comment: str, channels: int) -> CellNetlist:
    """Return a cell without gates, as the comment of an export describes it, by default on a grid with 0 outside."""
    origin, visible, around, boundary = match.groups() if (match := _ABOUT.search(comment)) else (None,) * 4
    runs = [[int(end) for end in run.split("-")] for run in origin.split(", ")] if origin else [[0, channels - 1]]
    names = [name for run in runs for name in range(run[0], min(run[-1], run[0] + channels) + 1)]
    seen = int(visible) if visible else channels
    return CellNetlist.build(
        channels, boundary == "wraps around", [], [], [wiring.CENTRE] * channels, seen, names, None, around or "moore"
    )


def _words(names: Sequence[str], stem: str) -> tuple[str, ...]:
    """Return a different word of letters and digits for each name."""
    words: dict[str, None] = {}
    for name in names:
        word = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:30]
        word = word if word[:1].isalpha() and not re.fullmatch(r"g\d+", word) else f"{stem}_{word}"
        while word in words:
            word = f"{word[:30]}_{len(words)}"
        words[word] = None
    return tuple(words)


def _few(names: Sequence[str]) -> str:
    return ", ".join(name[:30] for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
