"""Rule induction from observed transitions, and graphs as layers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.readers.rule import rule_netlist
from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.layered import layered
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder
from difflogic.config.dataset import Dataset
from difflogic.core import rules
from difflogic.reference.engine import ReferenceEngine

States = npt.NDArray[np.uint8]
MOORE = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def bits_of(states: States, channels: int) -> States:
    return np.stack([states >> bit & 1 for bit in range(channels)], axis=-1)


def stepped(graph: XAG, x: States, periodic: bool = True, neighbourhood: str = "moore") -> States:
    """Return a step of the graph as layers, by the reference implementation."""
    circuit = layered(graph, periodic, neighbourhood)
    found: States = ReferenceEngine().rollout(circuit, x.astype(np.float32), 1, "hard")[-1].astype(np.uint8)
    return found


def around(now: States) -> npt.NDArray[np.int64]:
    return np.stack([np.roll(now, (-dy, -dx), (-2, -1)) for dy, dx in MOORE]).astype(np.int64)


def wireworld(now: States) -> Any:
    heads = (around(now) == 1).sum(axis=0)
    return np.choose(now, [0 * now, 0 * now + 2, 0 * now + 3, np.where((heads == 1) | (heads == 2), 1, 3)])


def cyclic(now: States) -> Any:
    following = (now + 1) % 5
    return np.where((around(now) == following).sum(axis=0) >= 2, following, now)


def exchanged(now: States) -> Any:
    """Return a step in which bit 0 is bit 1 of the left cell, and bit 1 the XOR of bits of two other neighbours."""
    left, up, down = (np.roll(now, move, (-2, -1)) for move in ((0, 1), (1, 0), (-1, 0)))
    return left >> 1 & 1 | ((up & 1) ^ (down >> 1 & 1)) << 1


@pytest.mark.parametrize(("step", "states"), [(wireworld, 4), (cyclic, 5), (exchanged, 4)])
def test_rule_is_induced_from_a_part_of_all_neighbourhoods(step: Callable[[States], Any], states: int) -> None:
    channels = (states - 1).bit_length()
    learned, fresh = np.random.default_rng(states).integers(0, states, (2, 12, 16, 16), dtype=np.uint8)
    x, y = (bits_of(each.astype(np.uint8), channels) for each in (learned, step(learned)))
    graph = observed(Dataset.of(x, y), True, "moore")
    assert graph is not None
    assert np.array_equal(stepped(graph, bits_of(fresh, channels)), bits_of(step(fresh).astype(np.uint8), channels))


@settings(max_examples=4)
@given(st.sets(st.integers(1, 4), min_size=1, max_size=2), st.sets(st.integers(0, 5), max_size=3), st.integers(3, 6))
def test_recording_of_generations_induces_its_rule(birth: set[int], survival: set[int], states: int) -> None:
    names = ("".join(map(str, sorted(each))) for each in (birth, survival))
    rule = rule_netlist("B{}/S{}/C{}".format(*names, states), periodic=True)
    learned, fresh = np.random.default_rng(states).integers(0, states, (2, 24, 24, 24), dtype=np.uint8)
    x = bits_of(learned, rule.channels)
    graph = observed(Dataset.of(x, rule.rollout(x, 1)[-1]), True, "moore")
    assert graph is not None
    found = to_netlist(graph, rule).rollout(bits_of(fresh, rule.channels), 1)[-1]
    assert (found != rule.rollout(bits_of(fresh, rule.channels), 1)[-1]).mean() < 0.001


def test_line_and_border_are_induced() -> None:
    x = np.random.default_rng(1).integers(0, 2, (8, 1, 30, 1), dtype=np.uint8)
    y = rules.apply(rules.table("30"), x[..., 0], False)[..., None]
    graph = observed(Dataset.of(x, y), False, "line")
    assert graph is not None
    assert np.array_equal(stepped(graph, x, False, "line"), y)


def test_all_steps_of_a_recording_are_used_unless_masked() -> None:
    films = [np.random.default_rng(2).integers(0, 4, (2, 12, 12), dtype=np.uint8)]
    while len(films) < 9:
        films.append(wireworld(films[-1]).astype(np.uint8))
    frames = bits_of(np.stack(films, axis=1), 2)
    pairs = Dataset.of_frames(frames).single_steps()
    assert pairs is not None
    assert (pairs.x.shape, pairs.y.shape) == ((16, 12, 12, 2), (16, 1, 12, 12, 2))
    assert np.array_equal(pairs.x[1:8], pairs.y[:7, 0])
    masked = Dataset.of_frames(frames, np.arange(12) < np.full((12, 1), 5)).single_steps()
    assert masked is not None
    assert len(masked) == 2


def test_samples_without_a_simple_rule_give_none() -> None:
    x = np.random.default_rng(4).integers(0, 2, (4, 8, 8, 2), dtype=np.uint8)
    assert observed(Dataset.of(x, np.random.default_rng(5).integers(0, 2, x.shape)), True, "moore") is None
    assert observed(Dataset.of(x, x, steps=2), True, "moore") is None  # what is between is not shown
    assert observed(Dataset.of(x, x[..., :1]), True, "moore") is None  # a channel is hidden
    still = np.concatenate([np.zeros_like(x), np.zeros_like(x)])
    torn = still.copy()
    torn[0, 0, 0] = 1
    assert observed(Dataset.of(still, torn), True, "moore") is None  # equal cells become different ones


def test_layers_compute_the_graph() -> None:
    rng = np.random.default_rng(6)
    builder = Builder(18)
    literals = [2 * (1 + place) for place in range(18)]
    for _ in range(60):
        a, b = (int(rng.choice(literals)) ^ int(rng.integers(2)) for _ in range(2))
        literals.append(builder.xor(a, b) if rng.random() < 0.4 else builder.and_(a, b))
    x = rng.integers(0, 2, (3, 6, 5, 2), dtype=np.uint8)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = [wide[:, dy : dy + 6, dx : dx + 5, channel] for channel in range(2) for dy in range(3) for dx in range(3)]
    for outputs in ([literals[-1], literals[-2] ^ 1], [TRUE, literals[0] ^ 1], [literals[17], FALSE]):
        graph = XAG(18, tuple(builder.gates), outputs)
        words = np.stack(seen).reshape(18, -1).astype(np.uint64)
        values = graph.evaluate(words)
        wanted = [(values[output >> 1] & 1) ^ (output & 1) for output in outputs]
        assert np.array_equal(stepped(graph, x, False), np.stack(wanted, axis=-1).reshape(x.shape))
