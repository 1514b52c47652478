"""Simplification for the reachable states, on which an invariant holds for ever."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.convert import gate_count, gates_once, to_xag
from difflogic.circuits.synthesis.invariant import Invariant
from difflogic.circuits.synthesis.reachable import on_reachable_states, proved
from difflogic.circuits.synthesis.simplify import simplified
from difflogic.errors import UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from tests.export_cases import AND, NOT, OR, XOR
from tests.export_cases import Builder as Gates
from tests.random_netlists import random_netlist

pytestmark = pytest.mark.usefixtures("short_walks")


SEED = Scenario("seed", 6, 7, 5)


def twins(scenario: Scenario = SEED, periodic: bool = True) -> CellNetlist:
    """Return a circuit: 0 is 1 XOR 2 of the left; 1 and 2 are equal; 3 implies 1; 4 is always 0."""
    gate = Gates(5)
    one = gate(OR, 9 + 3, 9 + 4)
    two = gate(OR, gate(XOR, 18 + 3, 9 + 4), gate(AND, 9 + 3, 18 + 4))
    three = gate(AND, one, 27 + 1)
    four = gate(AND, gate(XOR, 9 + 5, 18 + 5), 36 + 4)
    shown = gate(OR, gate(XOR, 9 + 3, 18 + 3), gate(AND, 27 + 4, gate(OR, 9 + 4, 36 + 0)))
    return CellNetlist.build(5, periodic, gate.gates, gate.wires, [shown, one, two, three, four], 1, scenario=scenario)


def shown(netlist: CellNetlist, height: int, width: int, rate: float, steps: int = 12) -> np.ndarray:
    """Return the visible channels from the initial state in the middle of a grid."""
    assert netlist.scenario is not None
    state = replace(netlist.scenario, height=height, width=width).grid(netlist.origin)
    assert state is not None
    rng, states = np.random.default_rng(4), [state[None]]
    for _ in range(steps):
        fires = rng.random((1, height, width, 1)) <= rate
        states.append(np.where(fires, next(netlist.steps(states[-1], 1)), states[-1]))
    return np.stack(states)[..., : netlist.visible]


def test_equivalent_channels_are_merged() -> None:
    netlist = simplified(twins()).netlist
    found = invariant.find(netlist)
    assert {(2, 5), (3, 4)} <= set(found.clauses), "1 and 2 are the same"
    assert (2, 7) in found.clauses, "3 is never 1 where 1 is 0"
    assert found.replacements() == {2: 2}
    reached = on_reachable_states(netlist)
    assert reached.verdict.equal is True
    assert reached.netlist.origin == (0, 1, 3)
    assert gate_count(reached.netlist) < gate_count(netlist)
    for (height, width), rate in product(((6, 7), (3, 20)), (1.0, 0.5)):
        assert np.array_equal(shown(netlist, height, width, rate), shown(reached.netlist, height, width, rate))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["seed", "zeros", "picture"]))
@settings(max_examples=6)
def test_random_circuits_show_the_same_from_their_initial_state(seed: int, periodic: bool, start: str) -> None:
    rng = np.random.default_rng(seed)
    picture = ("1.", "23") if start == "picture" else ()
    netlist = replace(random_netlist(rng, 40, channels=4, periodic=periodic), origin=(0, 1, 2, 3))
    netlist = replace(netlist, scenario=Scenario(start, 2, 2, 3, picture=picture))
    reached = on_reachable_states(netlist)
    assert reached.verdict.equal is True
    assert gate_count(reached.netlist) <= gate_count(netlist)
    for rate in (1.0, 0.5):
        assert np.array_equal(shown(netlist, 2, 2, rate), shown(reached.netlist, 2, 2, rate))


def test_constant_and_opposite_channels_are_merged() -> None:
    """With zeros on a plane, 1 stays 0, so that 3 equals 0; 2 is NOT 3 after a step, but not in the initial state."""
    gate = Gates(4)
    outputs = [gate(OR, 9 + 4, 18 + 4), gate(AND, 9 + 3, 18 + 5), gate(NOT, 18 + 4, 0), gate(AND, 18 + 4, 18 + 4)]
    netlist = CellNetlist.build(4, False, gate.gates, gate.wires, outputs, scenario=Scenario("zeros", 4, 4, 3))
    found = invariant.find(netlist)
    assert found.replacements() == {1: -2, 3: 0}
    assert not {(4, 7), (5, 6)} <= set(found.clauses), "2 is not always NOT 3"
    assert proved(netlist, netlist, found).equal is True


def test_false_claims_are_not_proved() -> None:
    netlist = twins()
    found = invariant.find(netlist)
    assert proved(netlist, netlist, found).equal is True
    wrong = Invariant((*found.clauses, (0, 0)), found.samples)
    assert proved(netlist, netlist, wrong).equal is False, "0 is 0 in cells of the start"
    hasty = Invariant((*found.clauses, (0, 3)), found.samples)
    assert proved(netlist, netlist, hasty).equal is None, "true of the start, but not after a step"
    other = replace(netlist, outputs=np.array([*netlist.outputs[:1] - 2, *netlist.outputs[1:]]))
    verdict = proved(netlist, other, found)
    assert (verdict.equal, verdict.how) == (False, "out[0] was not proved equal")


def test_random_initial_state_is_refused() -> None:
    with pytest.raises(UsageError, match="got a circuit without initial state"):
        on_reachable_states(replace(twins(), scenario=None))
    with pytest.raises(UsageError, match="got a random initial state"):
        on_reachable_states(twins(Scenario("random", 6, 7, 5)))
    many = CellNetlist.build(300, False, [], [], range(300), scenario=SEED)
    with pytest.raises(UsageError, match="at most 256 channels, got 300: omit it"):
        on_reachable_states(many)


def test_perception_is_counted_once_for_all_channels() -> None:
    """Three channels have the same two gates, once inverted, and one gate joins two of them."""
    gate = Gates(3)
    ends = []
    for channel, last in enumerate((AND, AND, 14)):
        ends.append(gate(last, gate(XOR, 9 * channel, 9 * channel + 4), 9 * channel + 8))
    ends[0] = gate(AND, ends[0], ends[1])
    netlist = CellNetlist.build(3, True, gate.gates, gate.wires, ends)
    assert (gate_count(netlist), gates_once(netlist)) == (7, 3)
    assert to_xag(netlist).inputs == 27
