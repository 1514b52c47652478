"""A function as gates: from the bits of a sample to bits of its own, or to the number of a class.

A sample is bits as they are, or numbers, which thresholds turn into bits (`difflogic.model.thermometer`). Inputs are
called by what they say: `edge` where that is a bit, `angle>=0.25` where it is a threshold of a number. Outputs have
names too or, where groups of them are counted and compared, are the bits of the number of a class, the lowest first:
`class[0]` alone for two classes, `class[0]` and `class[1]` for three or four. A number in binary is what hardware takes
as an address, a multiplexer's selection, or a register's value; one line per class would take more gates.

A controller is a function that knows what it acts in: `difflogic.model.controller`. The files of both are read and
written by `difflogic.model.function_json`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import CircuitError
from difflogic.model.circuit import Circuit
from difflogic.model.decision import Layer, decision
from difflogic.model.netlist import Netlist, gate_arrays
from difflogic.model.thermometer import FixedPoint, Integers, Thermometer
from difflogic.system.brief import brief

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_GATE = re.compile(r"g\d+")


class Words(NamedTuple):
    """What a kind of function calls its samples and classes, in prose, and what exported programs call deciding."""

    sample: str
    a_sample: str
    inputs: str
    choice: str
    a_choice: str
    choices: str
    verb: str


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionNetlist(Netlist):
    """A circuit of gates for samples that do not depend on each other: a trained layer, a classifier, a policy.

    Make one with `from_circuit`, and call it with samples.

        >>> layer = difflogic.Circuit.feed_forward([28, 64, 40], seed=0)
        >>> classifier = difflogic.FunctionNetlist.from_circuit(layer, classes=["cat", "dog"])
        >>> classifier(np.zeros((3, 28))).shape
        (3,)
    """

    thermometer: Thermometer
    """The thresholds of each number of a sample; `Thermometer.of_bits` where it is bits."""
    observations: tuple[str, ...]
    """What the numbers or bits of a sample are called."""
    choices: tuple[str, ...] = ()
    """What the classes are called, by their numbers; none where the outputs are bits of their own."""
    named_outputs: tuple[str, ...] = ()
    """What those are called."""
    memory: int = 0
    """So many of the last numbers are bits of a controller's memory: its last outputs of a step before, 0 at first."""

    kind, buses = "function", ("code", "result")
    words: ClassVar[Words] = Words("sample", "a sample", "inputs", "class", "a class", "classes", "classify")
    __repr__ = brief

    @classmethod
    def from_circuit(
        cls,
        circuit: Circuit,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        classes: int | Sequence[str] | None = None,
        thermometer: Thermometer | None = None,
    ) -> FunctionNetlist:
        """The discrete gates of a feed-forward circuit: of each the function with the largest logit.

        Args:
            circuit: A circuit without perception.
            inputs: Names of its inputs, or of the numbers that `thermometer` codes; None: `x0, x1, ...`.
            outputs: Names of its outputs; None: `y0, y1, ...`.
            classes: The outputs are shared out among so many classes, or these, in equal groups, and the class whose
                group has the most ones is the result, of equals the first. None: the outputs are the result.
            thermometer: The thresholds that make the circuit's inputs of numbers; None: they are bits already.

        Returns:
            A netlist with every gate of the circuit and, for classes, those that count and compare.

        Raises:
            CircuitError: The circuit is an automaton, or names or classes do not fit it.
        """
        if circuit.perceive:
            raise CircuitError("A function has no neighbours: of an automaton, use CellNetlist.from_circuit.")
        layers = [
            (wires, logits.argmax(axis=1))
            for wires, logits in zip(circuit.chosen.update_wires, circuit.update, strict=True)
        ]
        return cls.from_layers(layers, thermometer or circuit.channels, inputs, outputs, classes)

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[Layer],
        reads: Thermometer | int,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        classes: int | Sequence[str] | None = None,
    ) -> FunctionNetlist:
        """The same of layers of gates, `(wires [2, n], ids [n])` each, that read so many bits or these thresholds."""
        code = Thermometer.of_bits(reads) if isinstance(reads, int) else reads
        if classes is not None and outputs is not None:
            raise CircuitError("Where outputs are counted for classes, the classes are named, and not the outputs.")
        choices = numbered("class", classes) if classes is not None else ()
        gates = decision(code.bits, layers, len(choices))
        return cls(
            thermometer=code,
            observations=numbered("x", code.dimensions if inputs is None else inputs),
            choices=choices,
            named_outputs=() if choices else numbered("y", len(gates[2]) if outputs is None else outputs),
            **gate_arrays(*gates),
        ).validated()

    @property
    def reads_bits(self) -> bool:
        """Whether a sample is bits, each an input, and not numbers."""
        return self.thermometer == Thermometer.of_bits(self.thermometer.dimensions)

    def validated(self) -> Self:
        """Return the same, checked. Raises CircuitError."""
        self.validate()
        return self

    def validate(self) -> None:
        words = self.words
        if len(self.choices) == 1 or bool(self.choices) == bool(self.named_outputs):
            raise CircuitError(f"A {self.kind} decides between two {words.choices} or more, got {len(self.choices)}.")
        if len(self.observations) != self.thermometer.dimensions:
            raise CircuitError(
                f"{self.thermometer.dimensions} dimensions need as many names, got {len(self.observations)}."
            )
        if not self.thermometer.bits:
            raise CircuitError(f"A {self.kind} reads at least one threshold or bit, got none.")
        if not (self.choices or self.reads_bits):
            raise CircuitError("A function of thresholds decides between classes: name them, or read bits.")
        for names in (self.observations, self.choices, self.named_outputs):
            if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
                raise CircuitError(
                    f"The names of {words.sample}s and {words.choices} are different words of letters, digits and _, "
                    f"got {str(list(names))[:80]}."
                )
        if self.reads_bits and (taken := next(filter(_GATE.fullmatch, self.observations), "")):
            raise CircuitError(f"A bit cannot be called {taken}: gates are called so.")
        super().validate()
        if len(self.outputs) != (bits := len(self.output_names)):
            if not self.choices:
                raise CircuitError(f"{len(self.outputs)} outputs need as many names, got {bits}.")
            raise CircuitError(f"{len(self.choices)} {words.choices} need {bits} outputs, {len(self.outputs)} given.")

    @cached_property
    def input_names(self) -> Sequence[str]:
        if self.reads_bits:
            return self.observations
        values = self.thermometer.thresholds
        return tuple(f"{self.observations[d]}>={values[d][i]!r}" for d, i in self.thermometer.places)

    @cached_property
    def output_names(self) -> Sequence[str]:
        bits = range((len(self.choices) - 1).bit_length())
        shown = tuple(f"{self.words.choice}[{bit}]" for bit in bits) if self.choices else self.named_outputs
        return (*shown, *self.observations[len(self.observations) - self.memory :])

    def __call__(self, samples: npt.ArrayLike) -> Integers:
        """The number of the class, int64 `[N]`, of each sample of `[N, D]`; without classes the bits `[N, outputs]`.

        Behind the bits of the number stand those that are remembered.
        """
        return self.decide(self.thermometer.code(samples))

    def decide_fixed(self, fixed: npt.ArrayLike, form: FixedPoint) -> Integers:
        """The same of samples in fixed point, `form.of(samples)`."""
        return self.decide(form.code(fixed))

    def decide(self, code: Bits) -> Integers:
        """The same at each code, uint8 `[bits, N]`."""
        bits: Integers = self.result_bits(code).astype(np.int64)
        return (bits << np.arange(len(bits))[:, None]).sum(axis=0) if self.choices else bits.T

    def result_bits(self, code: Bits) -> Bits:
        """The outputs, uint8 `[outputs, N]`."""
        return unpack_bits(self.evaluate(pack_bits(code)), code.shape[1])

    @property
    def latches(self) -> dict[int, int]:
        """Of the memory that is read: the bit that is read, and the output that it becomes."""
        shown, seen = len(self.outputs) - self.memory, len(self.observations) - self.memory
        return {bit: shown + d - seen for bit, (d, _) in enumerate(self.thermometer.places) if d >= seen}

    def on(self, thermometer: Thermometer) -> Self:
        """The frame of gates that read another thermometer; those that it holds are not valid any more."""
        return replace(self, thermometer=thermometer)


def numbered(stem: str, names: int | Sequence[str]) -> tuple[str, ...]:
    """The names, or so many of a stem and a number."""
    return tuple(f"{stem}{i}" for i in range(names)) if isinstance(names, int) else tuple(names)
