"""Controllers: hard circuits that map an observation of an environment to the number of an action."""

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
    """Hard circuit that maps each observation to an agent's action; `from_gates` makes a validated controller."""

    environment: str = ""
    """Gymnasium id of the environment that the controller was trained in, such as `CartPole-v1`."""
    environment_version: str = ""
    """Version of the Python package that provides the environment."""

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
        """Make a validated controller from `gates`, a result of `decision`. Raise CircuitError if they are invalid.

        If `actions` is a number or `observations` is None, default names such as `action0` are used. The `memory` bits
        are the last dimensions of the thermometer, and the outputs after the action's bits.
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
        """Return the controller as a sequential netlist, with one latch for each memory bit that it reads."""
        places = [*range(len(self.outputs) - self.memory), *self.latches.values()]
        gates = gate_arrays(self.gates, self.wires, self.outputs[places])
        inputs, outputs = tuple(self.input_names), tuple(self.output_names[k] for k in places)
        return LatchNetlist(named_inputs=inputs, named_outputs=outputs, latches=len(self.latches), **gates)

    def validate(self) -> None:
        if not all(map(_ENVIRONMENT.fullmatch, (self.environment, self.environment_version))):
            raise CircuitError(f"environment must be a name such as CartPole-v1, got {self.environment[:80]!r}.")
        rows = self.thermometer.thresholds
        if not 0 <= self.memory <= len(rows) or any(row not in ((), (0.5,)) for row in rows[len(rows) - self.memory :]):
            raise CircuitError(f"memory must be 0 to the number of bits at the end of observations, got {self.memory}.")
        super().validate()
