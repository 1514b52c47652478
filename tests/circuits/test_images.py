"""Circuits of images: lookup, copies of channels, hold and repair."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import held, invariant, repair
from difflogic.circuits.synthesis.convert import gate_count, lean, to_netlist
from difflogic.circuits.synthesis.copies import DARK, sources, widened
from difflogic.circuits.synthesis.invariant import start_of
from difflogic.circuits.synthesis.placed import placed
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import text_picture, wiring
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.straight_line import read_inputs
from tests.random_netlists import random_netlist


def asked(preset: str, height: int, width: int, channels: int, **task: Any) -> Config:
    """Return a preset with a random image: noise is harder to look up than any drawing."""
    bits = np.random.default_rng(height * width).integers(0, 2, (height, width, channels), dtype=np.uint8)
    task |= {"picture": text_picture.encode(bits), "height": height, "width": width, "loss_channels": channels}
    return presets.get(preset).with_(task=task)


@pytest.mark.parametrize(
    ("preset", "height", "width", "channels", "steps"),
    [
        ("lizard", 3, 3, 1, 2),
        ("lizard", 20, 20, 1, 12),
        ("lizard", 12, 31, 6, 19),  # an odd torus, of which both ends know their places before they meet
        ("lizard", 15, 32, 3, 20),
        ("colored-g", 3, 4, 6, 4),
        ("colored-g", 32, 21, 3, 30),
    ],
)
def test_lookup_circuit_shows_its_image_for_ever(preset, height, width, channels, steps):
    config = asked(preset, height, width, channels, steps=steps)
    graph = placed(config)
    assert graph is not None
    size, target = len(graph.outputs), text_picture.decode(config.task.picture, channels)
    scenario, outputs = Scenario.of(config), [wiring.CENTRE] * size
    like = CellNetlist.build(size, config.model.periodic, [], [], outputs, channels, scenario=scenario)
    netlist = to_netlist(graph, like)
    shown = netlist.rollout(invariant.start_of(netlist)[None], steps + 5)[1:, 0, ..., :channels]
    assert (shown[steps - 1 :] == target).all()
    assert (shown <= target).all(), "a cell that does not know its place yet is dark"


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("lizard", {"task": {"steps": 6}}),  # it takes ten steps to the corners
        ("lizard", {"task": {"start": "random"}}),
        ("lizard", {"task": {"start": "zeros"}}),  # an empty torus looks the same from every cell
        ("lizard", {"model": {"neighbourhood": "von-neumann"}}),
        ("heart-steady", {"task": {"loss_steps": [4, 18]}}),
    ],
)
def test_no_lookup_circuit_without_registers(preset, fields):
    assert placed(presets.get(preset).with_(**fields)) is None


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["seed", "zeros"]),
    st.integers(1, 3),
    st.lists(st.integers(-1, 2), max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_widened_random_circuit_copies_its_channels(seed, periodic, start, visible, more) -> None:
    rng = np.random.default_rng(seed)
    shown = rng.permutation([*range(visible), *(min(each, visible - 1) for each in more)]).tolist()
    netlist = random_netlist(rng, 40, channels=5, periodic=periodic)
    netlist = replace(netlist, visible=visible, origin=tuple(range(5)), scenario=Scenario(start, 6, 7, 6))
    made = widened(netlist, shown)
    assert (made.visible, made.channels) == (len(shown), 5 - visible + len(shown))
    one, other = (each.rollout(start_of(each)[None], 6)[1:, 0] for each in (netlist, made))
    for channel, source in enumerate(shown):
        assert np.array_equal(other[..., channel], one[..., source] if source != DARK else np.zeros_like(one[..., 0]))
    assert np.array_equal(other[..., len(shown) :], one[..., visible:])


@pytest.mark.parametrize(
    ("channels", "expected"),
    [(["01", "10"], [0, 1]), (["00", "10", "10"], [DARK, 0, 0]), (["11", "01", "11", "00"], [0, 1, 0, DARK])],
)
def test_identical_channels_have_the_same_source(channels: list[str], expected: list[int]) -> None:
    picture = np.array([[list(map(int, each)) for each in channels]], dtype=np.uint8).transpose(0, 2, 1)
    assert sources(picture) == expected


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


VISIBLE = 2


def states_of(netlist: CellNetlist) -> Bits:
    """Return the states `[T+1, H, W, C]`."""
    assert netlist.scenario is not None
    return netlist.rollout(start_of(netlist)[None], netlist.scenario.steps)[:, 0]


def is_told(netlist: CellNetlist, states: Bits, wrong: Bits) -> bool:
    """Return if the neighbourhood of each wrong cell occurs nowhere else and never before, cell by cell."""
    cells = {"moore": range(9), "von-neumann": (1, 3, 4, 5, 7), "line": (3, 4, 5)}[netlist.neighbourhood]
    height, width = states.shape[1:3]
    found: dict[tuple[int, bytes], set[bool]] = {}
    for step, state in enumerate(states[:-1]):
        padded = np.pad(state, ((1, 1), (1, 1), (0, 0)), mode="wrap" if netlist.periodic else "constant")
        for (y, x, channel), is_wrong in np.ndenumerate(wrong):
            seen = b"".join(padded[y + cell // 3, x + cell % 3].tobytes() for cell in cells)
            found.setdefault((channel, seen), set()).add(bool(is_wrong) and step == len(states) - 2)
    assert height * width == wrong.shape[0] * wrong.shape[1]
    return all(len(kinds) == 1 for kinds in found.values())


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["seed", "zeros"]),
    st.sampled_from(["moore", "von-neumann", "line"]),
    st.integers(0, 4),
)
@settings(max_examples=40, deadline=None)
def test_repaired_circuits_show_the_target_and_else_the_same(seed, periodic, start, neighbourhood, count) -> None:
    rng = np.random.default_rng(seed)
    netlist = random_netlist(rng, 80, channels=6, periodic=periodic, neighbourhood=neighbourhood)
    netlist = replace(netlist, visible=VISIBLE, origin=tuple(range(6)), scenario=Scenario(start, 9, 13, 5))
    before = states_of(netlist)
    wrong = np.zeros((9, 13, VISIBLE), dtype=np.uint8)
    wrong.reshape(-1)[rng.choice(wrong.size, count, replace=False)] = 1
    made = repair.repaired(lean(netlist), before[-1, ..., :VISIBLE] ^ wrong, 5)
    assert (made is not None) == is_told(netlist, before, wrong)
    if made is None:
        return
    wanted = before.copy()
    wanted[-1, ..., :VISIBLE] ^= wrong
    assert np.array_equal(states_of(made), wanted)
    assert gate_count(made) >= gate_count(lean(netlist)) if count else gate_count(made) == gate_count(lean(netlist))
    assert {cell % 9 for cell in read_inputs(made)} <= set(range(9) if neighbourhood == "moore" else (1, 3, 4, 5, 7))


def spreading(width: int, steps: int) -> CellNetlist:
    """Return a circuit in which a lit cell lights its neighbours on a line, step by step."""
    scenario = Scenario("seed", 1, width, steps)
    return CellNetlist.build(1, False, [7, 7], [[3, 4], [9, 5]], [10], scenario=scenario, neighbourhood="line")


def test_indistinguishable_cells_are_not_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of nine cells is lit last, when its neighbourhood is one that others had before."""
    monkeypatch.setattr(repair, "MOST_WRONG", 1.0)
    netlist = spreading(9, 4)
    target = states_of(netlist)[-1]
    assert target.all()
    assert repair.repaired(netlist, target, 4) is not None
    target[0, 0] = 0
    assert repair.repaired(netlist, target, 4) is None


def test_many_mismatches_are_not_repaired() -> None:
    """One value of 30 may be wrong. Both cells are distinguishable: no cell had three or two lit cells before."""
    netlist = spreading(30, 2)
    target = states_of(netlist)[-1]
    target[0, 15] = 0
    repaired = repair.repaired(netlist, target, 2)
    assert repaired is not None
    assert np.array_equal(states_of(repaired)[-1], target)
    target[0, 16] = 0
    assert repair.repaired(netlist, target, 2) is None
