"""Model checking of claims about every initial state with ABC's `pdr`, on a circuit with latches for grid and claim.

ABC searches for an inductive invariant and verifies it: a set of states that contains every initial state, that no step
leaves, and in which the claim is true. A counterexample is an initial state.
Source: Een, Mishchenko, Brayton, *Efficient implementation of property directed reachability* (2011).
"""

import re
from dataclasses import replace

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
"""Number of seconds after ABC's own time limit at which its process is stopped."""


def always(grid: Grid, target: Bits, seconds: float) -> EveryStart:
    """Decide if every initial state leads to `target` after the number of steps in the grid's claim, and remains there.

    A rollout of the circuit confirms each counterexample. Raises ToolError, or CircuitError if the grid has too many
    gates for a file.
    """
    machine = replace(grid, cell=lean(grid.cell)).machine()
    starts, latches = machine.input_names[: machine.first_latch], machine.input_names[machine.first_latch :]
    shown, following = machine.output_names[: -machine.latches], machine.output_names[-machine.latches :]
    blif = to_blif(machine, starts, shown, "grid", dict(zip(latches, following, strict=True)))
    limit = max(1, round(seconds))
    script = f"read_blif grid.blif; strash; pdr -T {limit}; write_cex -n /dev/stdout"
    output = tools.run(tools.ABC, ["-q", script], {"grid.blif": blif}, limit + _GRACE)
    if "was asserted in frame" in output:
        ones = set(re.findall(r"^(\S+)@0=1", output, flags=re.MULTILINE))
        start = np.array([name in ones for name in starts], dtype=np.uint8).reshape(grid.start.shape)
        # The image may be wrong only after the compared step, at step `wrong_at`. The state `wrong_at - steps` steps
        # after ABC's initial state is also an initial state, and its rollout is wrong at the compared step.
        wrong_at = int((re.findall(r"asserted in frame (\d+)", output) or "0")[0])
        start = grid.cell.after(start, wrong_at - grid.steps)
        if np.array_equal(grid.cell.after(start, grid.steps)[..., : target.shape[-1]], target):
            raise ToolError(f"{tools.ABC} gave a counterexample from which the circuit reaches the target.")
        return EveryStart(False, METHOD, f"a start is wrong at step {grid.steps}", counterexample=start)
    if "Property proved" in output:
        return EveryStart(True, METHOD, "it found an invariant, and checked it", from_step=grid.steps)
    if "UNDECIDED" in output:
        return EveryStart(None, METHOD, f"{tools.ABC} had not decided after {limit} s")
    raise ToolError(f"{tools.ABC} gave no result: {output.strip()[-200:]!r}")
