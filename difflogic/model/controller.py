"""Controllers: functions from an observation of an environment to the number of an action."""

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
    """Hard circuit that chooses an agent's action at each observation; `from_gates` makes a checked controller."""

    environment: str = ""
    """Gymnasium id of the environment that the controller was trained in, such as `CartPole-v1`."""
    environment_version: str = ""
    """Version of the package that contains the environment."""

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
        """Make a checked controller from gates of `difflogic.model.decision`. Raise CircuitError if they do not fit.

        Actions and observations have default names such as `action0` unless they are named. The `memory` bits are the
        last dimensions of the thermometer, and the outputs that follow the action's bits.
        """
        names = numbered("observation", observations or thermometer.dimensions - memory)
        return cls(
            thermometer=thermometer,
            observations=(*names, *numbered("memory", memory)),
            choices=numbered("action", actions),
            environment=environment,
            environment_version=environment_version,
            memory=memory,
            **gate_arrays(*gates),
        ).validated()

    @property
    def reads_bits(self) -> bool:
        # Observations are numbers, even if each has the single threshold 0.5.
        return False

    def machine(self) -> LatchNetlist:
        """Return the controller as a sequential netlist, with latches for the memory bits that it reads."""
        places = [*range(len(self.outputs) - self.memory), *self.latches.values()]
        gates = gate_arrays(self.gates, self.wires, self.outputs[places])
        names = tuple(self.output_names[k] for k in places)
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
