"""Repaired circuits show the image and change nothing else; if that is impossible, there is none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import repair
from difflogic.circuits.synthesis.convert import gate_count, lean
from difflogic.circuits.synthesis.invariant import start_of
from difflogic.core.bits import Bits
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.straight_line import read_inputs
from tests.random_netlists import random_netlist

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
def test_repaired_circuits_show_the_target_and_else_the_same(
    seed: int, periodic: bool, start: str, neighbourhood: str, count: int
) -> None:
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
