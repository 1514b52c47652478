"""Lists of phases that make up a train step, or a part of one.

In each phase every block of tiles, or share of the gates or samples, is one item of work; see `runner`.
"""

import numpy as np

from difflogic.engine.job import Job
from difflogic.engine.shape import Array, Shape

COEFFICIENTS, DRAW, TARGET, DAMAGE, FORWARD, BACKWARD, D_STATE, GRADIENTS, COMMIT, ADAMW = range(10)
NAMES = (*["prepare"] * 4, "gate_forward", "gate_backward", "gate_backward", "gradients", "commit", "adamw")
"""Names of the phases in profiles; all phases before the first CA step are named "prepare"."""


def rollout(shape: Shape) -> Array:
    """Return the phases of a rollout from initial states that the caller has set."""
    return _list([COEFFICIENTS, *_damage(shape)], shape)


def gradients(shape: Shape) -> Array:
    """Return the phases that compute loss and gradients for initial states and targets that the caller has set."""
    return np.concatenate([rollout(shape), _backward(shape, None, GRADIENTS, COMMIT)])


def step(shape: Shape) -> Array:
    """Return the phases of a train step for initial states and targets that the caller has set."""
    return np.concatenate([gradients(shape), [[ADAMW, 0]]])


def epoch(shape: Shape, job: Job, spread: Array) -> Array:
    """Return the phases of an epoch, which samples initial states, masks and damage; `spread` as in `StepGrids`."""
    # DRAW computes the coefficients too. The target of a rule is computed from the initial state before its damage,
    # since the automaton has to produce the result of the undamaged state. Data samples overwrite sampled states.
    first = [DRAW, *([TARGET] if job.target is None else []), *_damage(shape)]
    return np.concatenate([_list(first, shape), _backward(shape, spread, GRADIENTS, COMMIT, ADAMW)])


COEFFICIENTS_ALONE = np.array([[COEFFICIENTS, 0]])
"""Phases that only compute the coefficients, after a change of the logits and before `forward` and `backward`."""


def forward(shape: Shape) -> Array:
    """Return only the phases of the CA steps, for coefficients that have been computed before."""
    return _list([], shape)


def backward(shape: Shape, spread: Array | None = None) -> Array:
    """Return the phases that compute gradients and the initial state's adjoint from adjoints that the caller sets."""
    return _backward(shape, spread, D_STATE, GRADIENTS)


def _damage(shape: Shape) -> list[int]:
    """Return the phase of damage and faults before step 0, if any; later ones belong to the preceding forward step."""
    return [DAMAGE] if 0 in shape.damage_steps or shape.faults.states else []


def _list(first: list[int], shape: Shape) -> Array:
    """Return the phases `first` and then all forward steps, int64 `[phases, 2]`: kind and CA step."""
    return np.array([[kind, 0] for kind in first] + [[FORWARD, at] for at in range(shape.steps)])


def _backward(shape: Shape, spread: Array | None, *last: int) -> Array:
    """Return all backward steps and then the phases `last`."""
    # Each CA step is a phase, since a tile reads what its neighbours wrote in the step before: threads synchronise only
    # between steps. If a step's result was spread out, the adjoints of its copies are in several tiles, so that one
    # more phase, D_STATE, gathers them first.
    steps: list[list[int]] = []
    for at in reversed(range(shape.steps)):
        steps += [[BACKWARD, at]] if spread is None or not spread[at] else [[D_STATE, at + 1], [BACKWARD, at]]
    return np.array(steps + [[kind, 0] for kind in last])
