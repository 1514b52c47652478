"""ABC's model checker, `pdr`, decides claims about every start: a grid and its claim are a circuit with latches.

It knows nothing of cells or of three values. It finds an invariant, a set of states that holds every start, that no
step leaves, and that has no wrong state old enough, and then checks it. What contradicts the claim it shows by a start.
Source: Een, Mishchenko, Brayton, *Efficient implementation of property directed reachability* (2011).
"""

import re

import numpy as np

from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.blif import to_blif
from difflogic.circuits.synthesis.convert import lean
from difflogic.circuits.synthesis.every_start import EveryStart
from difflogic.core.bits import Bits
from difflogic.errors import ToolError
from difflogic.model.grid import Grid

METHOD = f"{tools.ABC} pdr"
_GRACE = 30.0
"""Seconds over its limit after which it is stopped."""


def always(grid: Grid, target: Bits, seconds: float) -> EveryStart:
    """Does every start show `target`, that of the grid's claim, after its steps and ever after?

    A counterexample is believed where the circuit itself, from that start, is wrong after so many steps. Raises
    ToolError, and CircuitError for a grid of more gates than a file should have.
    """
    machine = grid.with_cell(lean(grid.cell)).machine()
    starts, latches = machine.input_names[: machine.first_latch], machine.input_names[machine.first_latch :]
    shown = machine.output_names[: -machine.latches]
    blif = to_blif(
        machine, starts, shown, "grid", dict(zip(latches, machine.output_names[-len(latches) :], strict=True))
    )
    limit = max(1, round(seconds))
    ask = f"read_blif grid.blif; strash; pdr -T {limit}; write_cex -n /dev/stdout"
    said = tools.run(tools.ABC, ["-q", ask], {"grid.blif": blif}, limit + _GRACE)
    if "was asserted in frame" in said:
        ones = set(re.findall(r"^(\S+)@0=1", said, flags=re.MULTILINE))
        start = np.array([name in ones for name in starts], dtype=np.uint8).reshape(grid.start.shape)
        return _refuted(grid, target, start, int((re.findall(r"asserted in frame (\d+)", said) or "0")[0]))
    if "Property proved" in said:
        return EveryStart(True, METHOD, "it found an invariant, and checked it", from_step=grid.steps)
    if "UNDECIDED" in said:
        return EveryStart(None, METHOD, f"{tools.ABC} had not decided after {limit} s")
    raise ToolError(f"{tools.ABC} gave no verdict: {said.strip()[-200:]!r}")


def _refuted(grid: Grid, target: Bits, start: Bits, wrong_at: int) -> EveryStart:
    # ABC may show a start whose picture is wrong only some steps after the compared one, at `wrong_at`. The state that
    # it becomes `wrong_at - steps` steps later is a start as well, and is wrong at the compared step.
    start = grid.cell.after(start, wrong_at - grid.steps)
    if np.array_equal(grid.cell.after(start, grid.steps)[..., : target.shape[-1]], target):
        raise ToolError(f"{tools.ABC} gave a counterexample from which the circuit is right.")
    return EveryStart(False, METHOD, f"a start is wrong at step {grid.steps}", counterexample=start)
