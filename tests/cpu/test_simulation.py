"""The simulator on every core: every bit, by machine code and by the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from llvmlite import ir

from difflogic.cpu.codegen import row_code
from difflogic.cpu.codegen.plane_vectors import ROW
from difflogic.cpu.codegen.row_code import compile_row
from difflogic.cpu.hard import simulation as simulations
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError
from difflogic.model.cell_netlist import CellNetlist
from tests.export_cases import life
from tests.random_netlists import random_netlist
from tests.simulation_cases import Case, cases, check_against_the_reference, random_start, some_masks


@given(cases())
def test_machine_code(case: Case) -> None:
    row = compile_row(case.spec.netlist)
    assert row is not None
    check_against_the_reference(case, lambda spec: CpuSimulation(spec, row, threads=3))


@given(cases())
def test_interpreted(case: Case) -> None:
    check_against_the_reference(case, lambda spec: CpuSimulation(spec, threads=3))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("periodic", [True, False])
def test_a_band_for_each_of_many_threads(compiled: bool, periodic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for no more than those beside them, and still nothing is read too early."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    spec = SimulationSpec(life(periodic), 301, 130, 39322, seed=1)
    start = random_start(spec, np.random.default_rng(1))
    row = compile_row(spec.netlist) if compiled else None
    check_against_the_reference(Case(spec, start, 20), lambda spec: CpuSimulation(spec, row, threads=5))


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_one_thread_goes_on_where_the_others_never_run(alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine, which holds them up: their bands are done by whoever runs."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    monkeypatch.setattr(simulations, "together", lambda threads, work: work(alone))
    spec = SimulationSpec(life(), 301, 130, 39322, seed=1)
    start = random_start(spec, np.random.default_rng(1))
    check_against_the_reference(Case(spec, start, 20), lambda spec: CpuSimulation(spec, threads=3))


def test_a_circuit_too_large_for_the_compiler_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_code, "MOST_GATES", 25)
    assert compile_row(life()) is None


def test_slots_beyond_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter then takes one vector at a time."""
    rng = np.random.default_rng(4)
    spec = SimulationSpec(random_netlist(rng, 3000, channels=40, reach=1500), 5, 3000)
    case = Case(spec, random_start(spec, rng), 2)
    check_against_the_reference(case, lambda spec: CpuSimulation(spec, threads=2))


def test_masks_of_another_shape_are_refused() -> None:
    simulation = CpuSimulation(SimulationSpec(life(), 5, 70), threads=1)
    masks = some_masks(simulation.spec, 3)
    with pytest.raises(DataError, match=re.escape("masks must be uint64 [2, 5, 2], got uint64 [3, 5, 2].")):
        simulation.run(2, masks)


def test_the_worked_example_of_two_gates() -> None:
    """Of `row_code`: what a XOR and an AND NOT become, without the arithmetic of addresses."""
    module = ir.Module(name="row")
    netlist = CellNetlist.build(1, False, gates=[6, 2], wires=[[3, 4], [9, 1]], outputs=[10])
    row_code._build(ir.Function(module, ROW, name="row"), netlist)
    words = re.findall(r"(load|call|xor|and|store) +(?=<8 x i64>)", str(module))
    assert words == ["load", "load", "load", "call", "load", "xor", "xor", "and", "store"]
