"""A controller is a function that acts: from an observation of an environment to the number of an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.errors import CircuitError
from difflogic.model.decision import Gates
from difflogic.model.function_netlist import FunctionNetlist, Words, numbered
from difflogic.model.grid import LatchNetlist
from difflogic.model.netlist import gate_arrays
from difflogic.model.thermometer import Thermometer
from difflogic.system.brief import brief

_ENVIRONMENT = re.compile(r"[A-Za-z0-9_./:-]{0,100}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Controller(FunctionNetlist):
    """A controller says what an agent does at each observation. `from_gates` makes one of gates that decide."""

    environment: str = ""
    """The id of what it was trained in, `CartPole-v1`."""
    environment_version: str = ""
    """The version of the package that has the environment."""

    kind, buses = "controller", ("code", "action")
    words = Words("observation", "an observation", "observations", "action", "an action", "actions", "act")
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
        memory: int = 0,
    ) -> Controller:
        """Make a controller of gates that decide: see `difflogic.model.decision`. Raises CircuitError.

        Actions and the dimensions of an observation are numbered unless they are named. `environment`: the id of what
        it was trained in, and the version of the package that has it. `memory`: so many bits, each a number of its own
        behind the others, and an output behind the action's.
        """
        seen = numbered("observation", observations or thermometer.dimensions - memory)
        return cls(
            thermometer=thermometer,
            observations=(*seen, *numbered("memory", memory)),
            choices=numbered("action", actions),
            environment=environment,
            environment_version=environment_version,
            memory=memory,
            **gate_arrays(*gates),
        ).validated()

    @property
    def reads_bits(self) -> bool:
        # An observation is numbers, whatever the thresholds.
        return False

    def machine(self) -> LatchNetlist:
        """The same with latches for what it remembers and reads."""
        shown = [k for k in range(len(self.outputs)) if k < len(self.outputs) - self.memory]
        kept = [*shown, *self.latches.values()]
        gates = gate_arrays(self.gates, self.wires, self.outputs[kept])
        names = tuple(self.output_names[k] for k in kept)
        return LatchNetlist(
            named_inputs=tuple(self.input_names), named_outputs=names, latches=len(self.latches), **gates
        )

    def validate(self) -> None:
        if not all(map(_ENVIRONMENT.fullmatch, (self.environment, self.environment_version))):
            raise CircuitError(f"An environment is called like CartPole-v1, not {self.environment[:80]!r}.")
        rows = self.thermometer.thresholds
        if not 0 <= self.memory <= len(rows) or any(row not in ((), (0.5,)) for row in rows[len(rows) - self.memory :]):
            raise CircuitError(f"The memory of a controller is bits, its last observations, got {self.memory} of them.")
        super().validate()
