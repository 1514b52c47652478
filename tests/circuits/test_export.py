"""Every format contains the circuit, as verified by an external program."""

import re
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
    with pytest.raises(ExportError, match=f"a.c: check {names}"):
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


def words_of(text: str) -> set[str]:
    return set(text.split())


VERILOG = words_of(
    """always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam
    design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable
    endtask event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout
    input instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor
    xor"""
)
"""IEEE 1364-2005, annex B."""
SYSTEM_VERILOG = VERILOG | words_of(
    """accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit break byte chandle
    checker class clocking const constraint context continue cover covergroup coverpoint cross dist do endchecker
    endclass endclocking endgroup endinterface endpackage endprogram endproperty endsequence enum eventually expect
    export extends extern final first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies
    import inside int interconnect interface intersect join_any join_none let local logic longint matches modport
    nettype new nexttime null package packed priority program property protected pure rand randc randcase randsequence
    ref reject_on restrict return s_always s_eventually s_nexttime s_until s_until_with sequence shortint shortreal
    soft solve static string strong struct super sync_accept_on sync_reject_on tagged this throughout timeprecision
    timeunit type typedef union unique unique0 until until_with untyped var virtual void wait_order weak wildcard with
    within"""
)
"""IEEE 1800-2017, annex B."""
VHDL = words_of(
    """abs access after alias all and architecture array assert assume assume_guarantee attribute begin block body
    buffer bus case component configuration constant context cover default disconnect downto else elsif end entity exit
    fairness file for force function generate generic group guarded if impure in inertial inout is label library linkage
    literal loop map mod nand new next nor not null of on open or others out package parameter port postponed procedure
    process property protected pure range record register reject release rem report restrict restrict_guarantee return
    rol ror select sequence severity shared signal sla sll sra srl strong subtype then to transport type unaffected
    units until use variable vmode vprop vunit wait when while with xnor xor"""
)
"""IEEE 1076-2008, 15.10."""
OWN = {"v": VERILOG, "vhd": VHDL}


@pytest.mark.parametrize("form", ["verilog", "vhdl"])
@pytest.mark.parametrize("name", ["inside", "after", "process"])
def test_no_name_is_a_keyword_of_another_hardware_language(form: str, name: str) -> None:
    for file, content in formats.export(CASES["published, small"], name, form).items():
        own = OWN.get(file.rsplit(".", 1)[-1])
        if own is None:  # vectors
            continue
        assert isinstance(content, str)
        code = re.sub(r'//.*|--.*|/\*.*?\*/|"[^"]*"', " ", content)
        words = {word.lower() for word in re.findall(r"(?<![\w$`'])[A-Za-z]\w*\b(?!')", code)}
        assert len(words) > 20
        assert sorted(words & (SYSTEM_VERILOG | VHDL) - own) == []


@pytest.mark.parametrize("name", ["con", "AUX", "com1"])
def test_no_file_has_the_name_of_a_device_of_windows(name: str) -> None:
    assert identifier(name) == f"circuit_{name}"
