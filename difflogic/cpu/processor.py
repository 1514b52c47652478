"""What this machine computes with, in words."""

from __future__ import annotations

import platform
from pathlib import Path

import numba
from llvmlite import binding

from difflogic.cpu.compiled import target
from difflogic.engine import EngineInfo

_FEATURES = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2"), ("neon", "NEON"))
"""LLVM's names, the widest first."""


def processor_info(threads: int) -> EngineInfo:
    """The engine's description: the processor, and how its code was compiled."""
    return EngineInfo(
        engine="cpu",
        adapter=_name(),
        driver=f"Numba {numba.__version__}, {vector_unit()}",
        software=True,
        variant={"threads": threads},
    )


def vector_unit() -> str:
    """The widest vector instructions in use."""
    enabled = set(target()[1].split(","))
    found = next((name for feature, name in _FEATURES if f"+{feature}" in enabled), "")
    return found or f"LLVM for {binding.get_process_triple().partition('-')[0]}"


def _name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
