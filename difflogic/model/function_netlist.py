"""Functions: hard circuits that map the bits of a sample to output bits or to the number of a class.

A sample consists of bits, or of numbers that thresholds convert to bits (`difflogic.model.thermometer`). An input is
named after its bit, `edge`, or its threshold, `angle>=0.25`. Outputs are named bits, or the binary number of a class,
the lowest bit first: `class[0]` for two classes, `class[0]` and `class[1]` for three or four. Hardware uses a binary
number as an address, a multiplexer's selection or a register's value; one output per class would take more gates.

A controller is a function with an environment: `difflogic.model.controller`. `difflogic.model.function_json` reads and
writes the files of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    """Nouns for the samples, inputs and classes of a kind of function, and the function name in exported programs."""

    sample: str
    a_sample: str
    inputs: str
    choice: str
    a_choice: str
    choices: str
    verb: str


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionNetlist(Netlist):
    """Hard circuit that maps independent samples to outputs, such as a trained layer, a classifier or a policy.

    `from_circuit` makes a function. Call the function with samples to evaluate it.

        >>> layer = difflogic.Circuit.feed_forward([28, 64, 40], seed=0)
        >>> classifier = difflogic.FunctionNetlist.from_circuit(layer, classes=["cat", "dog"])
        >>> classifier(np.zeros((3, 28))).shape
        (3,)
    """

    thermometer: Thermometer
    """Thresholds for each number of a sample; `Thermometer.of_bits(D)` if samples consist of D bits."""
    observations: tuple[str, ...]
    """Names of the numbers or bits that form a sample."""
    choices: tuple[str, ...] = ()
    """Names of the classes; empty if the result is the output bits."""
    named_outputs: tuple[str, ...] = ()
    """Names of the output bits; empty if there are classes."""
    memory: int = 0
    """Number of memory bits of a controller: its last outputs, which become the last numbers of its next sample."""

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
        """Discretise a feed-forward circuit: replace each gate by its most probable function.

        Args:
            circuit: A circuit without perception.
            inputs: Names of the circuit's inputs, or of the numbers that `thermometer` encodes; None for `x0, x1, ...`.
            outputs: Names of the circuit's outputs; None for `y0, y1, ...`.
            classes: Names or number of classes. The outputs form equal groups, one per class, and the result is the
                first class with the most ones in its group. If None, the result is the output bits.
            thermometer: Thresholds that convert numbers to the circuit's inputs; None if samples are bits.

        Returns:
            A netlist with all gates of the circuit and, with classes, the gates that count and compare outputs.

        Raises:
            CircuitError: The circuit is an automaton, or the number of names or classes is invalid for it.
        """
        if circuit.perceive:
            raise CircuitError("Expected a feed-forward circuit, got an automaton: use CellNetlist.from_circuit.")
        hard = [logits.argmax(axis=1) for logits in circuit.update]
        layers = list(zip(circuit.chosen.update_wires, hard, strict=True))
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
        """Make a function from layers of gates; `reads` is the number of input bits, or the inputs' thermometer."""
        code = Thermometer.of_bits(reads) if isinstance(reads, int) else reads
        if classes is not None and outputs is not None:
            raise CircuitError("Expected names of classes or of outputs, got both: name only the classes.")
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
        """True if samples consist of bits, each of which is an input."""
        return self.thermometer == Thermometer.of_bits(self.thermometer.dimensions)

    def validated(self) -> Self:
        """Validate the function and return `self`. Raise CircuitError if it is invalid."""
        self.validate()
        return self

    def validate(self) -> None:
        words = self.words
        if len(self.choices) == 1 or bool(self.choices) == bool(self.named_outputs):
            raise CircuitError(f"A {self.kind} needs at least two {words.choices}, got {len(self.choices)}.")
        if len(self.observations) != self.thermometer.dimensions:
            raise CircuitError(
                f"Expected {self.thermometer.dimensions} names, one per dimension, got {len(self.observations)}."
            )
        if not self.thermometer.bits:
            raise CircuitError(f"A {self.kind} needs at least one threshold or bit as input, got none.")
        if not (self.choices or self.reads_bits):
            raise CircuitError("A function with thresholds needs classes: name the classes, or use bits as inputs.")
        for names in (self.observations, self.choices, self.named_outputs):
            if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
                raise CircuitError(
                    "Names must be different, begin with a letter and have at most 40 letters, digits and _, got "
                    f"{str(list(names))[:80]}."
                )
        if self.reads_bits and (taken := next(filter(_GATE.fullmatch, self.observations), "")):
            raise CircuitError(f"A bit cannot be named {taken}, which is the name of a gate.")
        super().validate()
        if len(self.outputs) != (bits := len(self.output_names)):
            if not self.choices:
                raise CircuitError(f"Expected {len(self.outputs)} names, one per output, got {bits}.")
            raise CircuitError(f"{len(self.choices)} {words.choices} need {bits} outputs, got {len(self.outputs)}.")

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
        """Compute the class, or the output bits, of each sample.

        Args:
            samples: Numbers or bits, `[N, D]`.

        Returns:
            The number of each sample's class, int64 `[N]`, with memory bits as its higher bits; for a function without
            classes the output bits, `[N, outputs]`.

        Raises:
            CircuitError: The shape of `samples` is invalid.
        """
        return self.decide(self.thermometer.code(samples))

    def decide_fixed(self, fixed: npt.ArrayLike, form: FixedPoint) -> Integers:
        """Compute the class, or the output bits, of each sample from its fixed-point values, `form.of(samples)`."""
        return self.decide(form.code(fixed))

    def decide(self, code: Bits) -> Integers:
        """Compute the class, or the output bits, for each column of `code`, the input bits uint8 `[bits, N]`."""
        bits: Integers = self.result_bits(code).astype(np.int64)
        return (bits << np.arange(len(bits))[:, None]).sum(axis=0) if self.choices else bits.T

    def result_bits(self, code: Bits) -> Bits:
        """Return the output bits, uint8 `[outputs, N]`, for the input bits `code [bits, N]`."""
        return unpack_bits(self.evaluate(pack_bits(code)), code.shape[1])

    @property
    def latches(self) -> dict[int, int]:
        """Mapping from the index of each memory bit among the inputs to the index of the output with its next value."""
        shown, first = len(self.outputs) - self.memory, len(self.observations) - self.memory
        return {bit: shown + d - first for bit, (d, _) in enumerate(self.thermometer.places) if d >= first}


def numbered(stem: str, names: int | Sequence[str]) -> tuple[str, ...]:
    """Return `names` as a tuple; if `names` is a number n, return n names, `stem` followed by 0, 1, ..., n - 1."""
    return tuple(f"{stem}{i}" for i in range(names)) if isinstance(names, int) else tuple(names)
