"""Find the bitcode that a wheel ships: the output of Numba's front end for the functions of the engine.

Type inference and lowering take most of the compile time. On 64-bit machines their output depends on the processor only
through PART, so a new machine only translates the bitcode to machine code. `bin/lib/wheel_hook.py` writes the bitcode
when a wheel is built. The bitcode is valid only for the same sources and compilers; otherwise, as in a checkout, the
engine is compiled from its sources.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba

from difflogic.cpu.codegen.processor import PART

FOLDER = Path(__file__).parent / "llvm"


@cache
def sources() -> tuple[str, ...]:
    """Return everything that Numba's output depends on: versions of Numba and llvmlite, source texts, and settings."""
    packages = [FOLDER.parents[2] / name for name in ("core", "cpu", "engine", "model")]
    files = [path.read_text(encoding="utf-8") for package in packages for path in sorted(package.rglob("*.py"))]
    settings = [os.environ.get(name, "") for name in ("NUMBA_OPT", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO")]
    return (numba.__version__, llvmlite.__version__, *files, *settings)


@cache
def folder() -> Path:
    """Return the folder of the bitcode for these sources and compilers, which need not exist."""
    # The name of the system is part of the hash because threads on Windows call other functions to wait.
    return FOLDER / short_hash(*sources(), os.name, sys.byteorder, str(sys.maxsize), str(PART))


def path_of(function: Callable[..., Any], types: Sequence[Any]) -> Path:
    """Return the path of the bitcode of `function` for arguments of `types`."""
    return folder() / f"{function.__module__}.{function.__qualname__}.{short_hash(*map(str, types))}.bc"


def short_hash(*parts: str) -> str:
    """Return a short hash of `parts` for use in a file name."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
