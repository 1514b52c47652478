"""Three-input look-up tables: their number, and that each one computes its node."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.readers import source
from difflogic.circuits.synthesis import luts
from difflogic.circuits.synthesis.convert import to_xag
from difflogic.circuits.synthesis.truth_tables import all_patterns
from difflogic.circuits.synthesis.xag import Builder, input_literal, rebuilt
from tests.random_netlists import random_netlist


@pytest.mark.parametrize(("channels", "reach"), [(1, 9), (2, 12)])
@given(seed=st.integers(0, 2**32 - 1), gates=st.integers(0, 60))
@settings(max_examples=15, deadline=None)
def test_tables_compute_their_nodes(channels: int, reach: int, seed: int, gates: int) -> None:
    graph = rebuilt(to_xag(random_netlist(np.random.default_rng(seed), gates, channels, True, reach=reach)))
    tables = luts.mapping(graph)
    bits = np.unpackbits(graph.evaluate(all_patterns(graph.inputs)).view(np.uint8), axis=1)
    for node, cut in tables.items():
        codes = (1 << np.arange(len(cut))) @ bits[list(cut)].astype(int)
        values = np.full(8, 2)
        values[codes] = bits[node]
        np.testing.assert_array_equal(values[codes], bits[node])
        assert len(cut) <= luts.INPUTS
    read = {leaf for cut in tables.values() for leaf in cut} | {output >> 1 for output in graph.outputs}
    assert {node for node in read if node >= graph.first} == set(tables)


def test_full_adder_takes_two_tables() -> None:
    builder = Builder(3)
    a, b, c = map(input_literal, range(3))
    half = builder.xor(a, b)
    total = builder.xor(half, c)
    assert len(luts.mapping(builder.finish([total, builder.or_(builder.and_(a, b), builder.and_(half, c))]))) == 2
    assert not luts.mapping(Builder(3).finish([a, 1]))


def test_life_takes_twelve_tables() -> None:
    assert luts.lut_count(source.load("life").netlist) == 12
