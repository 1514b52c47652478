"""Every format contains the circuit, as verified by an external program."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difflogic.circuits.export import c, formats, proving, text
from difflogic.circuits.export.testbench import draw_vectors
from difflogic.circuits.export.text import MAX_NAME, identifier
from difflogic.circuits.synthesis import tools
from difflogic.core import bits
from difflogic.errors import CircuitError, ExportError, ToolError
from difflogic.model.cell_netlist import CellNetlist
from tests.circuits.conftest import proofs
from tests.export_cases import AND, CASES, KEYWORDS, life, published, published_small, tangled
from tests.programs import needs
from tests.random_netlists import netlists
from tests.sampled import sampled

EVERY = [(form, case) for form in sorted(formats.FORMATS) for case in CASES]
ONE_EACH = [
    (form, "learned life" if form in {"html", "svg"} else "published, small") for form in sorted(formats.FORMATS)
]
TOO_LARGE = {"svg", "golly"}
"""Formats that are too small for a hundred thousand gates."""
PROVED = sorted(formats.FORMATS)
QUICK = [form for form in PROVED if form not in {"c", "verilog", "vhdl", "html"}]
"""Formats whose proof takes a fraction of a second."""


@pytest.mark.parametrize(("form", "case"), sampled(EVERY, ONE_EACH))
def test_exported_file_is_the_circuit(form: str, case: str) -> None:
    assert proofs(CASES[case], form, case)


@pytest.mark.parametrize("form", PROVED)
def test_the_same_circuit_gives_the_same_bytes(form: str) -> None:
    one, other = (formats.export(life(), "life", form) for _ in range(2))
    assert one == other
    assert one
    assert all(one.values())


@pytest.mark.parametrize("form", PROVED)
def test_dead_gates_are_left_out(form: str) -> None:
    plain = formats.export(published_small(), "board", form)
    board = published()
    first, count = board.inputs + len(board.gates), len(board.gates)
    gates = [*board.gates, 3, 5, 1]
    wires = [*board.wires, (board.outputs[0], 0), (0, first), (first + 1, 2)]
    padded = CellNetlist.build(8, False, gates, wires, [first + 1, *board.outputs[1:]], visible=1)
    assert (formats.export(padded, "board", form) == plain) == (form != "json")
    assert len(formats.written(padded, form).gates) == (count + 3 if form == "json" else 3)


def test_lost_gate_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    files = formats.export(life(), "life", "numpy")
    wrong = replace(life(), periodic=False, outputs=life().outputs - 1)
    with pytest.raises(ExportError, match=r"was not proved equal to the original|differs"):
        formats.verify(wrong, "life", "numpy", files)
    monkeypatch.setattr(formats.simplify, "structural", lambda netlist: life())
    with pytest.raises(ExportError, match="without its pass-throughs was not proved equal to the original"):
        formats.verify(wrong, "life", "numpy", files)


@pytest.mark.parametrize("form", PROVED)
def test_export_of_another_circuit_is_detected(form: str) -> None:
    needs(*formats.FORMATS[form].programs)
    right = life()
    wrong = replace(right, gates=np.append(right.gates[:-1], np.uint8(AND)))
    with pytest.raises((ExportError, ToolError)):
        formats.verify(right, "life", form, formats.export(wrong, "life", form))


@pytest.mark.parametrize("examples", sampled((6, 30), {6}))
@pytest.mark.parametrize("form", PROVED)
def test_random_circuits_are_exported(form: str, examples: int) -> None:
    @settings(max_examples=examples if form in QUICK else examples // 3)
    @given(netlist=netlists())
    def prove(netlist: CellNetlist) -> None:
        assert proofs(netlist, form)

    prove()


@pytest.mark.parametrize("form", sampled(PROVED, {"c", "verilog", "vhdl", "numpy", "golly"}))
@pytest.mark.parametrize("name", sampled(KEYWORDS, {"entity", "import"}))
def test_names_may_be_keywords_of_a_language(form: str, name: str) -> None:
    assert proofs(CASES["published, small"], form, name)


@pytest.mark.parametrize("name", KEYWORDS)
def test_identifier_is_valid_in_every_language(name: str) -> None:
    word = identifier(name)
    assert word.isidentifier()
    assert word.isascii()
    assert "__" not in word
    assert word.strip("_") == word


def test_identifier_is_never_empty_or_too_long() -> None:
    assert identifier("") == "circuit"
    assert identifier("3") == "circuit_3"
    assert len(identifier("x" * 500)) == MAX_NAME


@given(netlists(), st.integers(1, 4096))
def test_vectors_are_exhaustive_or_as_many_as_requested(netlist: CellNetlist, most: int) -> None:
    vectors = draw_vectors(netlist, most)
    assert vectors.count <= most
    if vectors.exhaustive:
        read = sorted({bit for bit in range(netlist.inputs) if np.ptp(vectors.inputs[bit]) or vectors.count == 1})
        assert len(np.unique(vectors.inputs, axis=1).T) == vectors.count
        assert vectors.count == 1 or len(read) >= vectors.count.bit_length() - 1
    else:
        assert vectors.count == most


@pytest.mark.parametrize("form", [form for form, row in formats.FORMATS.items() if row.programs])
def test_missing_program_is_named_with_its_package(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = formats.export(life(), "life", form)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"is not installed: install the package [a-z-]+ on Debian or Ubuntu[.;]"):
        formats.verify(life(), "life", form, files)


def test_drawing_of_too_many_gates_is_refused() -> None:
    with pytest.raises(CircuitError, match=r"must have at most 400 gates, got .*difflogic simplify"):
        formats.export(tangled(500), "big", "svg")


def test_circuit_of_too_many_states_for_golly_is_refused() -> None:
    with pytest.raises(CircuitError, match="enough for 8 channels, but the circuit has 9"):
        formats.export(CellNetlist.build(9, False, [], [], range(9)), "wide", "golly")
    with pytest.raises(CircuitError, match="needs one more if cells in an empty neighbourhood"):
        formats.export(replace(published(), visible=8), "published", "golly")
    with pytest.raises(CircuitError, match="more than"):
        formats.export(tangled(400, channels=4), "tangled", "golly")


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", PROVED)
def test_hundred_thousand_gates_are_exported_or_refused(form: str) -> None:
    huge = tangled(100_000, channels=3, width=300)
    if form in TOO_LARGE:
        with pytest.raises(CircuitError, match="difflogic simplify"):
            formats.export(huge, "huge", form)
    elif form == "wgsl":
        with pytest.raises(ToolError, match="would take minutes to compile a shader of"):
            proofs(huge, form)
    else:
        assert proofs(huge, form)


@pytest.mark.parametrize(("values", "names"), [({}, "circuit"), ({"circuit": "", "other": ""}, "other")])
def test_template_is_filled_with_its_own_marks(values: dict[str, str], names: str, monkeypatch) -> None:
    monkeypatch.setattr(text, "template", lambda file: "one @CIRCUIT@")
    with pytest.raises(ExportError, match=f"differ in {names}"):
        text.fill("a.c", life(), "life", **values)


@pytest.mark.parametrize(("lanes", "netlist"), [(1, life()), (8, life()), (8, life(False)), (4, published_small())])
def test_c_header_takes_any_number_of_words(lanes: int, netlist: CellNetlist, tmp_path: Path) -> None:
    """Rows of fewer words than a vector, of complete vectors, and of more; more rows than in a strip."""
    needs("gcc")
    formats.export(netlist, "life", "c", tmp_path)
    (tmp_path / "proof.c").write_text(text.fill("proof.c", netlist, "life"))
    tools.run_in(tmp_path, "gcc", *c.FLAGS, "-O1", f"-DLIFE_LANES={lanes}", "-o", "proof", "proof.c")
    for height, width in ((1, 1), (3, 70), (9, 63), (17, 64), (600, 14), (5, 200), (66, 512), (70, 579)):
        grid = proving.random_grid(netlist, height, width)
        planes = tools.run_in(tmp_path, "./proof", str(height), str(width), "3", stdin=bits.pack_planes(grid).tobytes())
        found = bits.unpack_planes(np.frombuffer(planes, np.uint64).reshape(height, netlist.channels, -1), width)
        np.testing.assert_array_equal(found, netlist.after(grid, 3))


def test_header_names_every_remaining_channel() -> None:
    kept = tuple(channel for channel in range(128) if channel not in (3, 5, 6))
    wide = replace(CellNetlist.build(125, False, [], [], range(125)), origin=kept)
    assert text.about(wide).endswith("125 channels (0-2, 4, 7-127), 125 visible; the grid is 0 outside.")
