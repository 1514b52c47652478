"""Test that netlists equal the engine, 64 cells at a time, and that circuit.json preserves them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import gates
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.errors import CircuitError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.reference.engine import ReferenceEngine
from tests.random_circuits import bits, circuits, random_circuit
from tests.random_netlists import netlists, same
from tests.tasks import task_job

CIRCUIT = random_circuit(np.random.default_rng(1))
TEXT = netlist_json.to_json(CellNetlist.from_circuit(CIRCUIT, visible=1))


@given(circuits(), st.integers(0, 2**32 - 1))
def test_loaded_netlist_equals_the_engine(circuit: Circuit, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = bits(rng, 3, int(rng.integers(3, 7)), int(rng.integers(3, 7)), circuit.channels)
    netlist = netlist_json.from_json(netlist_json.to_json(CellNetlist.from_circuit(circuit)))
    assert np.array_equal(netlist.rollout(x, 3), ReferenceEngine().rollout(circuit, x, 3, "hard"))


@given(netlists(), st.integers(0, 2**32 - 1), st.integers(1, 200))
def test_words_equal_single_bits(netlist: CellNetlist, seed: int, samples: int) -> None:
    inputs = np.random.default_rng(seed).integers(0, 2, (netlist.inputs, samples), dtype=np.uint8)
    values = list(inputs)
    for gate, (a, b) in zip(netlist.gates, netlist.wires, strict=True):
        values.append(gates.TRUTH[gate][2 * values[a] + values[b]].astype(np.uint8))
    words = netlist.evaluate(pack_bits(inputs))
    assert np.array_equal(unpack_bits(words, samples), [values[output] for output in netlist.outputs])


def test_evaluation_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    netlist = CellNetlist.from_circuit(CIRCUIT)
    x = bits(np.random.default_rng(2), 2, 33, 17, 2)
    whole = netlist.rollout(x, 2)
    monkeypatch.setattr("difflogic.model.netlist._CHUNK_BYTES", 1)
    assert np.array_equal(netlist.rollout(x, 2), whole)


def test_depths() -> None:
    netlist = CellNetlist.build(1, False, [1, 7, 6], [[0, 1], [9, 2], [3, 4]], [10])
    assert netlist.program.depths.tolist() == [1, 2, 1]


@given(netlists())
def test_written_and_read_it_is_the_same(netlist: CellNetlist) -> None:
    assert same(netlist_json.from_json(netlist_json.to_json(netlist)), netlist)


@given(netlists(), st.randoms())
def test_gates_in_any_order_with_any_names_are_read(netlist: CellNetlist, random) -> None:
    data = json.loads(netlist_json.to_json(netlist))
    random.shuffle(data["gates"])
    text = json.dumps(data).replace('"g', '"other ')
    text = text.replace('"other ates"', '"gates"').replace('"other ate"', '"gate"')
    x = bits(np.random.default_rng(3), 1, 5, 5, netlist.channels)
    assert np.array_equal(netlist_json.from_json(text).rollout(x, 2), netlist.rollout(x, 2))


def test_circuit_json_has_its_documented_form() -> None:
    data = json.loads(TEXT)
    assert data["format"] == "difflogic-circuit"
    assert (data["version"], data["channels"], data["visible"], data["periodic"]) == (1, 2, 1, False)
    assert "origin" not in data
    assert set(data["gates"][0]) == {"id", "gate", "name", "a", "b"}
    assert [row["id"] for row in data["gates"]] == [f"g{i}" for i in range(len(data["gates"]))]
    first_a = CIRCUIT.perceive_wires[0][0, 0, 0]
    assert data["gates"][0]["a"] == f"in[0][{first_a}]"
    assert data["gates"][1]["a"] == f"in[1][{first_a}]", "perception gates come once per channel"
    assert data["outputs"] == [f"g{len(data['gates']) - 2}", f"g{len(data['gates']) - 1}"]


def test_ties_go_to_the_lowest_gate() -> None:
    flat = np.zeros((CIRCUIT.gates, 16), dtype=np.float32)
    assert not CellNetlist.from_circuit(CIRCUIT.with_logits(flat)).gates.any()


def test_an_input_may_be_an_output() -> None:
    head = '"format": "difflogic-circuit", "version": 1, "channels": 1, "periodic": true'
    text = f'{{{head}, "gates": [], "outputs": ["in[0][3]"]}}'
    x = np.zeros((1, 3, 4, 1), dtype=np.uint8)
    x[0, 1, 3] = 1
    state = netlist_json.from_json(text).rollout(x, 1)[1]
    assert np.array_equal(state, np.roll(x, 1, axis=2)), "the left neighbour, wrapped"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "version 1, got format difflogic-circuit version 2"),
        ("difflogic-circuit", "other", "got format other version 1"),
        ('"version": 1', '"other": 1', "version 1, got format difflogic-circuit"),
        ('"id": "g0"', '"id": "g1"', "Duplicate gate id 'g1'"),
        ('"id": "g0"', '"id": "in[0][3]"', r"Duplicate gate id 'in\[0\]\[3\]'"),
        ('"id": "g0"', '"id": 0', "Gate 0 must be an object with a string as its id, got {"),
        ('"a": "in[0][0]"', '"a": "in[7][0]"', r"Unknown bit 'in\[7\]\[0\]' in gate 'g0'"),
        ('"a": "g0"', '"a": "g99"', "Unknown bit 'g99' in gate 'g1'"),
        ('"a": "g0"', '"a": null', "Unknown bit None in gate 'g1'"),
        ('"gate": 1,', '"gate": 16,', "Unknown function 16 of gate 'g0': expected 0 to 15"),
        ('"gate": 1,', '"gate": "AND",', "Unknown function 'AND'"),
        ('"gate": 1,', '"gate": true,', "Unknown function True"),
        ('"channels": 2', '"channels": "two"', "channels must be an integer of at least 1, got 'two'"),
        ('"channels": 2', '"channels": 0', "channels must be an integer"),
        ('"visible": 1', '"visible": 3', "visible must be 1 to 2, the number of channels, got 3"),
        ('"periodic": false', '"periodic": false, "origin": [4]', "origin must be 2 integers, one per channel"),
        (
            '"periodic": false',
            '"periodic": false, "origin": [0, 0]',
            "must be 2 different integers >= 0, one per channel",
        ),
        ('"outputs": [', '"outputs": ["g0", ', "Expected 2 outputs, one per channel, got 3"),
        ('"outputs"', '"results"', "outputs must be a list, got None"),
        ("]}", "", "not valid JSON"),
    ],
)
def test_invalid_circuit_is_refused_in_one_sentence(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = HAND
    assert old in text
    path = tmp_path / "circuit.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CircuitError, match=message) as caught:
        netlist_json.load(path)
    assert "\n" not in str(caught.value)


HAND = netlist_json.to_json(CellNetlist.build(2, False, [1, 7], [[0, 1], [18, 2]], [18, 19], visible=1))


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"format": ', "\x00"])
def test_file_that_is_no_circuit_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(CircuitError):
        netlist_json.from_json(text)


HOME = '"habitat": {"start": "seed", "height": 4, "width": 5, "steps": 6, "fire_rate": 0.6}'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seed"', '"moon"', "one of random, seed, zeros, picture, got 'moon'"),
        ('"seed"', "3", "start must be text, got 3"),
        ('"seed"', '"picture"', "must have a `picture` if and only if its `start` is"),
        ('"width": 5', '"width": 70000', "1 to 65536 cells on each side, got 70000x4"),
        ('"width": 5, ', "", "width must be an integer of at least 1, got None"),
        ("0.6", "0", "above 0 and at most 1, got 0.0"),
        ("0.6", "true", "fire_rate must be a number, got True"),
        ("0.6", '0.6, "colour": 1', "Unknown field 'colour' in habitat"),
        ("0.6", '0.6, "picture": [1]', "must be a list of rows of text"),
        ('"seed"', '"picture", "picture": ["1.", "1"]', "cannot be read: expected rows of equal length"),
        ('"seed"', '"picture", "picture": ["1."]', "must have its grid's size, 5x4"),
        (HOME, '"habitat": []', "habitat must be a JSON object"),
    ],
)
def test_invalid_habitat_is_refused_in_one_sentence(old: str, new: str, message: str) -> None:
    text = HAND.replace('"periodic": false', f'"periodic": false, {HOME}')
    assert netlist_json.from_json(text).scenario == Scenario("seed", 4, 5, 6, 0.6)
    assert netlist_json.from_json(HAND).scenario is None, "as older files are"
    with pytest.raises(CircuitError, match=message):
        netlist_json.from_json(text.replace(old, new))


@pytest.mark.parametrize("name", ["a seed", "nothing", "a picture to a picture", "a pool of boards"])
def test_scenario_has_its_initial_state_in_remaining_channels(name: str) -> None:
    job = task_job(name)
    scenario = CellNetlist.of_run(job.circuit, job.config).scenario
    assert scenario == Scenario.of(job.config)
    if job.start is None:
        assert scenario.grid(range(9)) is None
    else:
        kept = range(job.config.model.channels)[1:]
        assert np.array_equal(scenario.grid(kept), job.start[..., 1:])
        assert not scenario.grid([99]).any() or name == "a seed"


def test_a_cycle_is_named() -> None:
    with pytest.raises(CircuitError, match="a cycle through the gate 'g0'"):
        netlist_json.from_json(HAND.replace('"in[0][0]"', '"g1"'))
    with pytest.raises(CircuitError, match="a cycle through the gate 'g1'"):
        netlist_json.from_json(HAND.replace('"in[0][2]"', '"g1"'))


def test_long_chain_in_reverse_order_is_read() -> None:
    count = 20_000
    rows = [{"id": f"x{i}", "gate": 6, "a": f"x{i - 1}" if i else "in[0][0]", "b": "in[0][1]"} for i in range(count)]
    data = {"format": "difflogic-circuit", "version": 1, "channels": 1, "periodic": False}
    data |= {"gates": rows[::-1], "outputs": [f"x{count - 1}"]}
    netlist = netlist_json.from_json(json.dumps(data))
    assert netlist.program.depths.tolist() == list(range(1, count + 1))


def test_a_file_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "circuit.json"
    with path.open("wb") as file:
        file.truncate(netlist_json.MAX_BYTES + 1)
    with pytest.raises(CircuitError, match="at most"):
        netlist_json.load(path)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "circuit.json").write_text("\ufeff" + TEXT, encoding="utf-8")
    assert same(netlist_json.load(tmp_path / "circuit.json"), netlist_json.from_json(TEXT))


def test_missing_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match="Cannot read the circuit"):
        netlist_json.load(tmp_path / "circuit.json")
