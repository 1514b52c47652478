"""Sample a batch from a data set: initial states and targets. Reference implementation of `draw_samples.wgsl`."""

import numpy as np

from difflogic.core import prng
from difflogic.core.bits import IGNORED
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def draw_samples(shape: Shape, control: Array, x: Array, y: Array, state: Array, targets: Array) -> None:
    """Copy `x [N, H, W, C_in]` to the first channels of `state [C, cells]`; the other channels are unchanged.

    `targets [J, loss_channels, cells]` are decoded from `y [N, J, H, W, loss_channels]`. The epoch's data subkey
    selects the samples.
    """
    drawn = events.draw_samples(prng.split(control[c.DATA_KEY])[1], shape.batch, len(x))
    state[: x.shape[-1]] = x[drawn].reshape(-1, x.shape[-1]).T
    codes = y[drawn].transpose(1, 4, 0, 2, 3).reshape(targets.shape)
    targets[:] = np.where(codes < 0, IGNORED, codes)
