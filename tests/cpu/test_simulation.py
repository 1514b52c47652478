"""The simulator on every core: every bit, by machine code and by the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given

from difflogic.cpu import row_code
from difflogic.cpu import simulation as simulations
from difflogic.cpu.row_code import compile_row
from difflogic.cpu.simulation import CpuSimulation
from difflogic.errors import DataError
from difflogic.simulation import Scene
from tests.random_netlists import random_netlist
from tests.scenes import Case, cases, check_against_the_reference, life, random_start, some_masks


@given(cases())
def test_machine_code(case: Case) -> None:
    row = compile_row(case.scene.netlist)
    assert row is not None
    check_against_the_reference(case, lambda scene: CpuSimulation(scene, row, threads=3))


@given(cases())
def test_interpreted(case: Case) -> None:
    check_against_the_reference(case, lambda scene: CpuSimulation(scene, threads=3))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("periodic", [True, False])
def test_a_band_for_each_of_many_threads(compiled: bool, periodic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for no more than those beside them, and still nothing is read too early."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    scene = Scene(life(periodic), 301, 130, 39322, seed=1)
    start = random_start(scene, np.random.default_rng(1))
    row = compile_row(scene.netlist) if compiled else None
    check_against_the_reference(Case(scene, start, 20), lambda scene: CpuSimulation(scene, row, threads=5))


def test_a_circuit_too_large_for_the_compiler_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_code, "MOST_GATES", 25)
    assert compile_row(life()) is None


def test_slots_beyond_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter then takes one vector at a time."""
    rng = np.random.default_rng(4)
    scene = Scene(random_netlist(rng, 3000, channels=40, reach=1500), 5, 3000)
    case = Case(scene, random_start(scene, rng), 2)
    check_against_the_reference(case, lambda scene: CpuSimulation(scene, threads=2))


def test_masks_of_another_shape_are_refused() -> None:
    simulation = CpuSimulation(Scene(life(), 5, 70), threads=1)
    masks = some_masks(simulation.scene, 3)
    with pytest.raises(DataError, match=re.escape("masks must be uint64 [2, 5, 2], got uint64 [3, 5, 2].")):
        simulation.run(2, masks)
