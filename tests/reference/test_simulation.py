"""The bit-parallel twin against rollouts of single cells, and against the engine's with its masks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.circuit import Circuit
from difflogic.netlist import Netlist
from difflogic.planes import pack, unpack
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.simulation import ReferenceSimulation
from difflogic.simulation import Scene
from tests.random_circuits import bits, circuits
from tests.scenes import Case, cases


@given(cases())
def test_synchronous_steps_are_the_netlists(case: Case) -> None:
    scene = Scene(case.scene.netlist, case.scene.height, case.scene.width)
    simulation = ReferenceSimulation(scene)
    simulation.put(case.start)
    simulation.run(case.steps)
    expected = scene.netlist.rollout(unpack(case.start, scene.width)[None], case.steps)[-1, 0]
    np.testing.assert_array_equal(unpack(simulation.planes(), scene.width), expected)


@given(circuits(), st.integers(3, 9), st.integers(3, 70), st.integers(0, 2**32 - 1))
def test_an_asynchronous_rollout_of_the_engine(circuit: Circuit, height: int, width: int, seed: int) -> None:
    """With the engine's own masks, all states are equal."""
    rng = np.random.default_rng(seed)
    x, masks = bits(rng, 1, height, width, circuit.channels), bits(rng, 3, height, width, 1)
    expected = ReferenceEngine().rollout(circuit, x, 3, "hard", masks)[:, 0]
    simulation = ReferenceSimulation(Scene(Netlist.from_circuit(circuit), height, width))
    simulation.put(pack(x[0].astype(np.uint8)))
    for step in range(3):
        simulation.run(1, pack(masks[step].astype(np.uint8))[None, :, 0])
        np.testing.assert_array_equal(unpack(simulation.planes(), width), expected[step + 1])


def test_a_step_that_was_drawn_is_the_same_wherever_the_run_began() -> None:
    scene = Scene(Netlist.build(1, False, [12], [(4, 4)], [9]), 5, 70, 20000, seed=3)
    whole, later = ReferenceSimulation(scene), ReferenceSimulation(scene)
    whole.put(np.zeros((5, 1, 2), dtype=np.uint64))
    whole.run(2)
    later.put(whole.planes(), step=2)
    whole.run(3)
    later.run(3)
    np.testing.assert_array_equal(later.planes(), whole.planes())
