"""Every format for controllers contains the controller, as verified by an external program."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from difflogic.circuits.export import formats
from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.synthesis.function import with_comparators
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.errors import CircuitError, ExportError, ToolError
from difflogic.model.controller import Controller
from difflogic.model.thermometer import Thermometer
from tests.circuits.conftest import proofs
from tests.controllers import controllers, linear_rule, random_controller, remembering_controller
from tests.programs import needs

HELD = sorted(form for form, row in formats.FORMATS.items() if not row.cells_only)
QUICK = [form for form in HELD if form not in {"c", "verilog", "vhdl", "html", "numpy"}]


@pytest.mark.parametrize("form", HELD)
def test_exported_file_is_the_controller(form: str) -> None:
    """Five actions of three bits, a dimension that nothing reads, and names that are keywords."""
    many = random_controller(1, (20, 20), (3, 3, 0, 4), actions=5)
    said = proofs(linear_rule() if form == "html" else many, form, "process")
    if formats.FORMATS[form].framed:
        assert sum("agrees on 100000 observations" in sentence for sentence in said) >= 1, said


@pytest.mark.parametrize("form", HELD)
def test_export_of_another_controller_is_detected(form: str) -> None:
    needs(*formats.FORMATS[form].programs)
    right = linear_rule()
    thermometer = Thermometer((*right.thermometer.thresholds[:3], tuple(np.linspace(-1.5, 1.6, 7))))
    wrong = replace(right, thermometer=thermometer)
    other = wrong if formats.FORMATS[form].framed or form == "json" else right.with_gates([1], [(14, 25)], [28])
    with pytest.raises((ExportError, ToolError), match=r"differ|another|proves|FAIL"):
        formats.verify(right, "rule", form, formats.export(other, "rule", form))


@pytest.mark.parametrize("form", HELD)
def test_memory_is_stored_in_registers(form: str) -> None:
    said = proofs(remembering_controller(2), form)
    if form in {"c", "numpy", "verilog", "vhdl"}:
        assert any("a sequence of 2000" in sentence for sentence in said), said


@pytest.mark.parametrize(
    ("form", "file", "old", "new"),
    [
        ("c", "rule.h", "*memory >> (d", "*memory >> 1 >> (d"),
        ("numpy", "rule_numpy.py", "memory)[..., None] >>", "memory)[..., None] * 2 >>"),
        ("verilog", "rule.v", "reset ? 3'd0 : next", "next"),
        ("vhdl", "rule.vhd", "if reset = '1' then", "if reset = 'X' then"),
    ],
)
def test_wrong_memory_is_detected(form: str, file: str, old: str, new: str) -> None:
    needs(*formats.FORMATS[form].programs)
    controller = remembering_controller(2)
    files = formats.export(controller, "rule", form)
    text = files[file]
    assert isinstance(text, str)
    assert old in text
    with pytest.raises((ExportError, ToolError), match=r"sequence|differs|FAIL|no result"):
        formats.verify(controller, "rule", form, files | {file: text.replace(old, new)})


@pytest.mark.parametrize("form", QUICK)
@settings(max_examples=3)
@given(controller=controllers())
def test_random_controllers_are_exported(form: str, controller: Controller) -> None:
    assert proofs(controller, form)


@pytest.mark.parametrize("form", ["c", "verilog", "vhdl", "numpy"])
def test_coarse_fixed_point_is_exact(form: str) -> None:
    rule = linear_rule()
    coarse = replace(rule, thermometer=replace(rule.thermometer, fraction_bits=2))
    made = formats.export(coarse, "rule", form)
    assert made != formats.export(rule, "rule", form)
    needs(*formats.FORMATS[form].programs)
    assert any("fixed point" in sentence for sentence in formats.verify(coarse, "rule", form, made))


def test_unread_inputs_cause_no_warning() -> None:
    rule = linear_rule()
    assert proofs(rule.with_gates([15], [(0, 0)], [rule.inputs]), "verilog")


@pytest.mark.parametrize("form", sorted(set(formats.FORMATS) - set(HELD)))
def test_format_without_controllers_gives_the_reason(form: str) -> None:
    with pytest.raises(CircuitError, match=f"The format {form} does not support a controller: it"):
        formats.export(linear_rule(), "rule", form)


@given(controllers())
@settings(max_examples=20)
def test_comparators_are_gates(controller: Controller) -> None:
    tried = Observations(controller, controller.thermometer.fixed_point(), 500)
    whole = with_comparators(controller, tried.form)
    assert whole.inputs == len(controller.observations) * tried.form.width
    found = unpack_bits(whole.evaluate(pack_bits(tried.bits())), 500)
    assert np.array_equal(found, tried.result_bits())


def test_files_describe_their_numbers() -> None:
    text = formats.export(linear_rule(), "rule", "c")["rule.h"]
    assert isinstance(text, str)
    assert "14 thresholds, 2 actions in CartPole-v1." in text, "and not those that nothing reads"
    assert "Action: 0 left, 1 right." in text
    assert re.search(r"observation\[2\] >= -0\.15\), /\* angle>=-0\.15 \*/", text)
    aig = formats.export(linear_rule(), "rule", "aiger")["rule.aig"]
    assert isinstance(aig, bytes)
    assert b"code[0] is angle>=-0.15" in aig
