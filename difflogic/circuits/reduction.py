"""A circuit simplified, then for its start and its task where that is asked for, with the report that all come to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from difflogic.circuits import invariant
from difflogic.circuits.convert import gate_count, gates_once
from difflogic.circuits.from_start import Reached, from_start
from difflogic.circuits.simplify import Simplified, Step, Tell, silent, simplified
from difflogic.circuits.source import Source
from difflogic.circuits.task import Pruned, pruned
from difflogic.errors import UsageError
from difflogic.netlist import Netlist


@dataclass(frozen=True, eq=False)
class Reduction:
    """What `difflogic simplify` makes of a circuit; None is what was not asked for."""

    given: Source
    found: Simplified
    reached: Reached | None
    pruned: Pruned | None

    @property
    def netlist(self) -> Netlist:
        """The smallest."""
        return (self.pruned or self.reached or self.found).netlist

    @property
    def steps(self) -> list[Step]:
        return [step for part in (self.found, self.reached, self.pruned) if part for step in part.steps]

    @property
    def proved(self) -> bool:
        """Whether all that was to be proved is."""
        return all(part.verdict.equal for part in (self.found, self.reached) if part)

    def report(self) -> dict[str, Any]:
        """As JSON holds it; `gates.once` counts those of one channel's cells once, as the paper does perception."""
        netlist, verdict = self.netlist, self.found.verdict
        gates = {"before": gate_count(self.given.netlist), "after": gate_count(netlist), "once": gates_once(netlist)}
        return {
            "kind": self.given.kind,
            "gates": gates | {"paper": self.given.paper_gates},
            "channels": list(netlist.origin),
            "steps": [asdict(step) for step in self.steps],
            "equal": verdict.equal,
            "how": verdict.how,
            "from_start": self.reached and {"equal": self.reached.verdict.equal, "how": self.reached.verdict.how},
            "task_only": self.pruned and {"rollouts": self.pruned.rollouts},
            "note": self.found.note,
        }


def reduced(given: Source, to_start: bool = False, to_task: bool = False, tell: Tell = silent) -> Reduction:
    """Simplify, so that nothing changes; `to_start`: from its own start on; `to_task`: in the trained behaviour alone.

    `tell` hears of each pass. Raises UsageError where start or task are not known.
    """
    if to_task and given.config is None:
        raise UsageError(f"--task needs a run, which knows its task, but the circuit is {given.kind}.")
    if to_start:
        invariant.start_of(given.netlist)
    found = simplified(given.netlist, tell)
    reached = from_start(found.netlist, tell) if to_start else None
    smaller = None
    if to_task:
        assert given.config is not None
        smaller = pruned((reached or found).netlist, given.config, tell)
    return Reduction(given, found, reached, smaller)
