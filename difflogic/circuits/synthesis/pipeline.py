"""The whole of `difflogic simplify`: a circuit simplified, then for its start and its task where that is asked for."""

from dataclasses import dataclass

from difflogic.circuits.synthesis import invariant, own_grid
from difflogic.circuits.synthesis.behaviour import Pruned, pruned
from difflogic.circuits.synthesis.reachable import on_reachable_states
from difflogic.circuits.synthesis.simplify import OnPass, PassReport, Simplified, silent, simplified
from difflogic.config.schema import Config
from difflogic.errors import UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.system.brief import brief


@dataclass(frozen=True, eq=False)
class PipelineResult:
    """The result of `difflogic simplify` has a circuit for each kind of simplification; None was not asked for."""

    found: Simplified[CellNetlist]
    reachable: Simplified[CellNetlist] | None
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


def simplify(
    netlist: CellNetlist,
    to_start: bool = False,
    task: Config | None = None,
    on_pass: OnPass = silent,
    size: tuple[int, int] | None = None,
    effort: int = 1,
) -> PipelineResult:
    """Make a netlist smaller without changing what it shows: see `difflogic.actions.simplify`.

    With `to_start` it stays the same from its own start on, with `task` on the rollouts of that configuration, with
    `size`, `(height, width)`, on that grid. Raises UsageError where the start is not known, where cells fire at random
    on a grid of that size, or where `size` comes without `to_start` or with `task`; LimitError where on that grid no
    state comes again within a million updates of cells.
    """
    if to_start:
        invariant.start_of(netlist)
    if size is not None:
        if task is not None or not to_start:
            raise UsageError("`size` needs `from_start`, and does not go with `task`, which uses the task's grid.")
        netlist = own_grid.of_size(netlist, size)
    found = simplified(netlist, on_pass, effort)
    # From the strictest to the loosest: each part begins with the netlist of the one before, which is proved to do the
    # same wherever the next one still looks. So every proof is of a smaller circuit than the first.
    on_its_states = on_reachable_states if size is None else own_grid.on_own_grid
    reached = on_its_states(found.netlist, on_pass) if to_start and not found.stopped else None
    done = reached or found
    smaller = None if task is None or done.steps[-1].stopped else pruned(done.netlist, task, on_pass)
    return PipelineResult(found, reached, smaller)
