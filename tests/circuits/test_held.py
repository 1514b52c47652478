"""Hold of an image: it stays, and it returns after damage."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.circuits.synthesis import held
from difflogic.model.deployment import Scenario
from tests.random_netlists import random_netlist

HEIGHT, WIDTH, STEPS = 5, 7, 7


@pytest.mark.parametrize("seed", range(4))
def test_held_circuit_grows_the_same_stays_and_returns(seed: int) -> None:
    netlist = random_netlist(np.random.default_rng(seed), 90, channels=3)
    netlist = replace(netlist, visible=2, scenario=Scenario("zeros", HEIGHT, WIDTH, STEPS))
    made = held.held(netlist, STEPS)
    zeros = np.zeros((HEIGHT, WIDTH, 16), dtype=np.uint8)
    before, after = (each.rollout(zeros[..., : each.channels], STEPS)[..., :2] for each in (netlist, made))
    np.testing.assert_array_equal(after, before)
    assert held.returns(made, before[-1], STEPS) == 1
    assert held.returns(made, 1 - before[-1], STEPS) is None
    # The longest way of an alarm is from corner to corner.
    state = made.after(zeros[..., : made.channels], 2 * STEPS)
    damaged = state.copy()
    damaged[-1, -1] = 0
    np.testing.assert_array_equal(made.after(damaged, 2 * STEPS + 1), state)


@pytest.mark.parametrize("steps", [2, 3, 7, 12, 16, 24, 33, 128])
def test_clock_has_a_state_for_each_step(steps: int) -> None:
    states = held.clock(steps)[1]
    assert len(set(states)) == len(states) == steps
    assert not any(states[0])
