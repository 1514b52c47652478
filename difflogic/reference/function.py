"""Differentiable function of a circuit in NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflogic.core import gates
from difflogic.core.wiring import CENTRE, PATCH, one_hot
from difflogic.engine import control as c
from difflogic.engine.function import CircuitFunction
from difflogic.engine.shape import Array
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.kernels.d_start import d_start
from difflogic.reference.rollout import RolloutSpec, parameters_of, pull_back, run_steps


class ReferenceFunction(CircuitFunction):
    """Implementation of `difflogic.engine.function.CircuitFunction` in the engine's dtype."""

    selector = "reference"

    def __init__(
        self, dtype: np.dtype[Any], circuit: Circuit, grid: Sequence[int], steps: int, hard: bool, every_state: bool
    ) -> None:
        self._dtype = dtype
        super().__init__(circuit, grid, steps, hard, every_state)
        shape = self._shape
        self._spec = RolloutSpec(shape, flat_layout(circuit))
        self._nodes = np.empty((steps, self._spec.layout.nodes, shape.cells), dtype=self._dtype)
        self._start = np.empty((shape.channels, shape.cells), dtype=self._dtype)
        self._update()

    def _update(self) -> None:
        layout = self._spec.layout
        self._soft, gate_ids = parameters_of(layout, self._logits)
        candidates = layout.wire_logits(self._logits)
        shares = None if candidates is None else one_hot(candidates)
        self._hard = Parameters(gates.TABLE[gate_ids].astype(self._dtype), shares)

    def _forward(self, x: Array) -> Array:
        self._start[:] = x.T
        parameters = self._hard if self.hard else self._soft
        states, _ = run_steps(self._spec, parameters, self._start, self._nodes)
        after = states[1:] if self.every_state else states[-1:]
        return after[:, : self._spec.layout.outputs].swapaxes(1, 2).copy()

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        spec = self._spec
        if self.hard:  # the stored nodes are those of the hard circuit
            run_steps(spec, self._soft, self._start, self._nodes)
        d_states = d_y.swapaxes(1, 2)
        d_patches = self._rows(d_states[-1])
        control = np.zeros(c.WORDS, dtype=np.uint32)  # only training reads its flag NONFINITE
        gradients = pull_back(spec, self._soft, self._logits, self._nodes, d_states[:-1], d_patches, control)
        if spec.layout.patch == 1:
            return gradients, d_patches[0].T
        d_x = np.empty_like(self._start)
        d_start(self._shape, d_patches[0], d_x)
        return gradients, d_x.T

    def _rows(self, d_state: Array) -> list[Array]:
        """Return the argument `d_patches` of `pull_back`, two arrays with the last state's adjoint at index `T % 2`."""
        shape = self._shape
        if self._spec.layout.patch == 1:
            return [np.empty_like(self._start), d_state]
        rows = [np.zeros((PATCH * shape.channels, shape.cells), dtype=self._dtype) for _ in range(2)]
        rows[shape.steps % 2][CENTRE::PATCH] = d_state
        return rows
