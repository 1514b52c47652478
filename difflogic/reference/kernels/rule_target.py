"""Compute targets by applying a rule to the initial states. Reference implementation of `rule_target.wgsl`."""

import numpy as np

from difflogic.core import rules
from difflogic.engine.shape import Array, Shape


def rule_target(shape: Shape, state: Array, rule: Array, targets: Array) -> None:
    """Compute `targets [1, cells]`: the truth table `rule [512]` applied once to channel 0 of `state [C, cells]`."""
    grids = state[0].reshape(shape.batch, shape.height, shape.width).astype(np.uint8)
    targets[0] = rules.apply(rule, grids, shape.periodic).reshape(-1)
