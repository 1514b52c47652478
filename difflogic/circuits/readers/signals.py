"""Convert circuits with named signals, as in BLIF and AIGER, to netlists of a cell or function.

Inputs `patch[i]` and outputs `result[c]` belong to a cell, numbered as in difflogic's exports. Any other names belong
to a function, and become identifiers. As with ABC's `comb`, a latch `s` becomes an input, and its next value the output
`next_s`. A latch that begins at 1 is inverted, since all latches must begin at 0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.grid import LatchNetlist
from difflogic.model.netlist import Netlist, gate_arrays
from difflogic.model.netlist_json import read_gates
from difflogic.model.straight_line import NOT_A
from difflogic.model.thermometer import Thermometer

N = TypeVar("N", bound=Netlist)
Row = dict[str, str | int]
"""Gate as in circuit.json, with keys `id`, `gate`, `a` and `b`; `a` and `b` of a constant are empty."""

_ABOUT = re.compile(
    r"channels?(?: \((\d{1,6}(?:(?:, |-)\d{1,6})*)\))?, (\d{1,6}) visible; (?:neighbourhood ([a-z-]+); )?"
    r"the grid (wraps around|is 0 outside)\."
)
"""Pattern of the comment in exported files that states a cell's channels, neighbourhood and boundary."""


def row(name: str, gate: int, a: str = "", b: str | None = None) -> Row:
    """Return the gate `name` with id `gate` as a row; it may have two inputs, one or none."""
    return {"id": name, "gate": gate, "a": a, "b": a if b is None else b}


@dataclass
class Signals:
    """Contents of a circuit file, with gates in any order; `is_named` is False if the file names no signals."""

    inputs: list[str] = field(default_factory=list)
    latches: list[tuple[str, str, int]] = field(default_factory=list)
    """Name, signal of the next value, and initial value of each latch."""
    outputs: list[tuple[str, str]] = field(default_factory=list)
    """Name and signal of each output."""
    gates: list[Row] = field(default_factory=list)
    comment: str = ""
    is_named: bool = True

    @property
    def is_described(self) -> bool:
        """True if the file's comment states the channels and boundary of a cell, as in difflogic's exports."""
        return _ABOUT.search(self.comment) is not None

    def netlist(self) -> LatchNetlist:
        """Return a netlist with gates in topological order. Raises CircuitError for a cycle or an undriven signal."""
        names = [name for name, _, _ in self.latches]
        inputs = (*self.inputs, *names)
        outputs = (*(name for name, _ in self.outputs), *(f"next_{name}" for name in names))
        if not (inputs and outputs and len({*inputs}) == len(inputs) and len({*outputs}) == len(outputs)):
            raise CircuitError("A circuit must have inputs and outputs with unique names.")
        bits, rows = [*self.inputs], [*self.gates]
        ends = [signal for _, signal in self.outputs]
        for name, after, first in self.latches:
            bits.append(f"NOT {name}" if first else name)
            ends.append(f"NOT next {name}" if first else after)
            rows += [row(name, NOT_A, bits[-1]), row(ends[-1], NOT_A, after)] if first else []
        # Other programs may leave dead gates that read undriven signals.
        by_id, live, stack = {gate["id"]: gate for gate in rows}, set[str | int](), list[str | int](ends)
        while stack:
            if (signal := stack.pop()) in by_id and signal not in live:
                live.add(signal)
                stack += [by_id[signal]["a"], by_id[signal]["b"]]
        rows = [gate if gate["a"] else {**gate, "a": bits[0], "b": bits[0]} for gate in rows if gate["id"] in live]
        gates = gate_arrays(*read_gates({"gates": rows, "outputs": ends}, bits))
        return LatchNetlist(named_inputs=inputs, named_outputs=outputs, latches=len(names), **gates)

    def circuit(self) -> CellNetlist | FunctionNetlist:
        """Return a cell if inputs and outputs are named like a cell's, otherwise a function. Raises CircuitError."""
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
        """Return a copy of another circuit with the gates of this file, matching inputs and outputs by name.

        Args:
            other: A circuit with the inputs and outputs of this file, under their own names or those in exports. If
                this file has no names, they are matched by order.

        Raises:
            CircuitError: The inputs and outputs of the file and of `other` do not match.
        """
        netlist, latches, shown = self.netlist(), dict[int, int](), len(other.outputs)
        if isinstance(other, FunctionNetlist):
            latches, shown = other.latches, shown - other.memory
        counts = zip(other.buses, (other.inputs, shown), strict=True)
        numbered = [[f"{bus}[{index}]" for index in range(count)] for bus, count in counts]
        for inputs, outputs in (numbered, (other.input_names, other.output_names[:shown])):
            # Latches that no gate reads are not exported and not compared.
            names = [*outputs, *(f"next_{inputs[bit]}" for bit in latches)]
            if not self.is_named and (len(inputs), len(names)) == (netlist.inputs, len(netlist.outputs)):
                inputs, names = netlist.named_inputs, [*netlist.named_outputs]
            if set(netlist.named_inputs) <= set(inputs) and set(netlist.named_outputs) == set(names):
                return _between(netlist, other, inputs, names, [*range(shown), *latches.values()])
        raise CircuitError(
            f"Expected the inputs {_few(numbered[0])} and outputs {_few(numbered[1])} of the circuit to compare with, "
            f"got {_few(netlist.named_inputs)} and {_few(netlist.named_outputs)}."
        )


def _between(netlist: LatchNetlist, like: N, inputs: Sequence[str], outputs: Sequence[str], places: Sequence[int]) -> N:
    """Return `like` with the gates of `netlist`; `inputs` names its inputs, `outputs` its outputs number `places`."""
    place = {name: bit for bit, name in enumerate(inputs)}
    gates = range(like.inputs, like.inputs + len(netlist.gates))
    bits = np.array([*(place[name] for name in netlist.named_inputs), *gates])
    ends = dict(zip(netlist.named_outputs, bits[netlist.outputs].tolist(), strict=True))
    by_place = dict(zip(places, (ends[name] for name in outputs), strict=True))
    return like.with_gates(netlist.gates, bits[netlist.wires], [by_place.get(k, 0) for k in range(len(like.outputs))])


def _cell(comment: str, channels: int) -> CellNetlist:
    """Return a cell without gates, with the properties that `comment` states; the default is a zero boundary."""
    origin, visible, around, boundary = match.groups() if (match := _ABOUT.search(comment)) else (None,) * 4
    runs = [[int(end) for end in run.split("-")] for run in origin.split(", ")] if origin else [[0, channels - 1]]
    names = [name for run in runs for name in range(run[0], min(run[-1], run[0] + channels) + 1)]
    seen = int(visible) if visible else channels
    return CellNetlist.build(
        channels, boundary == "wraps around", [], [], [wiring.CENTRE] * channels, seen, names, None, around or "moore"
    )


def _words(names: Sequence[str], stem: str) -> tuple[str, ...]:
    """Return a unique identifier for each name, prefixed by `stem` if it begins with no letter or is like `g0`."""
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
