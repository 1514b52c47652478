"""Hard circuits as a list of gates in topological order between named inputs and outputs, 64 samples evaluated at once.

A circuit computes on a vector of bits: first its inputs, then one bit per gate, in order. A gate reads two earlier bits
and is one of the sixteen (`difflogic.core.gates`: the id is the truth table). Its outputs are some of the bits.

What inputs and outputs mean is said by those who have them: the cell of an automaton
(`difflogic.model.cell_netlist.CellNetlist`), or a controller (`difflogic.model.controller.Controller`).
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
"""`evaluate` holds the bits of all gates for so much input at a time: what a cache and a small machine bear."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Netlist(ABC):
    """Gates between inputs and outputs, in topological order. A bit is the number of an input, or of a gate after them.

    `gates`, uint8 `[n]`, are truth tables. `wires`, int32 `[n, 2]`, and `outputs`, int32 `[outputs]`, are numbers of
    bits.

        >>> net = difflogic.CellNetlist.build(1, False, gates=[1], wires=[[3, 5]], outputs=[9])
        >>> net.bit_name(9)
        'g0'
    """

    gates: Bits
    wires: Index
    outputs: Index

    kind: ClassVar[str]
    """What it is a netlist of, in a word."""
    buses: ClassVar[tuple[str, str]]
    """What languages call the inputs together, and the outputs."""

    __repr__ = brief
    _repr_html_ = in_frame

    @property
    @abstractmethod
    def input_names(self) -> Sequence[str]:
        """Return what the inputs are called, in their order; each name is a word without blanks."""

    @property
    @abstractmethod
    def output_names(self) -> Sequence[str]:
        """Return what the outputs are called, in their order."""

    @property
    def shown(self) -> Sequence[str]:
        """The names of the outputs that it is for; the others are its own memory."""
        return self.output_names

    def validate(self) -> None:
        """Raises CircuitError where the gates are not what the class says of them."""
        # What reads only earlier bits can have no cycle, and one walk from first to last evaluates it.
        count = len(self.gates)
        before = self.inputs + np.arange(count)
        if len(self.wires) != count or (count and self.gates.max() >= gates.GATE_COUNT):
            raise CircuitError(f"{count} gates need two wires each and ids from 0 to {gates.GATE_COUNT - 1}.")
        if (self.wires < 0).any() or (self.wires >= before[:, None]).any():
            raise CircuitError("A gate may read the inputs and earlier gates only.")
        if (self.outputs < 0).any() or (self.outputs >= self.inputs + count).any():
            raise CircuitError("An output must be an input or a gate.")

    def with_gates(self, gates: npt.ArrayLike, wires: npt.ArrayLike, outputs: npt.ArrayLike) -> Self:
        """Other gates between the same inputs and outputs. Raises CircuitError."""
        made = replace(self, **gate_arrays(gates, wires, outputs))
        made.validate()
        return made

    @cached_property
    def inputs(self) -> int:
        """Return how many there are: the number of the first gate's bit."""
        return len(self.input_names)

    @cached_property
    def program(self) -> BitProgram:
        """The gates alone, without their meaning."""
        return BitProgram(self.inputs, self.gates, self.wires)

    def evaluate(self, words: Words) -> Words:
        """The outputs uint64 `[outputs, N]` for inputs uint64 `[inputs, N]`, 64 samples per word."""
        # All bits of all gates are held at once, so the samples go through in parts that a cache can bear.
        chunk = max(1, _CHUNK_BYTES // (8 * (self.inputs + len(self.gates))))
        result = np.empty((len(self.outputs), words.shape[1]), dtype=np.uint64)
        for start in range(0, words.shape[1], chunk):
            part = slice(start, start + chunk)
            result[:, part] = self.program.all_bits(words[:, part])[self.outputs]
        return result

    def bit_name(self, bit: int) -> str:
        """The name of an input, or `g` and the number of a gate."""
        return self.input_names[bit] if bit < self.inputs else f"g{bit - self.inputs}"


@dataclass(frozen=True, eq=False, kw_only=True)
class NamedNetlist(Netlist):
    """Gates between inputs and outputs that are no more than their names."""

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
    """The fields of a netlist, in the types that it holds them in."""
    return {
        "gates": np.asarray(gates, dtype=np.uint8).reshape(-1),
        "wires": np.asarray(wires, dtype=np.int32).reshape(-1, 2),
        "outputs": np.asarray(outputs, dtype=np.int32).reshape(-1),
    }
