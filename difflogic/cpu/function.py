"""Circuits as differentiable functions on the processor."""

from collections.abc import Sequence

import numpy as np

from difflogic.core import gates, wiring
from difflogic.cpu import phases
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.workspace import SoftWorkspace
from difflogic.engine.function import CircuitFunction
from difflogic.engine.shape import Array
from difflogic.model.circuit import Circuit

SMALL = 1 << 16
"""Maximum number of gate evaluations, each on a tile, for which one thread is used; starting another costs 10,000."""


class CpuFunction(CircuitFunction):
    """Circuit function on the processor, see `difflogic.engine.function.CircuitFunction`."""

    selector = "cpu"

    def __init__(
        self, threads: int, circuit: Circuit, grid: Sequence[int], steps: int, hard: bool, every_state: bool
    ) -> None:
        super().__init__(circuit, grid, steps, hard, every_state)
        shape = self._shape
        work = SoftWorkspace(circuit, shape, threads, has_adjoints=True)
        if work.grid.tiles * (work.program.nodes - work.program.patch_nodes) * steps <= SMALL:
            work.threads = 1
        self._work = work
        self._forward_phases, self._backward_phases = phases.forward(shape), phases.backward(shape)
        self._update()

    def _update(self) -> None:
        self._work.set_logits(self._logits)
        self._work.run(phases.COEFFICIENTS_ALONE)
        if self.hard:
            buffers, circuit = self._work.buffers, self._circuit.with_logits(self._logits)
            self._soft = buffers.coefficients.copy(), buffers.shares.copy()
            shares = np.zeros(0) if circuit.wire_logits is None else wiring.rows(wiring.one_hot(circuit.wire_logits))
            self._one_hot = gates.TABLE[circuit.gate_logits.argmax(axis=1)].reshape(-1), shares.reshape(-1)

    def _forward(self, x: Array) -> Array:
        work = self._work
        work.cells(work.buffers.states[0])[: x.shape[1]] = x.T
        if self.hard:
            # With inputs 0 and 1 a hard gate computes with small integers, which floats represent exactly.
            work.buffers.coefficients[:], work.buffers.shares[:] = self._one_hot
        work.run(self._forward_phases)
        first = 1 if self.every_state else self.steps
        states = [work.cells(state)[: work.program.outputs] for state in work.buffers.states[first:]]
        # A transposed view: for wide layers, a copy would take as long as their computation.
        return np.stack(states).swapaxes(1, 2)

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        work, buffers, cells = self._work, self._work.buffers, self._shape.cells
        if self.hard:
            buffers.coefficients[:], buffers.shares[:] = self._soft
            if self.steps > 1:  # the states in the buffers are those of the hard circuit
                work.run(self._forward_phases)
        buffers.targets[0, :, :cells] = d_y[-1].T
        for adjoint, d_state in zip(buffers.loss_states, d_y[:-1], strict=True):
            adjoint[:] = 0  # `forward` has stored states here, in complete tiles with lanes past the last cell
            adjoint.reshape(buffers.targets[0].shape)[:, :cells] = d_state.T
        work.run(self._backward_phases)
        d_x = buffers.d_state.reshape(-1, work.grid.tiles * TILE)[:, :cells].copy().T
        return work.per_gate(buffers.gradients), d_x
