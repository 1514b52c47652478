"""Simplified controllers decide the same on every code, and external checkers agree."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import function as synthesis
from difflogic.circuits.synthesis import resubstitution
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.function import prove, pruned, simplified
from difflogic.core.bits import Bits
from difflogic.errors import CircuitError, DataError
from difflogic.model.controller import Controller
from tests.controllers import controllers, linear_rule, observations, random_controller
from tests.programs import needs

pytestmark = pytest.mark.usefixtures("short_walks")


def differs_by_one_threshold() -> tuple[Controller, Controller]:
    """Return two controllers that differ at one code of 64, the highest."""
    one = random_controller(4, (6, 6), (3, 3, 3))
    last = one.inputs + len(one.gates)
    every = [one.inputs - 1, one.inputs - 4, one.inputs - 7]
    gates, wires = [1, 1, 6], [(every[0], every[1]), (last, every[2]), (last + 1, int(one.outputs[0]))]
    return one, one.with_gates([*one.gates, *gates], [*one.wires.tolist(), *wires], [last + 2])


@given(controllers())
@settings(max_examples=5)
def test_simplified_controller_decides_the_same_at_every_observation(controller: Controller) -> None:
    found = simplified(controller)
    assert (found.verdict.equal, found.verdict.proves) == (True, True)
    small = found.netlist
    assert gate_count(small) <= gate_count(controller)
    assert small.inputs <= controller.inputs
    assert found.steps[-1].gates[1] == gate_count(small)
    x = observations(controller, np.random.default_rng(1), 300)
    assert np.array_equal(small(x), controller(x))


def test_policy_for_the_pole_simplifies_to_a_hundred_gates() -> None:
    controller = random_controller(0)
    assert gate_count(controller) > 150
    assert gate_count(simplified(controller).netlist) <= 100


def met(controller: Controller, count: int) -> Bits:
    return controller.thermometer.code(np.random.default_rng(3).normal(size=(count, len(controller.observations))))


def test_pruned_controller_decides_the_same_at_visited_observations() -> None:
    controller = random_controller(2)
    codes = met(controller, 30)
    found = pruned(controller, codes)
    kept = [controller.input_names.index(name) for name in found.netlist.input_names]
    assert np.array_equal(found.netlist.decide(codes[kept]), controller.decide(codes))
    assert (found.verdict.equal, found.verdict.proves) == (True, False)
    assert gate_count(found.netlist) <= 12
    assert found.netlist.inputs <= 12
    (verdict,) = prove(controller, found.netlist, ["difflogic"])
    assert verdict.equal is False
    assert verdict.counterexample.outputs


@pytest.mark.parametrize("dims", [(5, 5, 5), (1,) * 9])
def test_codes_too_many_to_list_are_described_by_implications(dims: tuple[int, ...], monkeypatch) -> None:
    """The solver decides the same circuit; if no threshold implies another, all bits count."""
    controller = random_controller(3, (20, 20), dims)
    monkeypatch.setattr(synthesis, "LISTED", 100)
    monkeypatch.setattr(synthesis, "SAMPLES", 64)
    monkeypatch.setattr(synthesis, "EXHAUSTIVE", 100)
    found = simplified(controller)
    assert (found.verdict.equal, found.verdict.proves) == (True, True)
    assert found.verdict.how.startswith("outputs: 1 by exhaustion")
    assert gate_count(found.netlist) < 0.8 * gate_count(controller)


@pytest.mark.parametrize("judge", ["difflogic", "SAT", "berkeley-abc", "yosys"])
def test_every_checker_tells_equal_from_different(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(*({judge} & {"berkeley-abc", "yosys"}))
    if judge == "SAT":
        monkeypatch.setattr(synthesis, "EXHAUSTIVE", 1)
        monkeypatch.setattr("difflogic.circuits.synthesis.truth_tables.MOST_EXHAUSTIVE", 1)
        judge = "difflogic"
    one, other = differs_by_one_threshold()
    assert prove(one, other, [judge])[0].equal is False
    small = simplified(one).netlist
    assert small.inputs < one.inputs or gate_count(small) < gate_count(one)
    assert prove(one, small, [judge])[0].equal is True


@given(controllers(), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_any_bits_count_as_a_code(controller: Controller, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (controller.inputs, 50), dtype=np.uint8)
    whole = synthesis.on_any_bits(controller, controller.thermometer)
    codes = bits.copy()
    for lower, upper in reversed(controller.thermometer.implied):
        codes[lower] |= codes[upper]
    assert controller.thermometer.is_code(codes).all()
    assert np.array_equal(whole.decide(bits), controller.decide(codes))


def test_ctrl_c_returns_the_controller_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = random_controller(3, (12, 12), (3, 3))
    told = []
    monkeypatch.setattr(synthesis, "improved", Mock(side_effect=KeyboardInterrupt))
    found = simplified(controller, told.append)
    assert found.stopped
    assert [step.stopped for step in told] == [False, False, True]
    assert found.verdict.equal
    assert gate_count(found.netlist) < gate_count(controller)
    with pytest.raises(KeyboardInterrupt):
        simplified(controller)


def test_ctrl_c_in_the_proof_returns_the_simplified_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = random_controller(3, (12, 12), (3, 3))
    monkeypatch.setattr(synthesis, "prove", Mock(side_effect=KeyboardInterrupt))
    found = simplified(controller, lambda step: None)
    assert (found.stopped, found.steps[-1].name, found.verdict.equal) == (True, "proof", None)
    assert gate_count(found.netlist) < gate_count(controller)


def test_search_ends_with_its_budget_and_is_deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = random_controller(3, (24, 24), (4,) * 4, actions=4)
    monkeypatch.setattr(synthesis, "LISTED", 100)
    monkeypatch.setattr(synthesis, "SAMPLES", 256)
    gates = []
    for work in (0, 20_000, 20_000, 10**9):
        monkeypatch.setattr(resubstitution, "PROVED_WORK", work)
        found = simplified(controller)
        assert found.verdict.equal
        gates.append((gate_count(found.netlist), found.netlist.gates.tolist()))
    assert gates[1] == gates[2]
    assert gates[0] > gates[1] > gates[3]


def test_controller_may_have_a_constant_action() -> None:
    rule = linear_rule()
    always = rule.with_gates([15], [(0, 0)], [rule.inputs])
    found = simplified(always)
    assert (gate_count(found.netlist), found.netlist.inputs, found.verdict.equal) == (0, 1, True)
    assert set(found.netlist(np.zeros((3, 4)))) == {1}


def test_invalid_comparisons_and_codes_are_refused() -> None:
    rule = linear_rule()
    with pytest.raises(CircuitError, match="with equal observations and actions, got"):
        prove(rule, replace(rule, choices=("left", "stay")))
    with pytest.raises(DataError, match="must be a thermometer code"):
        pruned(rule, np.eye(28, dtype=np.uint8))
    with pytest.raises(DataError, match=r"\[28, N > 0\], got uint8\[28, 0\]"):
        pruned(rule, np.zeros((28, 0), dtype=np.uint8))
