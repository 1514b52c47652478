"""Hard circuit on one large grid in NumPy. Reference implementation of `simulate.wgsl` and of all other engines."""

import numpy as np

from difflogic.core import prng
from difflogic.core.bernoulli import coins
from difflogic.core.bits import Planes
from difflogic.core.wiring import PATCH
from difflogic.engine.simulation import SimulationSpec, check_masks
from difflogic.model.cell_netlist import CellNetlist

_ONE, _TOP = np.uint64(1), np.uint64(63)


def simulate(spec: SimulationSpec, netlist: CellNetlist, masks: Planes | None, before: Planes, after: Planes) -> None:
    """Write the state that follows `before` to `after`, both `[H, C, words]`; a cell with mask 0 keeps its state."""
    patches = np.empty((spec.channels, PATCH, *before[:, 0].shape), dtype=np.uint64)
    for dy in range(3):
        rows = _vertical(spec, before, dy - 1)
        for dx in range(3):
            patches[:, 3 * dy + dx] = _horizontal(spec, rows, dx - 1).transpose(1, 0, 2)
    values = netlist.evaluate(patches.reshape(netlist.inputs, -1))
    after[:] = values.reshape(spec.channels, spec.height, -1).transpose(1, 0, 2)
    if masks is not None:
        after[:] = before ^ ((before ^ after) & masks[:, None])
    after[..., -1] &= spec.last_word


def _vertical(spec: SimulationSpec, planes: Planes, dy: int) -> Planes:
    """Return the planes with each row `y + dy` moved to row `y`."""
    rows = np.roll(planes, -dy, axis=0)
    if dy and not spec.netlist.periodic:
        rows[0 if dy < 0 else -1] = 0
    return rows


def _horizontal(spec: SimulationSpec, rows: Planes, dx: int) -> Planes:
    """Return the rows with each column `x + dx` moved to column `x`."""
    if dx == 0:
        return rows
    moved = np.zeros_like(rows)
    first, last = rows[..., 0] & _ONE, rows[..., -1] >> np.uint64((spec.width - 1) % 64)
    if dx < 0:
        # The lowest bit is the leftmost cell: for the left neighbour all bits move up by one, and the highest
        # bit of the previous word becomes the lowest.
        moved[:] = rows << _ONE
        moved[..., 1:] |= rows[..., :-1] >> _TOP
        edge = moved[..., 0], last
    else:
        moved[:] = rows >> _ONE
        moved[..., :-1] |= rows[..., 1:] << _TOP
        edge = moved[..., -1], first << np.uint64((spec.width - 1) % 64)
    if spec.netlist.periodic:
        edge[0][:] |= edge[1]
    return moved


class ReferenceSimulation:
    """Implementation of `difflogic.engine.simulation.Simulation`."""

    def __init__(self, spec: SimulationSpec) -> None:
        self.spec = spec
        self.step = 0
        self._states = np.zeros((2, spec.height, spec.channels, spec.words), dtype=np.uint64)

    def put(self, planes: Planes, step: int = 0) -> None:
        self._states[0], self.step = planes, step

    def run(self, steps: int, masks: Planes | None = None) -> None:
        if masks is not None:
            check_masks(self.spec, masks, steps)
        for index in range(steps):
            fire = self._drawn() if masks is None else masks[index]
            simulate(self.spec, self.spec.netlist, fire, self._states[0], self._states[1])
            self._states = self._states[::-1]
            self.step += 1

    def _drawn(self) -> Planes | None:
        spec = self.spec
        if not spec.asynchronous:
            return None
        return coins(prng.fold_in(spec.fire_key, self.step), spec.height, spec.words, spec.fire_units)

    def planes(self) -> Planes:
        planes: Planes = self._states[0].copy()
        return planes

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
