"""Hard circuits as lists of gates in topological order, with named inputs and outputs.

A circuit computes a vector of bits: first its inputs, then one bit per gate, in order. A gate reads two earlier bits
and has one of sixteen functions (`difflogic.core.gates`: the id is the truth table). The outputs are some of the bits.

Subclasses give inputs and outputs a meaning: the cell of an automaton (`difflogic.model.cell_netlist.CellNetlist`), or
a controller (`difflogic.model.controller.Controller`), for example.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.core.bit_parallel import BitProgram, Index
from difflogic.core.bits import Bits, Words
from difflogic.errors import CircuitError
from difflogic.model.framed import in_frame
from difflogic.system.brief import brief

_CHUNK_BYTES = 1 << 25
"""Maximum number of bytes of intermediate bits that `evaluate` stores at a time, so that they fit caches."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Netlist(ABC):
    """Gates in topological order, with inputs and outputs. Bits are numbered: first the inputs, then the gates.

    `gates`, uint8 `[n]`, are gate ids (truth tables). `wires`, int32 `[n, 2]`, are the numbers of the bits that each
    gate reads. `outputs`, int32 `[outputs]`, are the numbers of the bits that `evaluate` returns.

        >>> net = difflogic.CellNetlist.build(1, False, gates=[1], wires=[[3, 5]], outputs=[9])
        >>> net.bit_name(9)
        'g0'
    """

    gates: Bits
    wires: Index
    outputs: Index

    kind: ClassVar[str]
    """One-word name of the kind of netlist, such as `cell` or `function`."""
    buses: ClassVar[tuple[str, str]]
    """Names of the input bus and the output bus in exported hardware code."""

    __repr__ = brief
    _repr_html_ = in_frame

    @property
    @abstractmethod
    def input_names(self) -> Sequence[str]:
        """Names of the inputs in order; names contain no blanks."""

    @property
    @abstractmethod
    def output_names(self) -> Sequence[str]:
        """Names of the outputs in order."""

    @property
    def shown(self) -> Sequence[str]:
        """Names of the visible outputs; all other outputs are hidden state."""
        return self.output_names

    def validate(self) -> None:
        """Raise CircuitError if gates, wires or outputs are out of range, or gates are not in topological order."""
        # If gates read only earlier bits, there is no cycle, and one pass from first to last evaluates them.
        count = len(self.gates)
        before = self.inputs + np.arange(count)
        if len(self.wires) != count or (count and self.gates.max() >= gates.GATE_COUNT):
            raise CircuitError(f"{count} gates need two wires each and ids from 0 to {gates.GATE_COUNT - 1}.")
        if (self.wires < 0).any() or (self.wires >= before[:, None]).any():
            raise CircuitError("A gate may read only inputs and earlier gates.")
        if (self.outputs < 0).any() or (self.outputs >= self.inputs + count).any():
            raise CircuitError("An output must be an input or a gate.")

    def with_gates(self, gates: npt.ArrayLike, wires: npt.ArrayLike, outputs: npt.ArrayLike) -> Self:
        """Return a copy with other gates, wires and outputs. Raise CircuitError if they are invalid."""
        netlist = replace(self, **gate_arrays(gates, wires, outputs))
        netlist.validate()
        return netlist

    @cached_property
    def inputs(self) -> int:
        """Number of inputs, which is also the bit number of the first gate."""
        return len(self.input_names)

    @cached_property
    def program(self) -> BitProgram:
        """Program that evaluates the gates for 64 samples per word."""
        return BitProgram(self.inputs, self.gates, self.wires)

    def evaluate(self, words: Words) -> Words:
        """Return outputs, uint64 `[outputs, N]`, for inputs `words`, uint64 `[inputs, N]`, with 64 samples per word."""
        # The bits of all gates are in memory together, so samples are evaluated in chunks that fit a cache.
        chunk = max(1, _CHUNK_BYTES // (8 * (self.inputs + len(self.gates))))
        result = np.empty((len(self.outputs), words.shape[1]), dtype=np.uint64)
        for start in range(0, words.shape[1], chunk):
            part = slice(start, start + chunk)
            result[:, part] = self.program.all_bits(words[:, part])[self.outputs]
        return result

    def bit_name(self, bit: int) -> str:
        """Return the name of bit number `bit`: the name of an input, or `g` followed by the index of a gate."""
        return self.input_names[bit] if bit < self.inputs else f"g{bit - self.inputs}"


@dataclass(frozen=True, eq=False, kw_only=True)
class NamedNetlist(Netlist):
    """Netlist with named inputs and outputs that have no predefined meaning."""

    kind, buses = "circuit", ("input", "output")
    __repr__ = brief

    named_inputs: tuple[str, ...]
    named_outputs: tuple[str, ...]

    @property
    def input_names(self) -> Sequence[str]:
        return self.named_inputs

    @property
    def output_names(self) -> Sequence[str]:
        return self.named_outputs


def gate_arrays(gates: npt.ArrayLike, wires: npt.ArrayLike, outputs: npt.ArrayLike) -> dict[str, Any]:
    """Convert gates, wires and outputs to the dtypes and shapes of the fields of a netlist."""
    return {
        "gates": np.asarray(gates, dtype=np.uint8).reshape(-1),
        "wires": np.asarray(wires, dtype=np.int32).reshape(-1, 2),
        "outputs": np.asarray(outputs, dtype=np.int32).reshape(-1),
    }
