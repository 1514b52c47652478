"""Whole rollouts from the single-step twins."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.layout import Layout
from difflogic.reference.coefficients import coefficients as soft_coefficients
from difflogic.reference.gate_backward import gate_backward
from difflogic.reference.gate_forward import gate_forward
from difflogic.reference.gradients import gradients as logit_gradients
from difflogic.reference.hard_forward import hard_forward
from difflogic.reference.loss import loss as squared_error
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def _coefficients(logits: Array) -> tuple[Array, Array]:
    coefficients = np.empty((len(logits), 4), dtype=logits.dtype)
    gate_ids = np.empty(len(logits), dtype=np.uint32)
    soft_coefficients(logits, coefficients, gate_ids)
    return coefficients, gate_ids


def soft_rollout(
    shape: Shape, layout: Layout, logits: Array, masks: Array | None, start: Array, nodes: Array | None = None
) -> Array:
    """States `[T+1, C, cells]` from `start [C, cells]`; `nodes [T, N, cells]` keeps every step's values."""
    coefficients, _ = _coefficients(logits)
    states = np.empty((shape.steps + 1, *start.shape), dtype=start.dtype)
    states[0] = start
    scratch = np.empty((layout.nodes, shape.cells), dtype=start.dtype) if nodes is None else nodes[0]
    for step in range(shape.steps):
        into = scratch if nodes is None else nodes[step]
        gate_forward(shape, step, layout, coefficients, masks, states[step], states[step + 1], into)
    return states


def soft_gradients(
    shape: Shape, layout: Layout, logits: Array, masks: Array | None, start: Array, targets: Array, control: Array
) -> tuple[Array, Array]:
    """Each cell's soft loss and the gradient of their sum in logits `[G, 16]`, by back-propagation through time.

    Both may be infinite or NaN: `commit` decides about that, so NumPy need not warn.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _soft_gradients(shape, layout, logits, masks, start, targets, control)


def _soft_gradients(
    shape: Shape, layout: Layout, logits: Array, masks: Array | None, start: Array, targets: Array, control: Array
) -> tuple[Array, Array]:
    dtype = start.dtype
    nodes = np.empty((shape.steps, layout.nodes, shape.cells), dtype=dtype)
    states = soft_rollout(shape, layout, logits, masks, start, nodes)
    d_rows = np.empty((2, 3 * shape.channels, shape.cells), dtype=dtype)  # two steps take turns
    loss_partials = np.empty(shape.cells, dtype=dtype)
    squared_error(shape, states[-1], targets, d_rows[shape.steps % 2], loss_partials, control)
    coefficients, _ = _coefficients(logits)
    scratch = np.zeros((layout.slot_count, shape.cells), dtype=dtype)
    partials = np.zeros((layout.instances, 4), dtype=dtype)
    for step in reversed(range(shape.steps)):
        d_next, d_here = d_rows[(step + 1) % 2], d_rows[step % 2]
        gate_backward(shape, step, layout, coefficients, masks, nodes[step], d_next, scratch, d_here, partials)
    gradients = np.empty_like(logits)
    logit_gradients(layout, partials, logits, gradients, control)
    return loss_partials, gradients


def hard_rollout(shape: Shape, layout: Layout, logits: Array, masks: Array | None, start: Array) -> Array:
    """Words `[T+1, C, groups*H*W]` from packed `start [C, groups*H*W]`, by the argmax gates of the logits."""
    groups = start.shape[1] // shape.cells_per_grid
    packed = dataclasses.replace(shape, batch=groups)
    _, gate_ids = _coefficients(logits)
    words = np.empty((shape.steps + 1, *start.shape), dtype=np.uint32)
    words[0] = start
    nodes = np.empty((layout.nodes, start.shape[1]), dtype=np.uint32)
    for step in range(shape.steps):
        hard_forward(packed, step, layout, gate_ids, masks, words[step], words[step + 1], nodes)
    return words
