"""Test that simulations on all cores equal the reference bit for bit."""

import re

import numpy as np
import pytest
from hypothesis import given

from difflogic.core.bits import ONES
from difflogic.cpu.codegen import row_code
from difflogic.cpu.hard import simulation as simulations
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.column_program import A_AND_NOT_B, AND, OR, XOR, ColumnNode, column_program, symmetric_inputs
from tests.export_cases import life
from tests.random_netlists import netlists, random_netlist
from tests.simulation_cases import Case, cases, check_against_the_reference, random_start, some_masks


@given(cases())
def test_machine_code_equals_the_reference(case: Case) -> None:
    check_against_the_reference(case, lambda spec: CpuSimulation(spec, threads=3))


@pytest.mark.parametrize(("name", "feature", "words"), [("x86-64-v3", "+avx2", 4), ("x86-64-v2", "+sse2", 2)])
def test_machine_code_for_narrower_vectors(name: str, feature: str, words: int, monkeypatch) -> None:
    """A vector is one register, however wide, and the same bits come out."""
    spec = SimulationSpec(life(), 301, 130, 39322, seed=1)
    module = row_code.row_module(column_program(spec.netlist), feature, stride=32, masked=True)
    assert set(re.findall(r"<(\d+) x i64>", str(module))) == {str(words)}
    if feature not in row_code.target()[1].split(","):
        pytest.skip(f"this processor has no {feature[1:]}")
    monkeypatch.setattr(row_code, "target", lambda: (name, feature))
    start = random_start(spec, np.random.default_rng(1))
    check_against_the_reference(Case(spec, start, 20), CpuSimulation)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("height", [301, 401], ids=["a band each", "two bands each"])
def test_threads_change_no_bit_of_a_simulation(height: int, periodic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for no more than those beside them, and still nothing is read too early."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    spec = SimulationSpec(life(periodic), height, 130, 39322, seed=1)
    start = random_start(spec, np.random.default_rng(1))
    check_against_the_reference(Case(spec, start, 20), lambda spec: CpuSimulation(spec, threads=5))


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_one_thread_finishes_if_others_never_run(alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may preempt threads: the others do their bands."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    monkeypatch.setattr(simulations, "together", lambda threads, work: work(alone))
    spec = SimulationSpec(life(), 301, 130, 39322, seed=1)
    start = random_start(spec, np.random.default_rng(1))
    check_against_the_reference(Case(spec, start, 20), lambda spec: CpuSimulation(spec, threads=3))


def test_thousands_of_gates_in_wide_rows_equal_the_reference() -> None:
    rng = np.random.default_rng(4)
    spec = SimulationSpec(random_netlist(rng, 3000, channels=40, reach=1500), 5, 3000)
    case = Case(spec, random_start(spec, rng), 2)
    check_against_the_reference(case, lambda spec: CpuSimulation(spec, threads=2))


def test_masks_of_another_shape_are_refused() -> None:
    simulation = CpuSimulation(SimulationSpec(life(), 5, 70), threads=1)
    masks = some_masks(simulation.spec, 3)
    with pytest.raises(DataError, match=re.escape("masks must be uint64 [2, 5, 2], got uint64 [3, 5, 2].")):
        simulation.run(2, masks)


@pytest.mark.parametrize("threads", [1, 3])
def test_passes_of_many_steps_equal_the_reference(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bands that compute rows of each other's, move through their memory and back, and end within a pass."""
    monkeypatch.setattr(simulations, "THREAD_WORDS", 4)
    monkeypatch.setattr(simulations, "ROWS_PER_STEP", 3)
    rng = np.random.default_rng(5)
    for periodic, height in ((True, 60), (False, 131)):
        netlist = life(periodic) if height == 60 else random_netlist(rng, 40, channels=2)
        spec = SimulationSpec(netlist, height, 130)
        case = Case(spec, random_start(spec, rng), 100)
        check_against_the_reference(case, lambda spec: CpuSimulation(spec, threads=threads))


@given(netlists())
def test_column_program_equals_the_circuit(netlist: CellNetlist) -> None:
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 2**64, (netlist.inputs, 2), dtype=np.uint64)
    program = column_program(netlist)
    memo: dict[tuple[int, int], np.ndarray] = {}

    def value(node: int, delay: int) -> np.ndarray:
        if (node, delay) not in memo:
            memo[node, delay] = computed(program.nodes[node], delay)
        return memo[node, delay]

    def computed(node: ColumnNode, delay: int) -> np.ndarray:
        if not node.gate:
            return patches[9 * node.channel + 3 * (2 - delay) + node.dx] if node.channel >= 0 else 0 * patches[0]
        a, b = (value(read.node, read.delay + delay) for read in (node.a, node.b))
        return {AND: a & b, A_AND_NOT_B: a & ~b, XOR: a ^ b, OR: a | b}[node.gate]

    found = [value(output.node, output.delay) ^ (ONES if output.inverted else 0) for output in program.outputs]
    if not any(len(group) > 1 for group in symmetric_inputs(netlist)):
        np.testing.assert_array_equal(found, netlist.evaluate(patches))


def test_life_shares_the_sums_of_rows() -> None:
    """28 gates and 6 shifts of a cell alone: 23 with those of its neighbours, and each word is loaded once."""
    program = column_program(life())
    assert program.cost() == 23
    inputs = [
        delays for node, delays in zip(program.nodes, program.computed(), strict=True) if delays and not node.gate
    ]
    assert len(inputs) == 3
