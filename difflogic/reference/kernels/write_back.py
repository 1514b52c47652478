"""The batch's last states go back into the sample pool. Twin of `write_back.wgsl`."""

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
    """`state [C, cells]`, rounded, to the `places` in `pool [pool, H, W, C]`; of the worst samples their `fresh` start.

    Those are the `resets` with the largest loss, the first of equals. A flagged epoch writes nothing.
    """
    if control[c.NONFINITE]:
        return
    grid = (shape.batch, shape.height, shape.width, shape.channels)
    # Stable, and of the negated losses: of equals the first comes first, as where kernels count who is ahead.
    worst = np.argsort(-sample_losses, kind="stable")[:resets]
    pool[places] = (state.T > 0.5).reshape(grid)
    pool[places[worst]] = (fresh.T > 0.5).reshape(grid)[worst]
