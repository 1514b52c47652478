"""The whole of `difflogic simplify`: a circuit simplified, then for its start and its task where that is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from difflogic.circuits.synthesis import invariant, own_grid
from difflogic.circuits.synthesis.behaviour import Pruned, pruned
from difflogic.circuits.synthesis.convert import gate_count, gates_once
from difflogic.circuits.synthesis.reachable import on_reachable_states
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, Simplified, silent, simplified
from difflogic.config.schema import Config
from difflogic.errors import UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.system.brief import brief


@dataclass(frozen=True, eq=False)
class PipelineResult:
    """The result of `difflogic simplify` has a circuit for each kind of simplification; None was not asked for."""

    given: CellNetlist
    found: Simplified
    reachable: Simplified | None
    pruned: Pruned | None

    __repr__ = brief

    @property
    def netlist(self) -> CellNetlist:
        """The smallest netlist that was found."""
        return (self.pruned or self.reachable or self.found).netlist

    @property
    def steps(self) -> list[PassReport]:
        return [step for part in (self.found, self.reachable, self.pruned) if part for step in part.steps]

    @property
    def stopped(self) -> bool:
        """Return whether Ctrl-C ended the search or a proof."""
        return any(step.stopped for step in self.steps)

    @property
    def proved(self) -> bool:
        """Return whether all that was to be proved is."""
        return all(part.verdict.equal for part in (self.found, self.reachable) if part)

    def report(self, kind: str, paper_gates: int | None) -> dict[str, Any]:
        """The report as JSON holds it, with what the circuit's source says: its kind, and its gates as the paper counts
        them.

        `gates.once` counts the gates that see one channel alone once for all channels, as the paper does perception.
        """
        netlist, verdict = self.netlist, self.found.verdict
        gates = {"before": gate_count(self.given), "after": gate_count(netlist), "once": gates_once(netlist)}
        return {
            "kind": kind,
            "gates": gates | {"paper": paper_gates},
            "channels": list(netlist.origin),
            "steps": [asdict(step) for step in self.steps],
            "stopped": self.stopped,
            "equal": verdict.equal,
            "how": verdict.how,
            "from_start": self.reachable and {"equal": self.reachable.verdict.equal, "how": self.reachable.verdict.how},
            "task_only": self.pruned and {"rollouts": self.pruned.rollouts},
            "note": self.found.note,
        }


def simplify(
    netlist: CellNetlist,
    to_start: bool = False,
    task: Config | None = None,
    on_pass: OnPass = silent,
    size: tuple[int, int] | None = None,
) -> PipelineResult:
    """Make a netlist smaller without changing what it shows.

        >>> twice_not = difflogic.CellNetlist.build(1, True, gates=[12, 12], wires=[[4, 4], [9, 9]], outputs=[10])
        >>> len(difflogic.simplify(twice_not).netlist.gates)
        0

    Args:
        netlist: The circuit of a cell.
        to_start: Whether it only has to stay the same from its own start on.
        task: The configuration whose rollouts alone have to stay the same; None: everything.
        on_pass: Hears of each pass.
        size: With `to_start`, `(height, width)` of the only grid on which it has to stay the same; None: any grid.

    Returns:
        The smaller netlist, the passes, and whether it was proved. Where Ctrl-C stops a pass that allows it, the result
        is that of the passes before.

    Raises:
        UsageError: `to_start` is asked for, and the start is not known; or `size`, and cells fire at random; or it
            is asked for without `to_start`, or with `task`.
        LimitError: On a grid of this `size` no state comes again within a million updates of cells.
    """
    if to_start:
        invariant.start_of(netlist)
    if size is not None:
        if task is not None or not to_start:
            raise UsageError("--size needs --from-start, and does not go with --task, which uses the task's grid.")
        netlist = own_grid.of_size(netlist, size)
    found = simplified(netlist, on_pass)
    on_its_states = on_reachable_states if size is None else own_grid.on_own_grid
    reached = on_its_states(found.netlist, on_pass) if to_start and not found.stopped else None
    done = reached or found
    smaller = None if task is None or done.steps[-1].stopped else pruned(done.netlist, task, on_pass)
    return PipelineResult(netlist, found, reached, smaller)
