"""A circuit simplified, and pruned to its task where that is asked for, with the report that both come to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from difflogic.circuits.convert import gate_count
from difflogic.circuits.simplify import Simplified, Step, simplified
from difflogic.circuits.source import Source
from difflogic.circuits.task import Pruned, pruned
from difflogic.errors import UsageError
from difflogic.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Reduction:
    """What `difflogic simplify` makes of a circuit."""

    given: Source
    found: Simplified
    pruned: Pruned | None

    @property
    def netlist(self) -> Netlist:
        """The smallest."""
        return self.pruned.netlist if self.pruned else self.found.netlist

    @property
    def steps(self) -> tuple[Step, ...]:
        return (*self.found.steps, *(self.pruned.steps if self.pruned else ()))

    def report(self) -> dict[str, Any]:
        """As JSON holds it."""
        gates = gate_count(self.given.netlist), gate_count(self.netlist)
        return {
            "kind": self.given.kind,
            "gates": {"before": gates[0], "after": gates[1], "paper": self.given.paper_gates},
            "channels": list(self.netlist.origin),
            "steps": [asdict(step) for step in self.steps],
            "equal": self.found.verdict.equal,
            "how": self.found.verdict.how,
            "task_only": None if self.pruned is None else {"rollouts": self.pruned.rollouts},
            "note": self.found.note,
        }


def reduced(given: Source, to_task: bool = False) -> Reduction:
    """Simplify; `to_task`: then keep the trained behaviour alone. Raises UsageError where that is not known."""
    if to_task and given.config is None:
        raise UsageError(f"--task needs a run, which knows its task, but the circuit is {given.kind}.")
    found = simplified(given.netlist)
    if not to_task:
        return Reduction(given, found, None)
    assert given.config is not None
    return Reduction(given, found, pruned(found.netlist, given.config))
