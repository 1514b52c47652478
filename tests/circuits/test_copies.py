"""Circuits whose visible channels are copies of fewer compute the same in all original channels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis.copies import DARK, sources, widened
from difflogic.circuits.synthesis.invariant import start_of
from difflogic.model.deployment import Scenario
from tests.random_netlists import random_netlist


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["seed", "zeros"]),
    st.integers(1, 3),
    st.lists(st.integers(-1, 2), max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_widened_random_circuit_copies_its_channels(
    seed: int, periodic: bool, start: str, visible: int, more: list[int]
) -> None:
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
