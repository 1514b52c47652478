"""A train step, or the part of it that a call wants, as a list of phases.

In each phase every tile, or share of the gates or samples, is one item of work; see `runner`.
"""

import numpy as np

from difflogic.engine.job import Job
from difflogic.engine.shape import Array, Shape

COEFFICIENTS, DRAW, TARGET, DAMAGE, FORWARD, BACKWARD, D_STATE, GRADIENTS, COMMIT, ADAMW = range(10)
NAMES = (
    "prepare",
    "prepare",
    "prepare",
    "prepare",
    "gate_forward",
    "gate_backward",
    "gate_backward",
    "gradients",
    "commit",
    "adamw",
)
"""What a phase is called where it is timed: all that comes before the first step is one."""


def rollout(shape: Shape) -> Array:
    """Run from the given start grids to the last state."""
    return _list([COEFFICIENTS, *_damage(shape)], shape)


def gradients(shape: Shape) -> Array:
    """Compute the gradients too, from given targets."""
    return np.concatenate([rollout(shape), _backward(shape)])


def step(shape: Shape) -> Array:
    """Compute the new logits too."""
    return np.concatenate([gradients(shape), [[ADAMW, 0]]])


def epoch(shape: Shape, job: Job, spread: Array) -> Array:
    """A whole train step whose start grids, masks and damage are drawn from the keys; `spread` as in `StepGrids`."""
    # DRAW makes the coefficients as well. A rule's target comes after the start is drawn and before it is damaged: the
    # automaton is to reach what the whole start asks for. Samples come with their targets, over what was drawn.
    first = [DRAW, *([TARGET] if job.target is None else []), *_damage(shape)]
    return np.concatenate([_list(first, shape), _backward(shape, spread), [[ADAMW, 0]]])


COEFFICIENTS_ALONE = np.array([[COEFFICIENTS, 0]])
"""For new logits; `forward` and `backward` take what it leaves."""


def forward(shape: Shape) -> Array:
    """Run the steps, and nothing else."""
    return _list([], shape)


def backward(shape: Shape, spread: Array | None = None) -> Array:
    """Go back from the given adjoints to those of the start, and to the gradients."""
    return np.array([*_steps_back(shape, spread), [D_STATE, 0], [GRADIENTS, 0]])


def _damage(shape: Shape) -> list[int]:
    """Later damage and faults are done where the state is made."""
    return [DAMAGE] if 0 in shape.damage_steps or shape.faults.states else []


def _list(first: list[int], shape: Shape) -> Array:
    """int64 `[phases, 2]` of kind and CA step, up to the last state."""
    return np.array([[kind, 0] for kind in first] + [[FORWARD, at] for at in range(shape.steps)])


def _backward(shape: Shape, spread: Array | None = None) -> Array:
    return np.array([*_steps_back(shape, spread), [GRADIENTS, 0], [COMMIT, 0]])


def _steps_back(shape: Shape, spread: Array | None) -> list[list[int]]:
    # Each CA step is a phase of its own, since a tile reads what its neighbours wrote in the step before: threads meet
    # between two steps and nowhere else. Where cells were spread out, another tile may hold the rest of a cell's
    # adjoint, which is a phase more.
    steps: list[list[int]] = []
    for at in reversed(range(shape.steps)):
        steps += [[BACKWARD, at]] if spread is None or not spread[at] else [[D_STATE, at + 1], [BACKWARD, at]]
    return steps
