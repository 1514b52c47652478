"""Wiring schemes against the authors' arrays, and the pairs that cannot be had."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import prng, wiring
from difflogic.errors import CircuitError
from difflogic.model.circuit import Circuit
from tests import parity
from tests.experiments import MODELS

PRIMITIVES = parity.load("primitives")


def keys_below(prefix: str) -> list[str]:
    return [key.removeprefix(prefix) for key in PRIMITIVES if key.startswith(prefix)]


@pytest.mark.parametrize("case", keys_below("unique/"))
def test_unique_pairs_equal_the_authors(case: str) -> None:
    n_in, n_out = map(int, case.split("_"))
    np.testing.assert_array_equal(wiring.unique_pairs(n_in, n_out), PRIMITIVES[f"unique/{case}"])


@pytest.mark.parametrize("seed", keys_below("moore/"))
def test_first_kernel_equals_the_authors(seed: str) -> None:
    got = wiring.first_kernel(prng.key_from_seed(int(seed)), 9, 8)
    np.testing.assert_array_equal(got, PRIMITIVES[f"moore/{seed}"])


@pytest.mark.parametrize("case", keys_below("random/"))
def test_random_wires_equal_the_authors(case: str) -> None:
    seed, n_in, n_out = (int(part.lstrip("inout")) for part in case.split("_"))
    got = wiring.random(prng.key_from_seed(seed), n_in, n_out)
    np.testing.assert_array_equal(got, PRIMITIVES[f"random/{case}"])


@pytest.mark.parametrize("experiment", MODELS)
def test_seed_23_gives_the_wiring_of_the_paper(experiment: str) -> None:
    circuit = Circuit.initial(MODELS[experiment], seed=23)
    theirs = parity.layers(parity.load("wires_seed23"), f"{experiment}/")
    for network, ours in circuit.wires.items():
        assert len(ours) == len(theirs[network])
        for own, layer in zip(ours, theirs[network], strict=True):
            np.testing.assert_array_equal(own, np.broadcast_to(layer, own.shape))


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.data())
def test_unique_wires_are_distinct_pairs_within_range(seed: int, n_in: int, data: st.DataObject) -> None:
    n_out = data.draw(st.integers(1, n_in * (n_in - 1) // 2))
    a, b = wiring.unique(prng.key_from_seed(seed), n_in, n_out)
    assert len(set(zip(a.tolist(), b.tolist(), strict=True))) == n_out
    assert (a < b).all()
    assert a.min() >= 0
    assert b.max() < n_in


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 40))
def test_random_wires_use_every_input_about_equally(seed: int, n_in: int, n_out: int) -> None:
    wires = wiring.make_wires("random", prng.key_from_seed(seed), n_in, n_out)
    assert wires.shape == (2, n_out)
    uses = np.bincount(wires.reshape(-1), minlength=n_in)
    assert len(uses) == n_in
    assert uses.max() - uses.min() <= 1


@pytest.mark.parametrize(("n_in", "n_out"), [(2, 2), (4, 7), (9, 37), (1, 1)])
def test_unique_refuses_more_gates_than_pairs(n_in: int, n_out: int) -> None:
    pairs = n_in * (n_in - 1) // 2
    with pytest.raises(CircuitError) as raised:
        wiring.unique(prng.key_from_seed(0), n_in, n_out)
    assert str(raised.value) == (
        f"Expected at most {pairs} gates for unique connections of {n_in} inputs, got {n_out}: "
        "narrow the layer or use random connections."
    )


@pytest.mark.parametrize(("n_in", "n_out"), [(9, 9), (8, 8)])
def test_first_kernel_refuses_other_widths(n_in: int, n_out: int) -> None:
    with pytest.raises(CircuitError) as raised:
        wiring.first_kernel(prng.key_from_seed(0), n_in, n_out)
    said = f"first_kernel requires 9 inputs and 8 gates, got {n_in} and {n_out}: use unique or random."
    assert str(raised.value) == said


def test_unknown_scheme_error_lists_the_schemes() -> None:
    with pytest.raises(CircuitError) as raised:
        wiring.make_wires("spiral", prng.key_from_seed(0), 9, 8)
    assert str(raised.value) == "Unknown connections 'spiral': expected one of first_kernel, unique, random."
