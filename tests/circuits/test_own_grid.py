"""Simplification for one initial state on one grid, until its states repeat."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import own_grid
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.pipeline import simplify
from difflogic.errors import LimitError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from tests.export_cases import AND, NOT, OR
from tests.export_cases import Builder as Gates
from tests.random_netlists import random_netlist

SEED = Scenario("seed", 2, 6, 5)


pytestmark = pytest.mark.usefixtures("short_walks")


def spreading(scenario: Scenario = SEED) -> CellNetlist:
    """Return a circuit whose channel 0 spreads right and is erased by channel 1, which moves right a cell a step."""
    gate = Gates(2)
    spread = gate(OR, 4, 3)
    erased = gate(AND, spread, gate(NOT, gate(AND, 9 + 4, gate(AND, 4, 5)), 0))
    return CellNetlist.build(2, False, gate.gates, gate.wires, [erased, 9 + 3], 1, scenario=scenario)


def shown(netlist: CellNetlist, steps: int) -> np.ndarray:
    assert netlist.scenario is not None
    start = netlist.scenario.grid(netlist.origin)
    assert start is not None
    return netlist.rollout(start[None], steps)[..., : netlist.visible]


def test_unreachable_states_on_the_grid_need_no_gate() -> None:
    """Channel 1 is never within the spread of channel 0, so that nothing is ever erased."""
    found = simplify(spreading(), to_start=True, size=(3, 9))
    assert found.proved
    assert found.reachable is not None
    how = "on 9x3 cells by following both until step 6, where they are in an earlier state"
    assert found.reachable.verdict.how == how
    assert (gate_count(found.netlist), found.netlist.origin) == (1, (0,))
    assert found.netlist.scenario == replace(SEED, height=3, width=9)
    assert np.array_equal(shown(replace(spreading(), scenario=found.netlist.scenario), 20), shown(found.netlist, 20))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["seed", "zeros"]))
@settings(max_examples=8)
def test_random_circuits_show_the_same_after_their_states_repeat(seed: int, periodic: bool, start: str) -> None:
    netlist = random_netlist(np.random.default_rng(seed), 40, channels=3, periodic=periodic)
    netlist = replace(netlist, origin=(0, 1, 2), scenario=Scenario(start, 3, 5, 2))
    try:
        found = simplify(netlist, to_start=True, size=(3, 5))
    except LimitError:
        return
    assert found.proved
    assert gate_count(found.netlist) <= gate_count(found.simplified.netlist)
    assert np.array_equal(shown(netlist, 300), shown(found.netlist, 300))


def test_late_difference_is_found() -> None:
    """The circuits are equal until something reaches the right end."""
    netlist, other = spreading(), Gates(2)
    no_end = other(AND, other(OR, 4, 3), other(NOT, other(AND, 4, 3), 0))
    cut = CellNetlist.build(2, False, other.gates, other.wires, [no_end, 9 + 3], 1, scenario=SEED)
    verdict = own_grid.proved(netlist, cut)
    assert verdict.equal is False
    step = int(verdict.how.removeprefix("they differ at step "))
    assert np.array_equal(shown(netlist, step - 1), shown(cut, step - 1))
    assert not np.array_equal(shown(netlist, step), shown(cut, step))


def test_rollout_without_repetition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="got a random initial state"):
        simplify(spreading(Scenario("random", 6, 7, 5)), to_start=True, size=(6, 7))
    with pytest.raises(UsageError, match="this one updates random cells"):
        simplify(spreading(replace(SEED, fire_rate=0.5)), to_start=True, size=(6, 7))
    with pytest.raises(UsageError, match="`size` requires `from_start`"):
        simplify(spreading(), size=(6, 7))
    with pytest.raises(LimitError, match="at most 1000000 cells, got 65536x65536"):
        simplify(spreading(), to_start=True, size=(1 << 16, 1 << 16))
    monkeypatch.setattr(own_grid, "MOST_UPDATES", 36)
    with pytest.raises(LimitError, match="No state repeats within 3 steps on 6x2 cells"):
        simplify(spreading(), to_start=True, size=(2, 6))
    assert own_grid.proved(spreading(), spreading()).equal is None
