"""Pipeline of `difflogic simplify`: simplification, then that for the initial state and for the task if requested."""

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
    """Circuit after each kind of simplification; None if it was not requested."""

    simplified: Simplified[CellNetlist]
    reachable: Simplified[CellNetlist] | None
    pruned: Pruned | None

    __repr__ = brief

    @property
    def netlist(self) -> CellNetlist:
        """Smallest netlist."""
        return (self.pruned or self.reachable or self.simplified).netlist

    @property
    def steps(self) -> list[PassReport]:
        """Reports of all passes."""
        return [step for part in (self.simplified, self.reachable, self.pruned) if part for step in part.steps]

    @property
    def stopped(self) -> bool:
        """True if Ctrl-C ended the search or a proof."""
        return any(step.stopped for step in self.steps)

    @property
    def proved(self) -> bool:
        """True if all proofs succeeded."""
        return all(part.verdict.equal for part in (self.simplified, self.reachable) if part)


def simplify(
    netlist: CellNetlist,
    to_start: bool = False,
    task: Config | None = None,
    on_pass: OnPass = silent,
    size: tuple[int, int] | None = None,
    effort: int = 1,
) -> PipelineResult:
    """Simplify a netlist without changing its visible channels: see `difflogic.actions.simplify`.

    Args:
        netlist: The netlist.
        to_start: Keep only the states that follow from its own initial state.
        task: Keep only the rollouts of this configuration.
        on_pass: Callback after each pass.
        size: `(height, width)` of the only grid on which the circuit must stay the same.
        effort: Factor of the attempts without a gain.

    Raises:
        UsageError: The initial state is not known, cells fire at random on a grid of `size`, or `size` is given without
            `to_start` or with `task`.
        LimitError: No state repeats on that grid within a million updates of cells.
    """
    if to_start:
        invariant.start_of(netlist)
    if size is not None:
        if task is not None or not to_start:
            raise UsageError("`size` needs `from_start`, and does not go with `task`, which uses the task's grid.")
        netlist = own_grid.of_size(netlist, size)
    first = simplified(netlist, on_pass, effort)
    # From the strictest to the loosest: each part begins with the result of the part before, which is proved equal for
    # all inputs that still count. So later proofs are of smaller circuits.
    on_its_states = on_reachable_states if size is None else own_grid.on_own_grid
    reachable = on_its_states(first.netlist, on_pass) if to_start and not first.stopped else None
    last = reachable or first
    smaller = None if task is None or last.steps[-1].stopped else pruned(last.netlist, task, on_pass)
    return PipelineResult(first, reachable, smaller)
