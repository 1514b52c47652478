"""Circuits as C: every bit, kept in the cache, and refused in one sentence where there is no compiler."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from difflogic.circuits.simulation import c_code
from difflogic.circuits.simulation.c_code import CRow
from difflogic.cpu.simulation import CpuSimulation
from difflogic.errors import ToolError
from difflogic.user_cache import user_cache
from tests.random_netlists import random_netlist
from tests.scenes import Case, cases, check_against_the_reference, life


@given(cases())
@settings(max_examples=15)  # each calls a compiler
def test_it_computes_what_the_reference_does(case: Case) -> None:
    row = CRow(case.scene.netlist)
    check_against_the_reference(case, lambda scene: CpuSimulation(scene, row, threads=3))


def test_a_circuit_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    first = CRow(life())
    (library,) = (tmp_path / "rows").iterdir()
    monkeypatch.setattr(c_code, "_run", lambda *_: pytest.fail("it was compiled before"))
    assert CRow(life()).address == first.address
    assert user_cache() == tmp_path
    assert library.suffix == ".so"


def fake_compiler(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"^No C compiler was found \(cc, gcc or clang\): install one .*package gcc"):
        CRow(life())


def test_cc_names_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = CRow(life())
    wrapper = fake_compiler(tmp_path / "mycc", f'exec {found.compiler[0]} "$@"')
    monkeypatch.setenv("CC", f"{wrapper} -DNOTHING")
    assert CRow(life()).compiler == (str(wrapper), "-DNOTHING")
    monkeypatch.setenv("CC", str(tmp_path / "absent"))
    with pytest.raises(ToolError, match=r"^CC names the compiler '.*absent', which is not here"):
        CRow(life())


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(cache))
    monkeypatch.setenv("CC", str(fake_compiler(tmp_path / "cc", "echo 'x.c:1: error: no' >&2; exit 1")))
    with pytest.raises(ToolError, match=r"failed \(x\.c:1: error: no\): use --engine numba"):
        CRow(life())
    assert list((cache / "rows").iterdir()) == [], "nothing is left behind"


def test_a_compiler_that_takes_forever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))
    script = 'test "$1" = --version || exec sleep 60'
    monkeypatch.setenv("CC", str(fake_compiler(tmp_path / "cc", script)))
    monkeypatch.setattr(c_code, "TIMEOUT_S", 1)
    with pytest.raises(ToolError, match=r"took more than 1 s: use --engine numba"):
        CRow(life())


def test_too_many_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_code, "MOST_GATES", 25)
    with pytest.raises(ToolError, match=r"too long over 26 gates, at most 25 .*: simplify the circuit"):
        CRow(life())


def test_the_source_holds_nothing_but_the_circuit() -> None:
    """Whatever a circuit's file says, only numbers get into the source."""
    text = c_code.source(random_netlist(np.random.default_rng(8), 50, channels=2))
    body = text.partition("i += BYTES / 8) {")[2]
    words = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    names = {
        "const",
        "vec",
        "*",
        "new",
        "above",
        "row",
        "below",
        "WEST",
        "EAST",
        "AT",
        "ZERO",
        "~ZERO",
        "stride",
        "i",
        "vec*",
    }
    rest = {word.strip("~;*") for word in words} - names - set("=&|^+{}") - {"", "1", "0"}
    assert all(word[0] == "v" and word[1:].isdigit() for word in rest), rest
    assert os.linesep not in names
