"""Pipeline of `difflogic simplify`: simplification for all inputs, then, if requested, for initial state and task."""

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
    """Results of each kind of simplification; None for a kind that did not run."""

    simplified: Simplified[CellNetlist]
    reachable: Simplified[CellNetlist] | None
    pruned: Pruned | None

    __repr__ = brief

    @property
    def netlist(self) -> CellNetlist:
        """Netlist after the last simplification that ran."""
        return (self.pruned or self.reachable or self.simplified).netlist

    @property
    def steps(self) -> list[PassReport]:
        """Reports of all passes, in order."""
        return [step for part in (self.simplified, self.reachable, self.pruned) if part for step in part.steps]

    @property
    def stopped(self) -> bool:
        """True if Ctrl-C ended a search or a proof."""
        return any(step.stopped for step in self.steps)

    @property
    def proved(self) -> bool:
        """True if all proofs succeeded; pruning to a task has none."""
        return all(part.verdict.equal for part in (self.simplified, self.reachable) if part)


def simplify(
    netlist: CellNetlist,
    to_start: bool = False,
    task: Config | None = None,
    on_pass: OnPass = silent,
    size: tuple[int, int] | None = None,
    effort: int = 1,
) -> PipelineResult:
    """Simplify a netlist without changing its visible channels, as described in `difflogic.actions.simplify`.

    Args:
        netlist: The netlist to simplify.
        to_start: True to preserve behaviour only in states that follow from the initial state of `netlist`.
        task: Configuration; if given, behaviour is preserved only in the rollouts of its task.
        on_pass: Callback after each pass.
        size: `(height, width)` of the only grid on which the behaviour must be preserved; None for all grids.
        effort: Factor for the number of attempts without a gain after which a search ends.

    Raises:
        UsageError: The initial state is unknown, cells fire at random although `size` is given, or `size` is given
            without `to_start` or with `task`.
        LimitError: No state repeats on a grid of `size` within a million cell updates.
    """
    if to_start:
        invariant.start_of(netlist)
    if size is not None:
        if task is not None or not to_start:
            raise UsageError("`size` requires `from_start`. Omit `size` with `task`, which uses the task's grid.")
        netlist = own_grid.of_size(netlist, size)
    first = simplified(netlist, on_pass, effort)
    # Simplification for all inputs is first. Each later kind begins with the result of the previous kind, which is
    # proved equal for all inputs that still count, so that later proofs compare smaller circuits.
    on_its_states = on_reachable_states if size is None else own_grid.on_own_grid
    reachable = on_its_states(first.netlist, on_pass) if to_start and not first.stopped else None
    last = reachable or first
    smaller = None if task is None or last.steps[-1].stopped else pruned(last.netlist, task, on_pass)
    return PipelineResult(first, reachable, smaller)
