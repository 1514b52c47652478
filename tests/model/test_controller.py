"""Test that a controller acts as its policy, in floating and fixed point, and that its file preserves it."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import gates
from difflogic.errors import CircuitError
from difflogic.model import function_json
from difflogic.model.controller import Controller
from difflogic.model.decision import decision
from difflogic.model.thermometer import Thermometer
from tests.controllers import (
    controllers,
    linear_rule,
    observations,
    of_layers,
    random_controller,
    random_layers,
    remembering_controller,
)

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 5), st.integers(1, 6), st.integers(2, 6))
def test_controller_takes_the_first_action_with_most_bits(seed: int, dims: int, group: int, actions: int) -> None:
    rng = np.random.default_rng(seed)
    thresholds = [np.sort(rng.normal(size=count)) for count in rng.integers(1, 4, dims)]
    layers = random_layers(rng, sum(map(len, thresholds)), (9, group * actions))
    controller = of_layers(thresholds, layers, actions)
    x = observations(controller, rng, 100)
    bits = [x[:, d] >= t for d, values in enumerate(thresholds) for t in values]
    for wires, kinds in layers:
        bits = [
            gates.TRUTH[gate][2 * bits[a] + bits[b]].astype(int) for gate, (a, b) in zip(kinds, wires.T, strict=True)
        ]
    counts = np.array(bits).reshape(actions, group, -1).sum(axis=1)
    assert np.array_equal(controller(x), counts.argmax(axis=0))


@given(controllers())
def test_written_and_read_it_is_the_same(controller: Controller) -> None:
    read = function_json.from_json(function_json.to_json(controller))
    for field in ("thermometer", "observations", "choices", "environment", "environment_version"):
        assert getattr(read, field) == getattr(controller, field)
    for field in ("gates", "wires", "outputs"):
        assert np.array_equal(getattr(read, field), getattr(controller, field))


@given(controllers())
def test_only_codes_of_observations_are_codes(controller: Controller) -> None:
    thermometer = controller.thermometer
    every = thermometer.code_number(np.arange(thermometer.codes))
    assert every.shape == (controller.inputs, thermometer.codes)
    assert len(np.unique(every, axis=1).T) == thermometer.codes
    assert thermometer.is_code(every).all()
    seen = {tuple(code) for code in thermometer.code(observations(controller, np.random.default_rng(1), 200)).T}
    assert seen <= {tuple(code) for code in every.T}
    assert not thermometer.is_code(1 - every).all() or not thermometer.implied


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=4), SEEDS)
def test_fixed_point_differs_only_within_a_step_above_a_threshold(values: list[float], seed: int) -> None:
    thermometer = Thermometer((tuple(sorted({value % 1000 for value in values})),))
    form = thermometer.fixed_point(12)
    rng = np.random.default_rng(seed)
    near = rng.choice(thermometer.thresholds[0], 60) + rng.integers(-3, 4, 60) * 2.0**-13
    x = np.concatenate([near, rng.integers(-5000, 5000, 20) / 4096, [np.inf, -np.inf, np.nan, 1e300]])[:, None]
    agree = (form.code(form.of(x)) == thermometer.code(x)).all(axis=0)
    for value, same in zip(x[:, 0].tolist(), agree.tolist(), strict=True):
        between = any(
            t <= value and Fraction(value) < Fraction(scaled, 4096)
            for t, scaled in zip(thermometer.thresholds[0], form.thresholds[0], strict=True)
            if abs(value) < 1e6
        )
        assert same != between
    finite = np.isfinite(x[:, 0])
    assert agree[finite][x[finite, 0] * 4096 % 1 == 0].all()
    assert agree.all() or not form.exact
    low, high = -(1 << form.width - 1), (1 << form.width - 1) - 1
    assert all(low < t <= high for t in form.thresholds[0])


def test_thresholds_that_are_multiples_of_a_step_are_exact() -> None:
    thermometer = Thermometer(((-1.5, 0.25), (3.0,)))
    form = thermometer.fixed_point(2)
    assert (form.thresholds, form.exact, form.width) == (((-6, 1), (12,)), True, 5)
    assert form.of([[-1.51, 1e9], [0.3, -np.inf]]).tolist() == [[-7, 15], [1, -16]]
    assert not thermometer.fixed_point(1).exact
    assert Thermometer(((0.0, 1e-4),)).fixed_point().fraction_bits > 20, "256 steps between neighbours"
    with pytest.raises(CircuitError, match="take more than 62 bits"):
        Thermometer(((1e300,),)).fixed_point()


def test_thresholds_are_spread_around_the_mean() -> None:
    one, two, three = Thermometer.around([0, 5, 7], [1, 0.1, 0], [3, 2, 1]).thresholds
    assert np.allclose(one, [-1.0117, 0, 1.0117], atol=1e-4)
    assert np.allclose(two, [4.9354, 5.0646], atol=1e-4)
    assert three == (7.0,)
    assert Thermometer.around([0, 5, 7], [1, 0.1, 0], 7).bits == 21


def test_input_names_show_thresholds() -> None:
    rule = linear_rule()
    assert rule.bit_name(0) == "position>=-2.0"
    assert rule.output_names == ("action[0]",)
    assert rule([[0, 0, 0.2, 0.1], [0, 0, -0.2, 0.1]]).tolist() == [1, 0]
    assert random_controller(1, (5, 5), (2,), actions=5).output_names == ("action[0]", "action[1]", "action[2]")


def test_controller_memory_is_its_last_inputs_and_outputs() -> None:
    one = remembering_controller(2)
    assert one.observations == ("observation0", "observation1", "memory0", "memory1", "memory2")
    assert one.output_names == ("action[0]", "action[1]", "memory0", "memory1", "memory2")
    read = function_json.from_json(function_json.to_json(one))
    assert (read.memory, read.output_names) == (3, one.output_names)
    text = function_json.to_json(one)
    for wrong in ('"memory": 4', '"memory": 6', '"memory": -1', '"memory": "x"'):
        with pytest.raises(CircuitError, match=r"[Mm]emory|need 6 outputs"):
            function_json.from_json(text.replace('"memory": 3', wrong))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": 3}, "32 output bits cannot be divided equally among 3 actions"),
        ({"actions": 1}, "needs at least two actions, got 1"),
        ({"actions": ("a", "a")}, "must be different, begin with a letter"),
        ({"actions": ("a", "*/")}, "must be different, begin with a letter"),
        ({"observations": ("a", "b", "c")}, "Expected 4 names, one per dimension, got 3"),
        ({"environment": "two\nlines"}, "must be a name such as CartPole-v1"),
        ({"thresholds": [[1.0, 1.0], [], [], []]}, "thresholds of dimension 0 must be finite and increasing"),
        ({"thresholds": [[float("nan")], [], [], []]}, "must be finite"),
        ({"thresholds": [[], [], [], []]}, "wires of layer 0 must be 0 to -1"),
        ({"layers": [([[0], [99]], [1])]}, "wires of layer 0 must be 0 to 27"),
        ({"layers": [([[0], [1]], [1, 2])]}, r"Layer 0 needs integer wires \[2, n\] and gates \[n\]"),
        ({"layers": [([[0, 1]] * 2, [1, 16])]}, "ids from 0 to 15"),
        ({"layers": [([[0, 1]] * 2, [1, -1])]}, "ids from 0 to 15"),
    ],
)
def test_invalid_controller_is_refused_in_one_sentence(change: dict, message: str) -> None:
    rng = np.random.default_rng(1)
    given = {"thresholds": [list(range(7))] * 4, "layers": random_layers(rng, 28, (32, 32)), "actions": 2}
    with pytest.raises(CircuitError, match=message) as caught:
        of_layers(**given | change)
    assert "\n" not in str(caught.value)


HAND = function_json.to_json(linear_rule())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "version 1, got format difflogic-controller version 2"),
        ('"name": "angle", ', "", "an object with a name and thresholds"),
        ('"thresholds": [-2.0', '"thresholds": ["x"', "thresholds must be a list of numbers"),
        ('"thresholds": [-2.0', f'"thresholds": [-1{"0" * 400}', "thresholds must be a list of numbers"),
        ('"thresholds": [-2.0', '"thresholds": [NaN', "must be finite"),
        ('"left"', "1", "actions must be a list of strings"),
        ('"actions": ["left", "right"]', '"actions": {}', "actions must be a list"),
        ('"a": "position>=-2.0"', '"a": "position>=-3.0"', "Unknown bit 'position>=-3.0'"),
        ('"id": "g0"', '"id": "position>=-2.0"', "Duplicate gate id 'position>=-2.0'"),
        ('"outputs": [', '"outputs": ["g0", ', "2 actions need 1 outputs, got 2"),
        ('"environment": "CartPole-v1"', '"environment": 3', "environment must be text"),
    ],
)
def test_invalid_controller_file_is_refused_in_one_sentence(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in HAND
    path = tmp_path / "controller.json"
    path.write_text(HAND.replace(old, new, 1))
    with pytest.raises(CircuitError, match=message) as caught:
        function_json.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    path.write_text(json.dumps(json.loads(HAND), indent=1))
    assert function_json.load(path).choices == ("left", "right")


@pytest.mark.parametrize(("votes", "classes", "most"), [(1, 2, 2), (5, 3, 62), (29, 2, 252), (70, 3, 963)])
def test_decision_is_first_largest_count_in_few_gates(votes: int, classes: int, most: int) -> None:
    count = votes * classes
    wires = np.array([np.arange(count)] * 2)
    ids, pairs, outputs = decision(count, [(wires, np.full(count, 3))], classes)
    bits = np.random.default_rng(votes).integers(0, 2, (count, 500))
    values = list(bits)
    for gate, (a, b) in zip(ids, pairs, strict=True):
        values.append(gate >> (3 - (2 * values[a] + values[b])) & 1)
    number = sum(values[output] << bit for bit, output in enumerate(outputs))
    assert np.array_equal(number, bits.reshape(classes, votes, -1).sum(axis=1).argmax(axis=0))
    assert len(ids) - count <= most
