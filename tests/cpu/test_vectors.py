"""Test that kernels compile to vector instructions, and the results of each vector operation."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from difflogic.cpu.codegen.compiled import cache_folder
from difflogic.cpu.codegen.gate_vectors import exp, load_gate_vector
from difflogic.cpu.codegen.vectors import store
from difflogic.cpu.engine import CpuEngine, vector_unit, warm_up
from difflogic.cpu.tables import aligned
from tests.programs import needs
from tests.train.tiny import assert_same_run

PACKED = {
    "AVX-512": (r"vfmadd\d+ps\s[^\n]*%zmm", r"vpternlog[dq]\s[^\n]*%zmm"),
    "AVX2": (r"vfmadd\d+ps\s[^\n]*%ymm", r"v\w*xor\w*\s[^\n]*%ymm"),
    "NEON": (r"fml[as]\s[^\n]*(\.4s|v\d+\.4s)", r"eor[^\n]*\.16b"),
}
"""Assembly of a gate on floats, and of one on bits."""


def own_code(name: str, folder: Path) -> str:
    """The machine code of an entry point as it is kept, in words: what every process runs."""
    kept = max(cache_folder().rglob(f"{name}-*.nbc"), key=lambda file: file.stat().st_mtime).read_bytes()
    (folder / "kept.o").write_bytes(kept[kept.index(b"\x7fELF") :])
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(folder / "kept.o")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere machine code is kept in other files")
def test_gates_are_vector_instructions(engine: CpuEngine, tmp_path: Path) -> None:
    needs("objdump")
    unit = vector_unit()
    if unit not in PACKED:
        pytest.skip(f"no pattern for {unit} on {platform.machine()}")
    warm_up()
    soft, hard = PACKED[unit]
    # forward, recomputed in the backward pass, and the backward pass itself
    assert len(re.findall(soft, own_code("runner.run", tmp_path))) > 40
    assert len(re.findall(hard, own_code("hard_forward.run_hard", tmp_path))) >= 3


@pytest.mark.exhaustive
@pytest.mark.skipif(vector_unit() != "AVX-512", reason="elsewhere all is done in parts of eight")
def test_other_processors_train_to_the_same_bits(tmp_path: Path) -> None:
    features = "+sse4.2,+popcnt,+avx,+avx2,+fma,+bmi,+bmi2"
    training = "train-checkerboard", "--small", "--epochs", "3", "--seed", "3", "--engine", "cpu", "--out"
    haswell = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    for name, settings in (("here", {}), ("there", haswell)):
        command = [sys.executable, "-m", "difflogic", *training, tmp_path / name]
        subprocess.run(command, env={**os.environ, **settings}, capture_output=True, check=True)
    assert "AVX2" in (tmp_path / "there" / "summary.txt").read_text()
    assert_same_run(*(tmp_path / name / "attempt-1" for name in ("here", "there")))


def apply(function: Callable[..., Any], *vectors: np.ndarray) -> np.ndarray:
    """Apply a compiled function to rows."""
    rows = aligned(len(vectors) + 1, len(vectors[0]), dtype=vectors[0].dtype)
    rows[:-1] = vectors
    function(rows.reshape(-1))
    return rows[-1]


@njit
def exponentials(rows: np.ndarray) -> None:
    for start in range(0, len(rows) // 2, 16):
        store(rows, len(rows) // 2 + start, exp(load_gate_vector(rows, start)))


def test_exp_is_accurate_to_the_last_bits() -> None:
    x = -np.concatenate([np.linspace(0, 87, 200_000), 10.0 ** np.linspace(-40, 0, 960)]).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    error = np.abs(apply(exponentials, x) - exact) / np.spacing(exact.astype(np.float32))
    assert error.max() < 2


def test_exp_handles_underflow_and_nan() -> None:
    x = np.full(16, np.nan, dtype=np.float32)
    x[1:6] = [0, -0.0, -87.5, -1e30, -np.inf]
    got = apply(exponentials, x)
    np.testing.assert_array_equal(got[1:6], [1, 1, 0, 0, 0])
    assert np.isnan(got[[0, *range(6, 16)]]).all()
