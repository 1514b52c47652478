"""Bit-parallel reference against rollouts of single cells, and against the engine with its masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core.bernoulli import CERTAIN
from difflogic.core.bits import pack_planes, unpack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.simulation import ReferenceSimulation
from tests.export_cases import life
from tests.random_circuits import bits, circuits
from tests.simulation_cases import Case, cases


@given(cases())
def test_synchronous_steps_are_the_netlists(case: Case) -> None:
    spec = SimulationSpec(case.spec.netlist, case.spec.height, case.spec.width)
    simulation = ReferenceSimulation(spec)
    simulation.put(case.start)
    simulation.run(case.steps)
    expected = spec.netlist.rollout(unpack_planes(case.start, spec.width)[None], case.steps)[-1, 0]
    np.testing.assert_array_equal(unpack_planes(simulation.planes(), spec.width), expected)


@given(circuits(), st.integers(3, 9), st.integers(3, 70), st.integers(0, 2**32 - 1))
def test_an_asynchronous_rollout_of_the_engine(circuit: Circuit, height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, masks = bits(rng, 1, height, width, circuit.channels), bits(rng, 3, height, width, 1)
    expected = ReferenceEngine().rollout(circuit, x, 3, "hard", masks)[:, 0]
    simulation = ReferenceSimulation(SimulationSpec(CellNetlist.from_circuit(circuit), height, width))
    simulation.put(pack_planes(x[0].astype(np.uint8)))
    for step in range(3):
        simulation.run(1, pack_planes(masks[step].astype(np.uint8))[None, :, 0])
        np.testing.assert_array_equal(unpack_planes(simulation.planes(), width), expected[step + 1])


def test_a_step_that_was_drawn_is_the_same_wherever_the_run_began() -> None:
    spec = SimulationSpec(CellNetlist.build(1, False, [12], [(4, 4)], [9]), 5, 70, 20000, seed=3)
    whole, later = ReferenceSimulation(spec), ReferenceSimulation(spec)
    whole.put(np.zeros((5, 1, 2), dtype=np.uint64))
    whole.run(2)
    later.put(whole.planes(), step=2)
    whole.run(3)
    later.run(3)
    np.testing.assert_array_equal(later.planes(), whole.planes())


@pytest.mark.parametrize("units", [0, CERTAIN + 1])
def test_a_scene_has_a_probability(units: int) -> None:
    with pytest.raises(DataError, match=f"fire_units must be between 1 and {CERTAIN}, got {units}"):
        SimulationSpec(life(), 5, 5, units)
