"""Write the batch's last states back into the pool. Reference implementation of `write_back.wgsl`."""

import numpy as np

from difflogic.engine import control as c
from difflogic.engine.shape import Array, Shape


def write_back(
    shape: Shape,
    resets: int,
    control: Array,
    state: Array,
    fresh: Array,
    sample_losses: Array,
    places: Array,
    pool: Array,
) -> None:
    """Write `state [C, cells]`, rounded to bits, to the indices `places [B]` of `pool [pool, H, W, C]`.

    The `resets` samples with the largest losses (of equal losses, the first) are replaced by the new initial states in
    `fresh`. If NONFINITE is set, nothing is written.
    """
    if control[c.NONFINITE]:
        return
    grid = (shape.batch, shape.height, shape.width, shape.channels)
    # A stable sort of the negated losses puts the first of equals first, as the kernels do.
    worst = np.argsort(-sample_losses, kind="stable")[:resets]
    pool[places] = (state.T > 0.5).reshape(grid)
    pool[places[worst]] = (fresh.T > 0.5).reshape(grid)[worst]
