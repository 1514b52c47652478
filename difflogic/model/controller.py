"""A controller is a function that acts: from an observation of an environment to the number of an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.errors import CircuitError
from difflogic.model.decision import Gates
from difflogic.model.function_netlist import FunctionNetlist, Words, numbered
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
    ) -> Controller:
        """Make a controller of gates that decide: see `difflogic.model.decision`. Raises CircuitError.

        Actions and the dimensions of an observation are numbered unless they are named. `environment`: the id of what
        it was trained in, and the version of the package that has it.
        """
        return cls(
            thermometer=thermometer,
            observations=numbered("observation", observations or thermometer.dimensions),
            choices=numbered("action", actions),
            environment=environment,
            environment_version=environment_version,
            **gate_arrays(*gates),
        ).validated()

    @property
    def reads_bits(self) -> bool:
        # An observation is numbers, whatever the thresholds.
        return False

    def validate(self) -> None:
        if not all(map(_ENVIRONMENT.fullmatch, (self.environment, self.environment_version))):
            raise CircuitError(f"An environment is called like CartPole-v1, not {self.environment[:80]!r}.")
        super().validate()
