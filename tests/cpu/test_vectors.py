"""The compiled code: vector instructions where the work is, and what each vector operation computes."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from difflogic.cpu.codegen.compiled import cache_folder
from difflogic.cpu.codegen.gate_vectors import (
    clip,
    divide,
    exp,
    largest,
    load_gate_vector,
    root,
    splat_gate_vector,
    subtract,
    total,
)
from difflogic.cpu.codegen.vectors import (
    TILE,
    WORDS,
    add,
    add_sums,
    bit_fma,
    bit_where,
    fma,
    load,
    load_shifted,
    mul,
    splat,
    store,
    store_sums,
    where,
    zeros,
)
from difflogic.cpu.engine import CpuEngine, vector_unit, warm_up
from difflogic.cpu.tables import aligned

RANDOM = np.random.default_rng(0)

PACKED = {
    "AVX-512": (r"vfmadd\d+ps\s[^\n]*%zmm", r"vpternlog[dq]\s[^\n]*%zmm"),
    "AVX2": (r"vfmadd\d+ps\s[^\n]*%ymm", r"v\w*xor\w*\s[^\n]*%ymm"),
    "NEON": (r"fml[as]\s[^\n]*(\.4s|v\d+\.4s)", r"eor[^\n]*\.16b"),
}
"""What a gate on floats and one on bits become."""


def own_code(name: str, folder: Path) -> str:
    """The machine code of an entry point as it is kept, in words: what every process runs."""
    kept = max(cache_folder().rglob(f"{name}-*.nbc"), key=lambda file: file.stat().st_mtime).read_bytes()
    (folder / "kept.o").write_bytes(kept[kept.index(b"\x7fELF") :])
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(folder / "kept.o")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere machine code is kept in other files")
def test_gates_are_vector_instructions(engine: CpuEngine, tmp_path: Path) -> None:
    if not shutil.which("objdump"):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs objdump, of the package binutils")
    unit = vector_unit()
    if unit not in PACKED:
        pytest.skip(f"no pattern for {unit} on {platform.machine()}")
    warm_up()
    soft, hard = PACKED[unit]
    # forward, recomputed in the backward pass, and the backward pass itself
    assert len(re.findall(soft, own_code("runner.run", tmp_path))) > 40
    assert len(re.findall(hard, own_code("hard_forward.run_hard", tmp_path))) >= 3


def apply(function: Callable[..., Any], *vectors: np.ndarray) -> np.ndarray:
    """What a compiled function on rows makes of these."""
    rows = aligned(len(vectors) + 1, len(vectors[0]), dtype=vectors[0].dtype)
    rows[:-1] = vectors
    function(rows.reshape(-1))
    return rows[-1]


def some(count: int = TILE) -> np.ndarray:
    return RANDOM.standard_normal(count).astype(np.float32)


def test_float_operations() -> None:
    @njit
    def work(rows: np.ndarray) -> None:
        x, y, z = load(rows, 0), load(rows, TILE), load(rows, 2 * TILE)
        chosen = where(z, x, add(y, splat(np.float32(3))))
        store(rows, 3 * TILE, fma(chosen, mul(x, y), add(z, zeros())))

    x, y, z = some(), some(), np.where(RANDOM.random(TILE) < 0.5, 0, some()).astype(np.float32)
    expected = np.where(z != 0, x, y + 3) * (x * y) + z
    np.testing.assert_allclose(apply(work, x, y, z), expected, rtol=1e-5, atol=1e-6)


def test_bit_operations() -> None:
    @njit
    def work(rows: np.ndarray) -> None:
        x, y, z = load(rows, 0), load(rows, WORDS), load(rows, 2 * WORDS)
        store(rows, 3 * WORDS, bit_where(x, bit_fma(x, y, z), splat(np.uint64(5))))

    x, y, z = RANDOM.integers(0, 2**64, (3, WORDS), dtype=np.uint64)
    expected = (x & ((x & y) ^ z)) | (~x & np.uint64(5))
    np.testing.assert_array_equal(apply(work, x, y, z), expected)


@pytest.mark.parametrize("shift", [0, 1, 5, TILE])
def test_shifted_rows_with_lanes_left_out(shift: int) -> None:
    lanes = int(RANDOM.integers(0, 2**TILE))

    @njit
    def work(rows: np.ndarray) -> None:
        store(rows, 2 * TILE, load_shifted(rows, shift, np.uint64(lanes)))

    x, y = some(), some()
    chosen = np.array([lanes >> lane & 1 for lane in range(TILE)], dtype=bool)
    expected = np.where(chosen, np.concatenate([x, y])[shift : shift + TILE], 0)
    np.testing.assert_array_equal(apply(work, x, y), expected)


def test_sums_of_four() -> None:
    @njit
    def work(rows: np.ndarray, sums: np.ndarray) -> None:
        w, x, y, z = load(rows, 0), load(rows, TILE), load(rows, 2 * TILE), load(rows, 3 * TILE)
        store_sums(sums, 1, w, x, y, z)
        add_sums(sums, 1, x, x, x, w)

    rows, sums = aligned(4, TILE), np.full(6, 7, dtype=np.float32)
    rows[:] = some(4 * TILE).reshape(4, TILE)
    work(rows.reshape(-1), sums)
    w, x, y, z = rows.sum(axis=1)
    np.testing.assert_allclose(sums, [7, w + x, x + x, y + x, z + w, 7], rtol=1e-5)


def test_operations_on_a_gates_sixteen() -> None:
    @njit
    def work(rows: np.ndarray) -> None:
        x, y = load_gate_vector(rows, 0), load_gate_vector(rows, 16)
        limited = clip(x, splat_gate_vector(np.float32(-0.5)), splat_gate_vector(np.float32(0.5)))
        scaled = divide(subtract(limited, splat_gate_vector(largest(x))), splat_gate_vector(total(y)))
        store(rows, 32, add(root(y), scaled))

    x, y = some(16), RANDOM.random(16, dtype=np.float32)
    expected = np.sqrt(y) + (np.clip(x, -0.5, 0.5) - x.max()) / y.sum()
    np.testing.assert_allclose(apply(work, x, y), expected, rtol=1e-5)


@njit
def exponentials(rows: np.ndarray) -> None:
    for start in range(0, len(rows) // 2, 16):
        store(rows, len(rows) // 2 + start, exp(load_gate_vector(rows, start)))


def test_exp_is_right_to_the_last_bits() -> None:
    x = -np.concatenate([np.linspace(0, 87, 200_000), 10.0 ** np.linspace(-40, 0, 960)]).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    error = np.abs(apply(exponentials, x) - exact) / np.spacing(exact.astype(np.float32))
    assert error.max() < 2


def test_exp_at_the_edges() -> None:
    x = np.full(16, np.nan, dtype=np.float32)
    x[1:6] = [0, -0.0, -87.5, -1e30, -np.inf]
    got = apply(exponentials, x)
    np.testing.assert_array_equal(got[1:6], [1, 1, 0, 0, 0])
    assert np.isnan(got[[0, *range(6, 16)]]).all()
