"""Readers of files of other programs: the same automaton, or one clear sentence."""

import copy
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import difflogic
from difflogic.circuits.export import aiger, blif
from difflogic.circuits.export.formats import written
from difflogic.circuits.readers import digitaljs, notebook, source
from difflogic.core import rules
from difflogic.errors import CircuitError, DifflogicError, NotFoundError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import active_gates
from tests import parity
from tests.circuits.digitaljs_text import connector, published
from tests.controllers import remembering_controller
from tests.random_circuits import random_circuit
from tests.random_netlists import netlists


@pytest.mark.parametrize("name", [name for name in parity.SMALL_MODELS if name != "small_async"])
def test_parameters_of_the_authors_compute_the_same(name: str) -> None:
    found = source.load(parity.DATA / f"{name}.npz")
    arrays = parity.load(name)
    steps = len(arrays["hard/states"])
    assert found.kind == "the authors' parameters"
    assert np.array_equal(found.netlist.rollout(arrays["x"], steps)[1:], arrays["hard/states"])
    assert found.paper_gates == active_gates(parity.small_model(name).circuit.flat_logits())


def write_npz(path: Path, circuit: Circuit, **more: Any) -> Path:
    arrays = {
        f"{kind}/{network}/{index}": layer
        for kind, tables in (("logits", circuit.logits), ("wires", circuit.wires))
        for network, layers in tables.items()
        for index, layer in enumerate(layers)
    }
    np.savez(path, **arrays, **more)
    return path


def test_boundary_may_be_given(tmp_path: Path) -> None:
    circuit = random_circuit(np.random.default_rng(1))
    assert not source.load(write_npz(tmp_path / "a.npz", circuit)).netlist.periodic
    assert source.load(write_npz(tmp_path / "b.npz", circuit, periodic=np.int32(1))).netlist.periodic
    assert source.load(tmp_path / "a.npz", periodic=True).netlist.periodic
    assert source.load(tmp_path / "a.npz", visible=1).netlist.visible == 1
    with pytest.raises(CircuitError, match="visible must be 1 to 2, the number of channels, got 3"):
        source.load(tmp_path / "a.npz", visible=3)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"hyperparams_json": '{"periodic": "false"}'}, "periodic must be 0 or 1, false or true, got 'false'"),
        ({"hyperparams_json": '{"periodic": 2}'}, "got 2"),
        ({"periodic": np.array("false")}, "got dtype"),
        ({"periodic": np.array([0, 1])}, r"got \[0, 1\]"),
        ({"periodic": np.float32(0.5)}, "got dtype"),
        ({"logits/update/7": np.zeros((2, 16), dtype="f4")}, "'logits/update/7' belongs to no layer"),
    ],
)
def test_parameters_are_never_guessed(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(CircuitError, match=message):
        source.load(write_npz(tmp_path / "a.npz", random_circuit(np.random.default_rng(1)), **more))


def test_hyperparameters_give_the_boundary(tmp_path: Path) -> None:
    circuit = random_circuit(np.random.default_rng(1))
    for said, meant in (("true", True), ("false", False), ("1", True)):
        path = write_npz(tmp_path / "a.npz", circuit, hyperparams_json=f'{{"periodic": {said}}}')
        assert source.load(path).netlist.periodic is meant


def test_messages_stay_short_for_any_file(tmp_path: Path) -> None:
    long = "x" * 5000
    np.savez(tmp_path / "a.npz", **{f"logits/{long}{index}": np.zeros(1) for index in range(3)})
    np.savez(tmp_path / "b.npz", **{f"wires/{index}": np.zeros(1) for index in range(500)})
    digital = json.dumps(DIGITAL).replace("l_14_4", long)
    (tmp_path / "c.json").write_text(digital.replace("AAndNotB", long))
    (tmp_path / "d.json").write_text(json.dumps(OWN | {"origin": [0] * 5000}))
    (tmp_path / "e.json").write_text(json.dumps(OWN | {"difflogic": long, "version": 9}))
    for path in tmp_path.iterdir():
        with pytest.raises(CircuitError) as caught:
            source.load(path)
        assert str(caught.value).startswith(str(path))
        assert len(str(caught.value)) < len(str(path)) + 500


def test_damaged_parameters_are_refused(tmp_path: Path) -> None:
    circuit = random_circuit(np.random.default_rng(1))
    whole = write_npz(tmp_path / "a.npz", circuit).read_bytes()
    np.savez(tmp_path / "b.npz", other=np.zeros(3))
    write_npz(tmp_path / "d.npz", circuit, hyperparams_json="[")
    (tmp_path / "e.npz").write_bytes(whole[: len(whole) // 2])
    for file in sorted(tmp_path.glob("[b-e].npz")):
        with pytest.raises(CircuitError) as caught:
            source.load(file)
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_arrays_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "MAX_BYTES", 1000)
    with pytest.raises(CircuitError, match="expected at most 1000"):
        source.load(write_npz(tmp_path / "a.npz", random_circuit(np.random.default_rng(1))))


DIGITAL = published()
Change = Callable[[dict[str, Any]], object]
OWN = json.loads(netlist_json.to_json(CellNetlist.from_circuit(random_circuit(np.random.default_rng(3), channels=1))))


@pytest.mark.parametrize("data", [DIGITAL, OWN], ids=["DigitalJS", "circuit.json"])
def test_file_is_recognised(data: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps(data))
    assert source.load(path).kind == {"d": "DigitalJS", "f": "circuit.json"}[next(iter(data))[0]]


def test_gates_of_many_inputs_and_constants_are_read() -> None:
    devices = {f"i_{index}": {"type": "Button", "bits": 1} for index in range(4)}
    devices |= {"one": {"type": "Constant", "constant": "1"}, "yes": {"type": "True"}, "no": {"type": "False"}}
    devices |= {"nand": {"type": "Nand", "inputs": 4}, "xor": {"type": "Xor", "inputs": 3}}
    devices |= {"same": {"type": "Repeater"}} | {f"o_{channel}": {"type": "Lamp"} for channel in range(4)}
    connectors = [connector(f"i_{index}", "nand", f"in{index + 1}") for index in range(3)]
    connectors += [connector("same", "nand", "in4"), connector("i_3", "same", "in")]
    connectors += [connector(name, "xor", f"in{index + 1}") for index, name in enumerate(("nand", "one", "i_0"))]
    connectors += [connector(name, f"o_{index}", "in") for index, name in enumerate(("nand", "xor", "yes", "no"))]
    netlist = digitaljs.from_data({"devices": devices, "connectors": connectors})
    for sample in range(16):
        inputs = np.zeros((netlist.inputs, 1), dtype=np.uint64)
        inputs[:4, 0] = [sample >> index & 1 for index in range(4)]
        nand = int(sample != 15)
        found = (netlist.evaluate(inputs)[:, 0] & np.uint64(1)).tolist()
        assert found == [nand, nand ^ 1 ^ (sample & 1), 1, 0]


def device(**fields: dict[str, Any]) -> Change:
    """Return a change of a device by its id, which is new if there is none."""
    ((name, change),) = fields.items()
    return lambda data: data["devices"].setdefault(name, {}).update(change)


def wire(*ends: str) -> Change:
    return lambda data: data["connectors"].append(connector(*ends))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (device(x={"type": "Dff"}), "Unknown type 'Dff' of the device 'x'"),
        (device(x={"type": []}), r"The type of the device 'x' must be text, got \[\]"),
        (device(l_1_96={"type": False}), "type of the device 'l_1_96' must be text, got False"),
        (device(i_0={"label": 3}), "label of the device 'i_0' must be text, got 3"),
        (device(l_1_96={"bits": True}), "'l_1_96' must be a JSON object whose `bits` are 1"),
        (lambda data: data["devices"].update(x=[]), "'x' must be a JSON object whose `bits` are 1"),
        (device(l_1_96={"bits": 4}), "'l_1_96' must be a JSON object whose `bits` are 1"),
        (device(l_1_96={"inputs": 3}), "The port 'in3' of 'l_1_96' is not connected|3 inputs"),
        (device(x={"type": "Button"}), "The label or id of the input 'x' must name"),
        (device(o_x={"type": "Output"}), "The label or id of the output 'o_x' must name"),
        (device(o_9={"type": "Output"}), "is not connected|channels 0, 1"),
        (device(i_0b={"type": "Input", "label": "i_0_0"}), r"Several devices represent 'in\[0\]"),
        (device(i_900={"type": "Input"}), r"an output for the channel of the input in\[100\]\[0\]"),
        (lambda data: data["connectors"].pop(), "is not connected"),
        (
            wire("i_6", "l_1_96", "in2"),
            r"The port 'in2' of 'l_1_96' is driven twice, by 'in\[1\]\[8\]' and 'in\[0\]\[6\]'",
        ),
        (wire("i_6", "l_1_96", "in3"), "the port 'in3', which the device 'l_1_96'"),
        (wire("i_6", "l_16_6", "in2"), "the port 'in2', which the device 'l_16_6'"),
        (wire("i_6", "i_0", "in"), "the port 'in', which the device 'i_0'"),
        (lambda data: data["connectors"][0]["from"].update(port="in"), "must lead from the port 'out' of a device"),
        (lambda data: data["connectors"].append({"from": 1}), "A connector must have 'from' and 'to'"),
        (wire("i_0", "void", "in"), "must lead from the port 'out' of a device"),
        (wire("void", "o_0", "in"), "must lead from the port 'out' of a device"),
        (lambda data: data["connectors"][0]["from"].update(id="o_1"), "Unknown bit"),
        (lambda data: data.update(subcircuits={"x": {}}), "no subcircuits"),
    ],
)
def test_damaged_digitaljs_is_refused(change: Change, message: str) -> None:
    data = copy.deepcopy(DIGITAL)
    change(data)
    with pytest.raises(CircuitError, match=message):
        digitaljs.from_data(data)


def test_repeated_connector_is_one_wire() -> None:
    """The article's own Life circuit has 4,215 connectors, of which 435 are different."""
    again = DIGITAL | {"connectors": DIGITAL["connectors"] * 3}
    one, other = digitaljs.from_data(DIGITAL), digitaljs.from_data(again)
    assert np.array_equal(one.gates, other.gates)
    assert np.array_equal(one.wires, other.wires)


def test_digitaljs_cycle_is_named() -> None:
    data = copy.deepcopy(DIGITAL)
    next(pair for pair in data["connectors"] if pair["to"]["id"] == "l_1_196")["from"]["id"] = "l_3_54"
    with pytest.raises(CircuitError, match="a cycle through the gate 'l_"):
        digitaljs.from_data(data)


VALUES: tuple[Any, ...] = (None, True, -1, 1 << 70, 1e300, "", "x", "g0", "in[0][0]", [], {}, [[]], {"id": 1})


def spoiled(data: Any, rng: random.Random) -> Any:
    """Return a copy with one value, anywhere, replaced, dropped or doubled."""
    data = copy.deepcopy(data)
    place, parent, key = data, None, None
    while isinstance(place, dict | list) and place and (parent is None or rng.random() < 0.8):
        parent, key = place, rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        place = place[key]
    assert parent is not None
    assert key is not None
    action = rng.randrange(3)
    if action == 0:
        del parent[key]
    elif action == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(place))
    else:
        parent[key] = rng.choice(VALUES)
    return data


@pytest.mark.parametrize("data", [DIGITAL, OWN], ids=["DigitalJS", "circuit.json"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_changed_files_are_read_or_refused_in_one_sentence(data: Any, seed: int, tmp_path_factory) -> None:
    rng = random.Random(seed)
    text = json.dumps(spoiled(data, rng))
    if rng.random() < 0.2:
        text = text[: rng.randrange(len(text))]
    path = tmp_path_factory.getbasetemp() / "spoiled.json"
    path.write_text(text)
    refusal, found = "", None
    try:
        found = source.load(path)
    except DifflogicError as error:
        refusal = str(error)
    if found is None:
        assert str(path) in refusal
        assert "\n" not in refusal
    else:
        assert len(found.netlist.rollout(np.zeros((1, 3, 3, found.netlist.channels), dtype=np.uint8), 1)) == 2


def test_files_without_a_circuit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match=r"Unknown circuit .*absent.json: expected a run folder"):
        source.load(tmp_path / "absent.json")
    with pytest.raises(NotFoundError, match="does not contain"):
        source.load(tmp_path)
    shutil.copy(parity.DATA / "wires_seed23.npz", tmp_path / "w.npz")
    with pytest.raises(CircuitError, match="Expected arrays logits/perceive/0"):
        source.load(tmp_path / "w.npz")


@pytest.mark.parametrize("form", [blif, aiger], ids=["blif", "aiger"])
@settings(max_examples=25, deadline=None)
@given(cell=netlists(), seed=st.integers(0, 99))
def test_export_is_read_as_the_same_circuit(form: Any, cell: CellNetlist, seed: int, tmp_path_factory) -> None:
    function = FunctionNetlist.from_circuit(Circuit.feed_forward([5, 9, 3], seed=seed))
    for netlist in (cell, function, remembering_controller(seed)):
        held = written(netlist, "blif")  # without the channels and thresholds that nothing reads
        [(name, content)] = form.export(held, "c").items()
        file = tmp_path_factory.mktemp("export") / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert difflogic.prove(netlist, file, judges=["difflogic"]).proved
        if netlist is cell:
            frames = [(each.periodic, each.visible, each.neighbourhood, each.origin)
                      for each in (held, source.load(file).netlist)]  # fmt: skip
            assert frames[0] == frames[1]
        # As ABC leaves comments out.
        file.write_bytes(re.sub(rb"#.*" if form is blif else rb"c\ndiff.*", b"", file.read_bytes()))
        assert difflogic.prove(netlist, file, judges=["difflogic"]).proved


BLIF = """# a remark of another program
.model top
.inputs a[0] \\
 a[1]
.inputs g3
.outputs y n
.latch n s re clock 1  # begins at 1
.names t s y
0- 0
-0 0
.names a[0] a[1] g3 t
11- 1
1-1 1
-11 1
.names t n
0 1
.names undriven unused
1 1
.end
"""
"""Circuit whose `y` is the majority and `s`; `n`, no majority, is the next `s`."""
WIDE = ".inputs a b c d e f g h i j\n.outputs y\n.names a b c d e f g h i j y\n1111111111 1\n0--------- 1\n"
AAG = "aag 5 3 0 1 2\n2\n4\n6\n11\n8 2 4\n10 9 7\ni0 a\ni1 b\ni2 c\no0 y\nc\na remark\n"
FOREIGN = {
    "top.blif": (BLIF, "a_0 a_1 x_g3 s", "y n next_s",
                 lambda a, b, c, s: ((a + b + c > 1) & (1 - s), a + b + c < 2, a + b + c > 1)),
    "wide.blif": (WIDE, "a b c d e f g h i j", "y", lambda *bits: ((sum(bits) == 10) | (bits[0] == 0),)),
    "or.aag": (AAG, "a b c", "y", lambda a, b, c: ((a & b) | c,)),
    "latch.aag": ("aag 1 0 1 1 0\n2 3 1\n3\n", "l0", "o0 next_l0", lambda s: (s, 1 - s)),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_circuit_of_another_program_is_a_function(name: str, tmp_path: Path) -> None:
    """A latch that begins at 1 is read inverted, and is an input and an output."""
    text, inputs, outputs, wanted = FOREIGN[name]
    (tmp_path / name).write_text(text)
    function = difflogic.load_function(tmp_path / name)
    bits = np.arange(1 << function.inputs)[:, None] >> np.arange(function.inputs) & 1
    assert (" ".join(function.observations), " ".join(function.named_outputs)) == (inputs, outputs)
    np.testing.assert_array_equal(function(bits), np.stack(wanted(*bits.T), axis=1).astype(int))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.blif",
            BLIF.replace("clock 1", "clock 3"),
            "Expected IN OUT [TYPE CLOCK] 0|1 after .latch, got 'n s re clock 3'.",
        ),
        (
            "a.blif",
            BLIF.replace(".names t n", ".subckt not a=t b=n"),
            "Unsupported command '.subckt not a=t b=n': expected .names",
        ),
        ("a.blif", BLIF.replace("0- 0", "0- 1"), "Each row of 'y' must have 2 characters"),
        ("a.blif", BLIF.replace("undriven unused", "t y"), "Duplicate gate id 'y'"),
        ("a.blif", BLIF.replace(".end", ".model b"), "Expected one model, got several"),
        ("a.blif", BLIF.replace("g3 t", "y t"), "The circuit has a cycle through the gate"),
        ("a.blif", BLIF.replace(".inputs g3", ""), "Unknown bit 'g3' in"),
        ("a.aag", AAG.replace("aag 5", "aag 4"), "and at least one per input, latch and AND."),
        ("a.aag", AAG.replace("8 2 4", "8 2"), "Expected a line of 3 numbers, got b'8 2'."),
        ("a.aag", AAG.replace("0 1 2", "0 1 2 1"), "justice and fairness of AIGER 1.9 are unsupported."),
        ("a.aig", b"aig 3 2 0 1 1\n6\n\x09\x01", "The AND 6 reads a literal that is not defined before it."),
        ("a.json", '{"a": 1}', "is not a circuit: expected a run folder, its checkpoint, circuit.json"),
        ("a.json", b"\xff\xfe\x00", "Cannot read the circuit"),
        ("a.cnf", "c x\np cnf 3 2\n1 -2 0\n", "is clauses in DIMACS"),
        ("a.v", "// nand\nmodule top(a, b);\n", "is Verilog: convert it to BLIF with `yosys -p"),
        ("a.json", '{"creator": "Yosys 0.38", "modules": {}}', "The file is Yosys JSON"),
        ("a.npy", b"\x93NUMPY\x01\x00", "is a NumPy array"),
        ("a.pt", b"\x80\x02}q\x00.", "is a Python pickle"),
        ("a.png", b"\x89PNG\r\n", "is an image"),
        ("a.csv", "a,b\n1,2\n", "is a table"),
        ("a.rle", "x = 3, y = 3\nbo$2bo$3o!\n", "is a pattern"),
    ],
)
def test_unsupported_parts_are_named(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CircuitError) as raised:
        source.load(tmp_path / name)
    assert message in str(raised.value)


DIGITS = {"": "012345678", "V": "01234", "H": "0123456"}
LIFE_LIKE = st.sampled_from(sorted(DIGITS)).flatmap(
    lambda suffix: st.tuples(*[st.sets(st.sampled_from(DIGITS[suffix]))] * 2).map(
        lambda parts: f"B{''.join(sorted(parts[0]))}/S{''.join(sorted(parts[1]))}{suffix}"
    )
)
TABLE = st.binary(min_size=64, max_size=64).map(bytes.hex)


@settings(max_examples=60, deadline=None)
@given(LIFE_LIKE | TABLE | st.integers(0, 255).map(str))
@example("3d" + 126 * "0")  # no rule of three dimensions
def test_rule_is_built_without_training(rule: str) -> None:
    found = source.load(rule)
    [after] = found.netlist.steps(rules.patches().reshape(-1, 3, 3, 1), 1)
    np.testing.assert_array_equal(after[:, 1, 1, 0], rules.table(rule))
    assert (found.kind, found.name, found.netlist.periodic) == ("a rule", rules.parse(rule).name, True)
    assert found.netlist.neighbourhood == (rules.parse(rule).neighbourhood or "moore")


def test_rule_in_a_file_and_file_named_as_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("life.txt").write_text("".join(map(str, rules.table("B3/S23"))))
    assert len(source.load("life.txt").netlist.gates) == len(source.load("B3/S23").netlist.gates)
    shutil.copy(parity.DATA / "small_periodic_three_channels.npz", "110")
    assert source.load("110").kind == "the authors' parameters"
    with pytest.raises(CircuitError, match=r"Unknown circuit B9/S23: expected a run folder, .* a rule such as B3/S23"):
        source.load("B9/S23")
