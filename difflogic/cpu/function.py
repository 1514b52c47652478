"""A circuit as a differentiable function, on the processor."""

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
"""Gates on tiles up to which one thread is faster: to start another takes as long as some ten thousand."""


class CpuFunction(CircuitFunction):
    """Implements `difflogic.engine.function.CircuitFunction`."""

    selector = "cpu"

    def __init__(
        self, threads: int, circuit: Circuit, grid: Sequence[int], steps: int, hard: bool, every_state: bool
    ) -> None:
        super().__init__(circuit, grid, steps, hard, every_state)
        shape = self._shape
        work = SoftWorkspace(circuit, shape, threads, given=True)
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
            # On 0 and 1 the arithmetic of a hard gate is of whole numbers, and exact.
            work.buffers.coefficients[:], work.buffers.shares[:] = self._one_hot
        work.run(self._forward_phases)
        first = 1 if self.every_state else self.steps
        states = [work.cells(state)[: work.program.outputs].T for state in work.buffers.states[first:]]
        return np.stack(states)

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        work, buffers, cells = self._work, self._work.buffers, self._shape.cells
        if self.hard:
            buffers.coefficients[:], buffers.shares[:] = self._soft
            if self.steps > 1:  # the states are those of the hard circuit
                work.run(self._forward_phases)
        buffers.targets[0, :, :cells] = d_y[-1].T
        for judged, d_state in zip(buffers.judged, d_y[:-1], strict=True):
            judged[:] = 0  # where `forward` has kept whole tiles, of lanes past the last cell too
            judged.reshape(buffers.targets[0].shape)[:, :cells] = d_state.T
        work.run(self._backward_phases)
        d_x = buffers.d_state.reshape(-1, work.grid.tiles * TILE)[:, :cells].T.copy()
        return work.per_gate(buffers.gradients), d_x
