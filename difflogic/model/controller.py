"""A controller as gates: from the thermometer code of an observation to the number of an action, the decision included.

Its inputs are named by what they say, `angle>=0.25`; its outputs are the bits of the action's number, the lowest first:
`action[0]` alone for two actions, `action[0]` and `action[1]` for three or four. A number in binary is what hardware
takes as an address, a multiplexer's selection, or a register's value; one line per action would take more gates.

Its file is controller.json: `difflogic.model.function_json`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import CircuitError
from difflogic.model.decision import Gates
from difflogic.model.netlist import Netlist, gate_arrays
from difflogic.model.thermometer import FixedPoint, Integers, Thermometer
from difflogic.system.brief import brief

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_./:-]{0,100}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Controller(Netlist):
    """A controller says what an agent does at each observation. `from_gates` makes one of gates that decide."""

    thermometer: Thermometer
    observations: tuple[str, ...]
    """What the dimensions of an observation are called."""
    actions: tuple[str, ...]
    """What the actions are called, by their numbers."""
    environment: str = ""
    """The id of what it was trained in, `CartPole-v1`."""
    environment_version: str = ""
    """The version of the package that has the environment."""

    kind, buses = "controller", ("code", "action")
    __repr__ = brief

    @classmethod
    def from_gates(
        cls,
        thermometer: Thermometer,
        gates: Gates,
        actions: int | Sequence[str],
        observations: Sequence[str] | None = None,
        environment: str = "",
        environment_version: str = "",
    ) -> Controller:
        """Make a controller of gates that decide: see `difflogic.model.decision`. Raises CircuitError.

        Actions and the dimensions of an observation are numbered unless they are named. `environment`: the id of what
        it was trained in, and the version of the package that has it.
        """
        names = tuple(f"action{i}" for i in range(actions)) if isinstance(actions, int) else tuple(actions)
        made = cls(
            thermometer=thermometer,
            observations=tuple(observations or (f"observation{d}" for d in range(thermometer.dimensions))),
            actions=names,
            environment=environment,
            environment_version=environment_version,
            **gate_arrays(*gates),
        )
        made.validate()
        return made

    def validate(self) -> None:
        if len(self.actions) < 2:
            raise CircuitError(f"A controller decides between two actions or more, got {len(self.actions)}.")
        if len(self.observations) != self.thermometer.dimensions:
            raise CircuitError(
                f"{self.thermometer.dimensions} dimensions need as many names, got {len(self.observations)}."
            )
        if not self.thermometer.bits:
            raise CircuitError("A controller reads at least one threshold, got none.")
        for names in (self.observations, self.actions):
            if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
                raise CircuitError(
                    "The names of observations and actions are different words of letters, digits and _, got "
                    f"{str(list(names))[:80]}."
                )
        if not all(map(_ENVIRONMENT.fullmatch, (self.environment, self.environment_version))):
            raise CircuitError(f"An environment is called like CartPole-v1, not {self.environment[:80]!r}.")
        super().validate()
        if len(self.outputs) != (bits := (len(self.actions) - 1).bit_length()):
            raise CircuitError(f"{len(self.actions)} actions need {bits} outputs, {len(self.outputs)} given.")

    @cached_property
    def input_names(self) -> Sequence[str]:
        values = self.thermometer.thresholds
        return tuple(f"{self.observations[d]}>={values[d][i]!r}" for d, i in self.thermometer.places)

    @cached_property
    def output_names(self) -> Sequence[str]:
        return tuple(f"action[{bit}]" for bit in range((len(self.actions) - 1).bit_length()))

    def act(self, observations: npt.ArrayLike) -> Integers:
        """The action's number, int64 `[N]`, at each of the observations `[N, D]`."""
        return self.decide(self.thermometer.code(observations))

    def act_fixed(self, fixed: npt.ArrayLike, form: FixedPoint) -> Integers:
        """Act on observations in fixed point, `form.of(observations)`."""
        return self.decide(form.code(fixed))

    def decide(self, code: Bits) -> Integers:
        """The action's number, int64 `[N]`, at each code uint8 `[bits, N]`."""
        bits = unpack_bits(self.evaluate(pack_bits(code)), code.shape[1])
        numbers: Integers = (bits.astype(np.int64) << np.arange(len(bits))[:, None]).sum(axis=0)
        return numbers

    def on(self, thermometer: Thermometer) -> Controller:
        """The frame of gates that read another thermometer; those that it holds are not valid any more."""
        return replace(self, thermometer=thermometer)
