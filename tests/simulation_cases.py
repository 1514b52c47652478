"""Simulations that no one designed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from difflogic.core import bernoulli
from difflogic.core.bits import Planes, pack_planes
from difflogic.engine.simulation import Simulation, SimulationSpec
from difflogic.reference.simulation import ReferenceSimulation
from tests.random_netlists import random_netlist

WIDTHS = (3, 5, 31, 32, 33, 63, 64, 65, 127, 128, 130, 200, 1024, 1030)
"""Below, at and beyond words of 32 and 64 cells, and vectors of 8 and 16 words."""


class Case(NamedTuple):
    """A specification, its initial state `[H, C, words]`, and a number of steps."""

    spec: SimulationSpec
    start: Planes
    steps: int


@st.composite
def cases(draw: st.DrawFn, most_gates: int = 40, most_steps: int = 5, synchronous: bool = False) -> Case:
    """Any circuit, either boundary, synchronous or not, odd sizes, one row among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    netlist = random_netlist(
        rng,
        draw(st.integers(0, most_gates)),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        draw(st.sampled_from([None, 9])),
        draw(st.sampled_from(["moore", "line"])),
    )
    height = draw(st.integers(3, 40) if netlist.neighbourhood == "moore" else st.just(1))
    width = draw(st.sampled_from(WIDTHS))
    units = draw(st.sampled_from([bernoulli.CERTAIN, *([] if synchronous else [bernoulli.CERTAIN // 2, 39322, 1])]))
    spec = SimulationSpec(netlist, height, width, units, seed=draw(st.integers(0, 2**32 - 1)))
    return Case(spec, random_start(spec, rng), draw(st.integers(1, most_steps)))


def random_start(spec: SimulationSpec, rng: np.random.Generator) -> Planes:
    return pack_planes(rng.integers(0, 2, (spec.height, spec.width, spec.channels)).astype(np.uint8))


def some_masks(spec: SimulationSpec, steps: int) -> Planes:
    """uint64 `[T, H, words]`: half of the cells fire."""
    return bernoulli.coins(bernoulli.fire_key(99), steps * spec.height, spec.words, bernoulli.CERTAIN // 2).reshape(
        steps, spec.height, spec.words
    )


def check_against_the_reference(case: Case, open_one: Callable[[SimulationSpec], Simulation]) -> None:
    """Steps in two calls, then steps with given masks, from a step number that is not 0: all bits are equal."""
    spec, start, steps = case
    states = []
    for opened in (ReferenceSimulation, open_one):
        simulation = opened(spec)
        simulation.put(start, step=7)
        simulation.run(steps)
        simulation.run(1)
        states.append(simulation.planes())
        simulation.run(2, some_masks(spec, 2))
        states.append(simulation.planes())
        assert simulation.step == 7 + steps + 3
        simulation.close()
    np.testing.assert_array_equal(states[2], states[0])
    np.testing.assert_array_equal(states[3], states[1])
