"""The flat layout and the straight-line code compute the circuit."""

import numpy as np
import pytest
from hypothesis import given

from difflogic.core import gates
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout, slot_places
from difflogic.model.straight_line import expression, lines, read_inputs, register_program
from tests.experiments import GATES, MODELS
from tests.export_cases import life
from tests.random_circuits import circuits, random_circuit
from tests.random_netlists import netlists


@given(circuits())
def test_levels_tile_the_instances_and_the_gates(circuit: Circuit) -> None:
    layout = flat_layout(circuit)
    instance = gate = 0
    for level in layout.levels:
        assert (level.first_instance, level.first_gate) == (instance, gate)
        assert level.count % level.replicas == 0
        instance, gate = instance + level.count, gate + level.count // level.replicas
    assert (instance, gate) == (layout.instances, layout.gates) == (len(layout.instance_gates), circuit.gates)
    assert layout.levels[-1].count == layout.channels == circuit.channels
    uses = np.bincount(layout.instance_gates, minlength=layout.gates)
    in_perception = sum(layer.shape[0] * layer.shape[1] for layer in circuit.perceive)
    assert (uses[:in_perception] == circuit.channels).all()
    assert (uses[in_perception:] == 1).all()


@pytest.mark.parametrize("experiment", MODELS)
def test_circuits_of_the_paper_have_their_sizes(experiment: str) -> None:
    circuit = Circuit.initial(MODELS[experiment], seed=23)
    assert MODELS[experiment].gates == circuit.gates == flat_layout(circuit).gates == GATES[experiment]


def test_levels_reuse_their_slots() -> None:
    """A deep circuit needs the slots of the patches and of its two widest neighbours, not of all levels."""
    shallow = random_circuit(np.random.default_rng(0), hidden=(20,) * 3)
    deep = random_circuit(np.random.default_rng(0), hidden=(20,) * 30)
    assert flat_layout(deep).slot_count <= flat_layout(shallow).slot_count + 2 * 20


def test_gate_evaluations_per_cell_are_the_papers() -> None:
    published = {"gol": 2543, "checkerboard": 4608, "checkerboard_async": 5632, "lizard": 12160, "colored_g": 8128}
    counted = {name: flat_layout(Circuit.initial(model, 23)).instances for name, model in MODELS.items()}
    assert counted == published


def test_slot_places_of_its_documented_example() -> None:
    slots, fanout = slot_places(np.array([0, 1, 1, 1, 2, 3, 4, 4, 5, 5]), 2, [2, 4, 5, 6, 7])
    assert slots.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5]
    assert fanout.tolist() == [[0, 1], [1, 4], [4, 5], [5, 6], [6, 8], [4, 6], [6, 6]]


SAMPLES = 64


@given(netlists())
def test_lines_equal_the_netlist(netlist: CellNetlist) -> None:
    inputs = np.random.default_rng(1).integers(0, 2, (netlist.inputs, SAMPLES), dtype=np.uint8)
    values = {bit: inputs[bit] for bit in read_inputs(netlist)}
    nothing = np.zeros(SAMPLES, dtype=np.uint8)
    for line in lines(netlist):
        a, b = (*(values[bit] for bit in line.reads), nothing, nothing)[:2]
        values[line.bit] = gates.TRUTH[line.gate][2 * a + b].astype(np.uint8)
    expected = unpack_bits(netlist.evaluate(pack_bits(inputs)), SAMPLES)
    assert np.array_equal([values[output] for output in netlist.outputs], expected)


@given(netlists())
def test_every_line_is_read(netlist: CellNetlist) -> None:
    found = lines(netlist)
    read = {bit for line in found for bit in line.reads} | set(netlist.outputs.tolist())
    assert {line.bit for line in found} <= read
    assert read_inputs(netlist) == sorted(bit for bit in read if bit < netlist.inputs)


def test_gates_of_one_bit_are_normalised() -> None:
    netlist = CellNetlist.build(1, False, [6, 9, 14, 5, 10], [[0, 0], [1, 1], [2, 2], [3, 4], [5, 6]], [9])
    for output, (gate, reads) in enumerate([(0, ()), (15, ()), (12, (2,)), (3, (4,)), (12, (6,))]):
        one = CellNetlist.build(1, False, netlist.gates, netlist.wires, [9 + output])
        assert [(line.bit, line.gate, line.reads) for line in lines(one)] == [(9 + output, gate, reads)]


@given(netlists())
def test_an_expression_names_what_the_line_reads(netlist: CellNetlist) -> None:
    for line in lines(netlist):
        text = expression(line, lambda bit: f"b{bit}", "none", "all")
        words = set(text.translate(str.maketrans("~()&|^", "      ")).split())
        constant = {0: {"none"}, 15: {"all"}}
        assert words == constant.get(line.gate, {f"b{bit}" for bit in line.reads})


def test_registers_are_reused() -> None:
    program = register_program(life())
    assert len(program.code) == 28
    assert program.registers < 9 + 28 / 2


def test_a_long_chain_needs_two_registers() -> None:
    """An input that every gate reads, and the value that is handed on in the place of the other."""
    wires = [(0, 1), *((1, 9 + index) for index in range(99))]
    chain = CellNetlist.build(1, False, [6] * 100, wires, [108])
    assert register_program(chain).registers == 2
