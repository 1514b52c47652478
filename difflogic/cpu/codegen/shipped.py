"""Code that a wheel brings: what the front of Numba makes of the engine, for every processor, in LLVM's words.

To find types and instructions takes most of the compiler's time, and on machines of 64 bits they differ by PART alone.
A new machine is left to translate them for its own processor. `bin/lib/wheel_hook.py` writes them down when a wheel is
built. They count for the sources and compilers that they were made of alone: elsewhere, as in a checkout, the engine is
compiled from its sources.
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
    """Everything that Numba reads: sources that are inlined into each other, what they take from, and its settings."""
    rooms = [FOLDER.parents[2] / room for room in ("core", "cpu", "engine", "model")]
    files = [path.read_text(encoding="utf-8") for room in rooms for path in sorted(room.rglob("*.py"))]
    settings = [os.environ.get(name, "") for name in ("NUMBA_OPT", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO")]
    return (numba.__version__, llvmlite.__version__, *files, *settings)


@cache
def folder() -> Path:
    """Where the code for these sources and compilers is. It is not there where it was made for others."""
    # On Windows other functions are called to wait.
    return FOLDER / short_hash(*sources(), os.name, sys.byteorder, str(sys.maxsize), str(PART))


def path_of(function: Callable[..., Any], types: Sequence[Any]) -> Path:
    """The file of a function for arguments of these types."""
    return folder() / f"{function.__module__}.{function.__qualname__}.{short_hash(*map(str, types))}.bc"


def short_hash(*parts: str) -> str:
    """A name for what is made of these texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
