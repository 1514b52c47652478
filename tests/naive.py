"""The model once more, written as its definition: a loop over cells' neighbours, kernels, channels and gates.

Slow and obvious, and independent of the package: it takes a circuit's arrays and nothing else.
Grids are `[B, H, W, C]`, masks `[T, H, W, 1]`; values inside are `[B, H, W]`, one per wire.
"""

from collections.abc import Callable

import numpy as np

from difflogic.model.circuit import Circuit

Gate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

RELAXED: tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], ...] = (
    lambda a, b: 0 * a,
    lambda a, b: a * b,
    lambda a, b: a - a * b,
    lambda a, b: a,
    lambda a, b: b - a * b,
    lambda a, b: b,
    lambda a, b: a + b - 2 * a * b,
    lambda a, b: a + b - a * b,
    lambda a, b: 1 - (a + b - a * b),
    lambda a, b: 1 - (a + b - 2 * a * b),
    lambda a, b: 1 - b,
    lambda a, b: 1 - b + a * b,
    lambda a, b: 1 - a,
    lambda a, b: 1 - a + a * b,
    lambda a, b: 1 - a * b,
    lambda a, b: 1 + 0 * a,
)
"""The sixteen gates as the paper writes them, by id."""


def soft_gate(logits: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    weights = np.exp(np.asarray(logits, dtype=np.float64) - logits.max())
    weights = weights / weights.sum()
    mixed: np.ndarray = np.sum([weight * gate(a, b) for weight, gate in zip(weights, RELAXED, strict=True)], axis=0)
    return mixed


def hard_gate(logits: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The gate of the largest logit, the lowest of equals; its id's four bits are outputs for 00, 01, 10, 11."""
    values = logits.tolist()
    outputs = np.array([int(bit) for bit in f"{values.index(max(values)):04b}"], dtype=float)
    looked_up: np.ndarray = outputs.take((2 * a + b).astype(int))
    return looked_up


def patch(grid: np.ndarray, f: int, periodic: bool) -> np.ndarray:
    """Position `f = 3*dy + dx` of every cell's 3x3 patch of `grid [B, H, W]`."""
    values = np.zeros_like(grid)
    height, width = grid.shape[1:]
    for row in range(height):
        for col in range(width):
            y, x = row + f // 3 - 1, col + f % 3 - 1
            if periodic:
                values[:, row, col] = grid[:, y % height, x % width]
            elif 0 <= y < height and 0 <= x < width:
                values[:, row, col] = grid[:, y, x]
    return values


def step(circuit: Circuit, state: np.ndarray, gate: Gate) -> np.ndarray:
    channels, kernels, outputs = circuit.channels, len(circuit.perceive[0]), circuit.perceive[-1].shape[1]
    values = {c: state[..., c] for c in range(channels)}
    for c in range(channels):
        patches = [patch(state[..., c], f, circuit.periodic) for f in range(9)]
        for k in range(kernels):
            inside = patches
            for logits, wires in zip(circuit.perceive, circuit.perceive_wires, strict=True):
                each = zip(logits[k], *wires[k], strict=True)
                inside = [gate(own, inside[a], inside[b]) for own, a, b in each]
            for s in range(outputs):
                values[channels + (c * outputs + s) * kernels + k] = inside[s]
    inside = [values[index] for index in range(len(values))]
    for logits, wires in zip(circuit.update, circuit.update_wires, strict=True):
        inside = [gate(own, inside[a], inside[b]) for own, a, b in zip(logits, wires[0], wires[1], strict=True)]
    return np.stack(inside, axis=-1)


Squares = dict[int, tuple[int, list[tuple[int, int]]]]
"""Squares that are zeroed before a CA step: its side and each sample's corner, by step."""


def zeroed(state: np.ndarray, side: int, corners: list[tuple[int, int]]) -> np.ndarray:
    damaged = state.copy()
    height, width = state.shape[1:3]
    for sample, (top, left) in enumerate(corners):
        for row in range(top, min(top + side, height)):
            for col in range(left, min(left + side, width)):
                damaged[sample, row, col, :] = 0
    return damaged


def rollout(
    circuit: Circuit,
    x: np.ndarray,
    steps: int,
    gate: Gate,
    masks: np.ndarray | None = None,
    squares: Squares | None = None,
    damaged: bool = True,
    faults: Callable[[int, np.ndarray], np.ndarray] = lambda _, state: state,
) -> np.ndarray:
    """States `[T+1, B, H, W, C]` in float64, the start included; those with damage as they are after, or before."""
    before, after = [np.asarray(x, dtype=np.float64)], []
    for t in range(steps):
        after.append(faults(t, zeroed(before[-1], *squares[t]) if squares and t in squares else before[-1]))
        new = step(circuit, after[-1], gate)
        before.append(new if masks is None else np.where(masks[t] == 1, new, after[-1]))
    return np.stack([*after, before[-1]] if damaged else before)
