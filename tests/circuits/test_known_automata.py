"""Known automata in the simulator: Life, and the circuit printed in the paper."""

from collections.abc import Callable

import numpy as np
import pytest

from difflogic.core import rules
from difflogic.core.bits import pack_planes, population, unpack_planes
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.reference.simulation import ReferenceSimulation
from tests.experiments import checkerboard_target
from tests.export_cases import life, published
from tests.simulation_cases import random_start

ENGINES: dict[str, Callable[[SimulationSpec], Simulation]] = {
    "numba": lambda spec: CpuSimulation(spec, threads=2),
    "reference": ReferenceSimulation,
}
GLIDER = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=np.uint8)
R_PENTOMINO = np.array([[0, 1, 1], [1, 1, 0], [0, 1, 0]], dtype=np.uint8)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[[SimulationSpec], Simulation]:
    return ENGINES[request.param]


def board(height: int, width: int, pattern: np.ndarray, top: int, left: int) -> np.ndarray:
    """Return a grid, uint8 `[H, W, 1]`."""
    cells = np.zeros((height, width, 1), dtype=np.uint8)
    cells[top : top + pattern.shape[0], left : left + pattern.shape[1], 0] = pattern
    return cells


def test_netlist_is_life() -> None:
    """All 512 neighbourhoods are compared: cell (1, 1) of a 3x3 grid reads the complete grid."""
    grids = rules.patches().reshape(-1, 3, 3, 1)
    after = life(periodic=False).rollout(grids, 1)[1][:, 1, 1, 0]
    np.testing.assert_array_equal(after, rules.table("B3/S23"))


@pytest.mark.parametrize(("height", "width"), [(20, 65), (16, 128), (9, 7)])
def test_glider_returns_around_the_torus(height, width, engine: Callable[[SimulationSpec], Simulation]) -> None:
    """It moves a cell down and right in four steps, so that it returns after `4 * lcm(H, W)`, and not before."""
    start = board(height, width, GLIDER, height - 3, width - 3)
    simulation = engine(SimulationSpec(life(), height, width))
    simulation.put(pack_planes(start))
    for step in range(1, 4):
        simulation.run(4)
        np.testing.assert_array_equal(unpack_planes(simulation.planes(), width), np.roll(start, step, axis=(0, 1)))
    simulation.run(4 * int(np.lcm(height, width)) - 12)
    np.testing.assert_array_equal(unpack_planes(simulation.planes(), width), start)


def test_glider_becomes_a_block_at_a_border(engine: Callable[[SimulationSpec], Simulation]) -> None:
    """A block of four is left in a corner with 0 outside."""
    simulation = engine(SimulationSpec(life(periodic=False), 30, 70))
    simulation.put(pack_planes(board(30, 70, GLIDER, 2, 40)))
    simulation.run(200)
    assert population(simulation.planes()) == [4]


def test_r_pentomino_settles() -> None:
    """It settles after 1103 generations with 116 cells, six escaped gliders among them."""
    simulation = ENGINES["numba"](SimulationSpec(life(periodic=False), 640, 641))
    simulation.put(pack_planes(board(640, 641, R_PENTOMINO, 320, 320)))
    counts = {}
    for generation in (1101, 1102, 1103, 1104, 1105):
        simulation.run(generation - simulation.step)
        counts[generation] = population(simulation.planes())[0]
    assert counts[1103] == counts[1104] == counts[1105] == 116
    assert counts[1102] != 116, "it settles at 1103, not before"


@pytest.mark.parametrize(("side", "steps"), [(16, 16), (64, 68)])
def test_published_circuit_shows_its_checkerboard(side, steps, engine: Callable[[SimulationSpec], Simulation]) -> None:
    spec = SimulationSpec(published(), side, side)
    simulation = engine(spec)
    simulation.put(random_start(spec, np.random.default_rng(23)))
    simulation.run(steps // 2)
    target = checkerboard_target(side, side)[..., 0]
    assert (unpack_planes(simulation.planes(), side)[..., 0] != target).any()
    simulation.run(steps - steps // 2)
    np.testing.assert_array_equal(unpack_planes(simulation.planes(), side)[..., 0], target)
