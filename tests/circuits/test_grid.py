"""Complete automata in Verilog, and as netlists with latches for model checkers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.export import formats
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import CircuitError, ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.model.grid import Grid, LatchNetlist
from tests.circuits.conftest import proofs
from tests.export_cases import AND, life, published, tangled
from tests.programs import needs
from tests.random_netlists import netlists

FORMATS = [form for form, row in formats.FORMATS.items() if row.grid]
SCENARIO = Scenario("picture", 2, 7, 4, picture=("..1.1..", ".1.1..1"))


@pytest.mark.parametrize(
    "grid",
    [Grid(life(), 1, 1), Grid(published(), 3, 5), Grid(replace(life(periodic=False), scenario=SCENARIO), 2, 7)],
    ids=str,
)
def test_automaton_in_verilog_has_the_states_of_the_simulator(grid: Grid) -> None:
    """Both boundaries, odd sizes, hidden channels, states of less than a word, and an initial state of its own."""
    assert f"of {grid.width}x{grid.height} cells, read as bytes and bits" in " ".join(proofs(grid, "verilog"))


@settings(max_examples=5)
@given(netlist=netlists(), height=st.integers(1, 4), width=st.integers(1, 4), claimed=st.booleans())
def test_machines_of_random_circuits_are_verified(netlist: CellNetlist, height: int, width: int, claimed: bool) -> None:
    target = np.eye(height, width, dtype=np.uint8)[..., None] if claimed else None
    assert proofs(Grid(netlist, height, width, target, 3), "aiger")


@pytest.mark.parametrize("form", FORMATS)
def test_export_of_another_circuit_is_detected(form: str) -> None:
    right = life()
    wrong = replace(right, gates=np.append(right.gates[:-1], np.uint8(AND)))
    needs(*formats.FORMATS[form].programs)
    with pytest.raises(ExportError):
        formats.verify(Grid(right, 4, 3), "case", form, formats.export(Grid(wrong, 4, 3), "case", form))


def walked(machine: LatchNetlist, latches: Bits, inputs: Bits, steps: int) -> Bits:
    shown = []
    for _ in range(steps):
        bits = np.concatenate([inputs, latches])[:, None]
        outputs = unpack_bits(machine.evaluate(pack_bits(bits)), 1)[:, 0]
        shown.append(outputs[: -machine.latches])
        latches = outputs[-machine.latches :]
    return np.stack(shown)


@given(netlist=netlists(), seed=st.integers(0, 99))
def test_machine_shows_the_rollout_or_the_violated_claim(netlist: CellNetlist, seed: int) -> None:
    start = np.random.default_rng(seed).integers(0, 2, (3, 4, netlist.channels), dtype=np.uint8)
    states = netlist.rollout(start[None], 8)[:, 0, ..., : netlist.visible]
    for target in (None, states[6]):
        machine = Grid(netlist, 3, 4, target, 5).machine()
        shown = walked(machine, np.zeros(machine.latches, dtype=np.uint8), start.reshape(-1), len(states))
        wrong = [step >= 5 and (state != states[6]).any() for step, state in enumerate(states)]
        expected = states.reshape(len(states), -1) if target is None else np.array(wrong)[:, None]
        assert np.array_equal(shown, expected)


def test_grids_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match=r"1 to 65536 bits, but 300x300 cells with 8 channels have 720000"):
        Grid(published(), 300, 300)
    with pytest.raises(CircuitError, match="choose another size"):
        Grid(life(), 0, 4)
    large = Grid(tangled(60), 100, 100)
    sentence = r"100x100 cells of \d+ gates have \d+ gates, more than the maximum of 400000"
    with pytest.raises(CircuitError, match=sentence):
        formats.export(large, "case", "aiger")
    assert formats.export(large, "case", "verilog")
    with pytest.raises(CircuitError, match=r"The format c does not support --grid: use verilog, aiger"):
        formats.export(Grid(life(), 4, 4), "case", "c", tmp_path)
