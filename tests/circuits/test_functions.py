"""Functions of trained layers: their gates, every format, and the files of other packages."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import difflogic
from difflogic import Circuit, FunctionNetlist
from difflogic.circuits.export import formats, fpga
from difflogic.circuits.export.functions import c as functions_c
from difflogic.circuits.readers import layers
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.cli.main import group
from difflogic.config.train import InitialConfig
from difflogic.core.bits import pack_bits
from difflogic.errors import CircuitError, DifflogicError, ExportError, ToolError
from difflogic.model import function_json
from difflogic.model.thermometer import Thermometer
from tests.programs import needs

HELD = sorted(form for form, row in formats.FORMATS.items() if not (row.cells_only or row.lives))
RANDOM = InitialConfig(logit=1.0, noise=2.0)


def trained(widths: tuple[int, ...] = (12, 24, 20), seed: int = 0) -> Circuit:
    return Circuit.feed_forward(widths, seed, RANDOM)


def hard(circuit: Circuit, samples: np.ndarray) -> np.ndarray:
    function = difflogic.open_engine("reference").open_function(circuit, (len(samples),), hard=True)
    return function.forward(samples)


def bits(circuit: Circuit, count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (count, circuit.channels))


def of_kind(kind: str) -> FunctionNetlist:
    if kind == "thresholds":
        code = Thermometer(((-0.5, 0.25, 1.0), (), (0.1,)))
        return FunctionNetlist.from_circuit(trained((4, 9, 6)), ["wide", "unread", "high"], None, ["a", "b", "c"], code)
    return FunctionNetlist.from_circuit(trained(), classes=5 if kind == "classes" else None)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
def test_function_equals_the_layer_on_every_sample(seed: int, classes: int, group: int) -> None:
    circuit = trained((6, 10, classes * group), seed)
    every = np.arange(64)[:, None] >> np.arange(6) & 1
    y = hard(circuit, every)
    assert np.array_equal(FunctionNetlist.from_circuit(circuit)(every), y)
    if classes > 1:
        counted = y.reshape(64, classes, group).sum(-1).argmax(-1)
        assert np.array_equal(FunctionNetlist.from_circuit(circuit, classes=classes)(every), counted)


@pytest.mark.parametrize("kind", ["bits", "classes", "thresholds"])
def test_simplified_function_is_proved_written_and_read(kind: str, tmp_path: Path) -> None:
    function = of_kind(kind)
    found = difflogic.simplify(function)
    assert found.ok
    assert gate_count(found.netlist) < gate_count(function)
    (tmp_path / "small.json").write_text(str(found.files["function.json"]))
    again = difflogic.load_function(tmp_path / "small.json")
    samples = np.random.default_rng(0).integers(0, 2, (200, len(function.observations)))
    assert np.array_equal(again(samples), function(samples))
    assert difflogic.prove(function, tmp_path / "small.json").proved
    # All inputs of bits stay: they are what its user gives.
    assert again.inputs == function.inputs or kind == "thresholds"


@pytest.mark.parametrize("kind", ["bits", "classes", "thresholds"])
@pytest.mark.parametrize("form", HELD)
def test_each_format_contains_the_function(form: str, kind: str) -> None:
    needs(*formats.FORMATS[form].programs)
    assert all(difflogic.export(of_kind(kind), [form], name="process").verify(form))


@pytest.mark.parametrize("kind", ["bits", "classes", "thresholds"])
def test_large_function_is_split_into_c_functions_that_compute_the_same(kind: str, monkeypatch) -> None:
    needs("gcc")
    monkeypatch.setattr(functions_c, "PART", 3)
    exported = difflogic.export(of_kind(kind), ["c"], name="net")
    header = str(exported.files["net.h"])
    gates = re.findall(r"const uint64_t g\d+ = ", header)
    assert header.count("net_part_") == 2 * -(-len(gates) // 3) > 2
    (words,) = map(int, re.findall(r"uint64_t w\[(\d+)\];", header))
    assert words < len(gates)
    assert all(exported.verify("c"))


@pytest.mark.parametrize("form", HELD)
def test_export_of_another_function_is_detected(form: str) -> None:
    needs(*formats.FORMATS[form].programs)
    right = of_kind("bits")
    wrong = right.with_gates(right.gates ^ 15, right.wires, right.outputs)
    with pytest.raises((ExportError, ToolError), match=r"differ|another|proves|FAIL"):
        formats.verify(right, "net", form, formats.export(wrong, "net", form))


def test_c_with_64_samples_a_word_decides_as_the_layer(tmp_path: Path) -> None:
    needs("gcc")
    circuit = trained()
    made = difflogic.export(FunctionNetlist.from_circuit(circuit, classes=5), ["c"], name="net")
    (tmp_path / "net.h").write_text(str(made.files["net.h"]))
    (tmp_path / "main.c").write_text(
        '#include "net.h"\n#include <stdio.h>\nint main(void) { uint64_t code[NET_INPUTS];\n'
        "while (fread(code, 8, NET_INPUTS, stdin) == NET_INPUTS) for (int i = 0; i < 64; i++) {\n"
        "uint64_t one[NET_INPUTS]; for (int k = 0; k < NET_INPUTS; k++) one[k] = code[k] >> i & 1;\n"
        'printf("%d\\n", net_decide(one)); } }\n'
    )
    subprocess.run(["gcc", "-std=c99", "-O1", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    samples = bits(circuit, 128)
    words = np.ascontiguousarray(pack_bits(samples.T.astype(np.uint8)).T)
    said = subprocess.run([tmp_path / "main"], input=words.tobytes(), capture_output=True, check=True).stdout
    wanted = hard(circuit, samples).reshape(128, 5, 4).sum(-1).argmax(-1)
    assert np.array_equal(np.array(said.split(), int), wanted)


def test_circuit_itself_is_accepted(tmp_path: Path) -> None:
    assert difflogic.prove(trained(), FunctionNetlist.from_circuit(trained()), judges=["difflogic"]).proved
    assert "circuit.h" in difflogic.export(trained(), ["c"]).files
    automaton = Circuit.initial(difflogic.presets.checkerboard(small=True).model, seed=0)
    assert isinstance(difflogic.simplify(automaton).netlist, difflogic.CellNetlist)


@pytest.mark.parametrize("form", ["html", "golly", "wgsl", "digitaljs"])
def test_format_of_cells_gives_the_reason(form: str) -> None:
    with pytest.raises(CircuitError, match=f"The format {form} does not support a function: it"):
        difflogic.export(of_kind("bits"), [form])


@pytest.mark.parametrize("kind", ["bits", "classes", "thresholds"])
def test_fpga_report_is_for_a_function_between_registers(kind: str) -> None:
    """Without a router the report contains the reason, and the lookup tables."""
    needs("yosys")
    found = fpga.of_function(of_kind(kind), "ice40")
    assert found.luts > 0
    assert kind == "thresholds" or found.luts <= gate_count(of_kind(kind))
    assert (found.fmax or 0) > 10 or found.no_fmax.startswith("nextpnr-ice40 is not installed")


def test_function_file_is_shown(tmp_path: Path) -> None:
    """NOT reads one of its inputs, and AND leads to its output."""
    layer = [(np.array([[0, 0], [1, 1]]), np.array([12, 1])), (np.array([[1], [1]]), np.array([3]))]
    path = tmp_path / "net.json"
    path.write_text(function_json.to_json(FunctionNetlist.from_layers(layer, 2, outputs=["both"])))
    said = CliRunner().invoke(group, ["show", str(path)]).output
    assert "1 gate, 2 inputs, 1 output." in said
    assert "1 live gate; in total 3, of which 1 read two inputs." in said
    told = json.loads(CliRunner().invoke(group, ["show", str(path), "--json"]).output)
    assert (told["inputs"], told["outputs"], told["needed"]) == (["x0", "x1"], ["both"], 1)


def state(circuit: Circuit, weights: str, indices: str) -> dict[str, np.ndarray]:
    """Return the arrays of a model of another package, whose gates begin at its second module."""
    arrays: dict[str, np.ndarray] = {}
    for index, (logits, wires) in enumerate(zip(circuit.update, circuit.update_wires, strict=True), 1):
        arrays |= {f"{index}.{weights}": logits, f"{index}.{indices}": wires.astype(np.int64)}
    return arrays


NAMES = [("weights", "indices"), ("weight", "connections.indices")]


@pytest.mark.parametrize(("weights", "indices"), NAMES)
def test_layers_of_other_packages_compute_the_same(weights: str, indices: str, tmp_path: Path) -> None:
    """With eleven layers, the tenth comes after the second."""
    circuit, path = trained((12, *(20,) * 11)), tmp_path / "model.npz"
    np.savez(path, in_dim=12, **state(circuit, weights, indices))
    samples = bits(circuit, 300)
    assert np.array_equal(difflogic.load_function(path)(samples), hard(circuit, samples))
    np.savez(path, classes=np.array(["cat", "dog"]), in_dim=12, **state(circuit, weights, indices))
    wanted = hard(circuit, samples).reshape(300, 2, 10).sum(-1).argmax(-1)
    assert np.array_equal(difflogic.load_function(path)(samples), wanted)
    assert difflogic.simplify(path).ok
    assert difflogic.load_function(path).choices == ("cat", "dog")


def renamed(arrays: dict[str, np.ndarray], *names: str) -> dict[str, np.ndarray]:
    return {re.sub(r"^\d+", lambda number: names[int(number[0]) - 1], name): each for name, each in arrays.items()}


@pytest.mark.parametrize("names", [("enc.0", "enc.1", "head.0", "head.1"), ("b1.a.0", "b1.a.1", "b2.a.0", "b2.c"),
                                   ("stem", "fc1", "body", "fc2"), ("enc.1", "head.0", "z1", "z1.0")])  # fmt: skip
def test_layers_run_in_the_order_of_the_file(names: tuple[str, ...]) -> None:
    circuit = trained((12, *(20,) * 4))
    function = layers.from_arrays(renamed(state(circuit, *NAMES[0]), *names) | {"in_dim": 12})
    samples = bits(circuit, 300)
    assert np.array_equal(function(samples), hard(circuit, samples))


@pytest.mark.parametrize(
    "names", [("l1", "l10", "l2", "l3"), ("a.0", "a.1", "b.1.x", "b.0.x"), ("conv1", "conv3", "fc2", "z")]
)
def test_layers_numbered_in_another_order_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(CircuitError, match=r"The file has '\S+[13]0?' before '\S+[02]', but its order must be"):
        layers.from_arrays(renamed(state(trained((12, *(20,) * 4)), *NAMES[0]), *names))


def theirs(gate: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sixteen gates in the order of Petersen, Borgelt, Kuehne and Deussen (2022, table 1)."""
    halves = (0 * a, a * b, a - a * b, a, b - a * b, b, a + b - 2 * a * b, a + b - a * b)
    return (*halves, *(1 - each for each in reversed(halves)))[gate]


def test_gates_are_numbered_as_by_petersen() -> None:
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    ids = {"0.weights": np.eye(16), "0.indices": np.repeat([[0], [1]], 16, axis=1)}
    found = layers.from_arrays(ids)(np.stack([a, b], axis=1))
    assert np.array_equal(found.T, [theirs(gate, a, b) for gate in range(16)])


def test_export_mode_precedes_learned_parameters() -> None:
    circuit = trained()
    arrays = state(circuit, "weight", "connections.indices")
    plain = layers.from_arrays(arrays)
    for index, logits in enumerate(circuit.update, 1):
        arrays[f"{index}.weight"] = np.zeros((len(logits), 4))
        arrays[f"{index}._export_lut_ids"] = logits.argmax(1)
        arrays[f"{index}.connections._export_indices"] = arrays[f"{index}.connections.indices"]
        arrays[f"{index}.connections.indices"] = np.zeros((5, 2, len(logits)), int)
    exported = layers.from_arrays(arrays | {"0.thresholds": np.zeros(3)})
    assert np.array_equal(exported.gates, plain.gates)
    assert np.array_equal(exported.wires, plain.wires)


def tables(form: str, ways: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return three layers of tables as arrays of torchlogix or torch-dwn, samples, and the package's results."""
    rng = np.random.default_rng(ways)
    arrays, x = {}, rng.integers(0, 2, (300, 14))
    samples, numbers = x, np.arange(1 << ways)
    for layer in range(3):
        wires, logits = rng.integers(0, x.shape[1], (16, ways)), rng.normal(size=(16, 1 << ways))
        read = x[:, wires]
        if form.startswith("dwn"):
            x = (logits[np.arange(16), (read << np.arange(ways)).sum(axis=2)] > 0).astype(int)
            scores = 3 * (wires.reshape(-1) == np.arange(max(14, 16 if layer else 14))[:, None]) + rng.random()
            learned = {f"{layer}._LUTLayer__dummy_mapping": wires, f"{layer}.mapping.weights": scores}
            arrays |= {f"{layer}.luts": logits, **(learned if form == "dwn learned" else {f"{layer}.mapping": wires})}
            continue
        basis = np.ones((300, 16, 1 << ways))
        for place in range(ways):
            is_one, value = numbers >> ways - 1 - place & 1, read[:, :, place, None]
            basis *= np.where(is_one, 1 - 2 * value, 1) if form == "warp" else np.where(is_one, value, 1 - value)
        totals = (basis * (logits if form == "warp" else logits > 0)).sum(axis=2)
        x = (totals < 0 if form == "warp" else totals).astype(int)
        candidates, scores = rng.integers(0, 14, (3, ways, 16)), rng.random((3, ways, 16))
        candidates[1], scores[1] = wires.T, 2
        exported = {"_export_lut_ids": (logits > 0) @ (1 << numbers[::-1]), "weight": logits[:, :1]}
        gates = exported if form == "export mode" else {"weight": logits}
        gates |= {"connections.weights": scores, "connections.indices": candidates}
        arrays |= {f"{layer}.{name}": array for name, array in gates.items()} | {"parametrization": np.array(form)}
    return arrays | {"in_dim": np.array(14)}, samples, x


@pytest.mark.parametrize(
    ("form", "ways"),
    [("warp", 1), ("warp", 4), ("light", 6), ("light", 2), ("export mode", 4), ("dwn", 6), ("dwn learned", 3)],
)
def test_tables_of_other_packages_compute_the_same(form: str, ways: int, tmp_path: Path) -> None:
    arrays, samples, answers = tables(form, ways)
    np.savez(path := tmp_path / "model.npz", **arrays)
    assert np.array_equal(difflogic.load_function(path)(samples), answers)
    np.savez(path, classes=4, **arrays)
    wanted = answers.reshape(300, 4, 4).sum(axis=2).argmax(axis=1)
    assert np.array_equal(difflogic.load_function(path)(samples), wanted)
    if ways < 3:
        small = difflogic.simplify(path)
        assert small.ok
        assert np.array_equal(small.netlist(samples), wanted)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"1.weights": np.zeros((24, 4))}, r"must be 16 finite logits per gate, got \[24, 4\].*export mode"),
        ({"1.indices": np.zeros((4, 24), int)}, r"must be 16 finite logits per gate, got .* array `parametrization`"),
        ({"1.indices": np.zeros((9, 24), int)}, r"must be integers \[k, n\] with k up to 8, got \[9, 24\]"),
        ({"1.indices": np.zeros((5, 2, 24), int)}, r"got \[5, 2, 24\]: learned wires require the array conn"),
        ({"parametrization": "warp"}, r"must be 4 finite entries per table, got \[24, 16\]"),
        ({"2.indices": None}, r"Layer 2 has gates but no wires: expected 2.indices"),
        ({"1.weights": None}, r"Layer 1 has wires but no gates"),
        ({"3.bias": np.zeros(3)}, "'3.bias' belongs to no layer of gates"),
        ({"classes": 7}, "cannot be divided equally among 7"),
    ],
)
def test_arrays_that_are_no_layers_are_refused(change: dict, said: str, tmp_path: Path) -> None:
    arrays = state(trained(), "weights", "indices") | change
    np.savez(tmp_path / "model.npz", **{name: each for name, each in arrays.items() if each is not None})
    with pytest.raises(CircuitError, match=said):
        difflogic.load_function(tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: FunctionNetlist.from_circuit(trained(), inputs=["x"]), "Expected 12 names, one per dimension, got 1"),
        (lambda: FunctionNetlist.from_circuit(trained(), outputs=["y"]), "Expected 20 names, one per output, got 1"),
        (
            lambda: FunctionNetlist.from_circuit(trained(), classes=3),
            "20 output bits cannot be divided equally among 3",
        ),
        (lambda: FunctionNetlist.from_circuit(trained(), classes=1), "needs at least two classes, got 1"),
        (lambda: FunctionNetlist.from_circuit(trained(), classes=5, outputs=["y"]), "name only the classes"),
        (lambda: FunctionNetlist.from_circuit(trained((2, 2)), inputs=["g1", "b"]), "cannot be named g1"),
        (lambda: difflogic.simplify(of_kind("bits"), task=True), "only controllers have a task"),
        (lambda: difflogic.simplify(of_kind("bits"), from_start=True), "for automata, got a function"),
        (lambda: difflogic.export(of_kind("bits"), ["c"], fraction_bits=3), "this function reads bits"),
        (lambda: difflogic.prove(of_kind("bits"), of_kind("classes")), "Expected two functions with equal"),
    ],
)
def test_invalid_functions_are_refused(made, said: str) -> None:
    with pytest.raises(DifflogicError, match=said):
        made()


def test_differing_outputs_are_shown() -> None:
    function = of_kind("classes")
    other = function.with_gates(function.gates, function.wires, function.outputs[::-1])
    found = difflogic.prove(function, other, judges=["difflogic"])
    assert found.proved is False
    assert found.verdicts[0].counterexample.outputs


def test_damaged_function_file_is_refused(tmp_path: Path) -> None:
    data = json.loads(function_json.to_json(of_kind("classes")))
    cases = (("inputs", [3], "An input must be an object"), ("classes", [1, 2], "classes must be a list of strings"))
    for field, value, said in cases:
        (tmp_path / "function.json").write_text(json.dumps(data | {field: value}))
        with pytest.raises(CircuitError, match=said):
            difflogic.load_function(tmp_path / "function.json")
    (tmp_path / "function.json").write_text("{}")
    with pytest.raises(CircuitError, match=r"contains no function: expected function\.json"):
        difflogic.load_function(tmp_path / "function.json")
