"""A circuit as C: one function that steps a row, compiled by the system's compiler and kept in the user's cache.

It is called where `difflogic.cpu.simulate` calls its own compiled row, with the same arguments:

    row(above, row, below, new, words, stride)

Vectors are written out (an extension that gcc and clang share), so that their use does not depend on what a
compiler's loop analysis makes of a thousand statements.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from difflogic.errors import ToolError
from difflogic.netlist import Netlist
from difflogic.straight_line import expression, lines, read_inputs
from difflogic.user_cache import user_cache
from difflogic.wiring import PATCH

COMPILERS = ("cc", "gcc", "clang")
MOST_GATES = 5_000
"""Beyond, a compiler takes longer than it is worth."""
TIMEOUT_S = 120

_SOURCE = """\
#include <stdint.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif

typedef uint64_t vec __attribute__((vector_size(BYTES), aligned(8), may_alias));

#define ZERO ((vec){{0}})
#define AT(base, channel, shift) (*(const vec *)((base) + (channel) * stride + i + (shift)))

#ifdef __AVX512VBMI2__ /* one instruction, which gcc does not find */
#include <immintrin.h>
#define WEST(base, channel) ((vec)_mm512_shldi_epi64((__m512i)AT(base, channel, 0), (__m512i)AT(base, channel, -1), 1))
#define EAST(base, channel) ((vec)_mm512_shrdi_epi64((__m512i)AT(base, channel, 0), (__m512i)AT(base, channel, 1), 1))
#else
#define WEST(base, channel) (AT(base, channel, 0) << 1 | AT(base, channel, -1) >> 63)
#define EAST(base, channel) (AT(base, channel, 0) >> 1 | AT(base, channel, 1) << 63)
#endif

void row(const uint64_t *above, const uint64_t *row, const uint64_t *below, uint64_t *new,
         int64_t words, int64_t stride) {{
    for (int64_t i = 0; i < words; i += BYTES / 8) {{
{body}
    }}
}}
"""


def source(netlist: Netlist) -> str:
    """The text; what no channel depends on is left out."""
    return _SOURCE.format(body="\n".join(f"        {statement}" for statement in _statements(netlist)))


def _statements(netlist: Netlist) -> Iterator[str]:
    for bit in read_inputs(netlist):
        channel, f = divmod(bit, PATCH)
        base = ("above", "row", "below")[f // 3]
        value = (f"WEST({base}, {channel})", f"AT({base}, {channel}, 0)", f"EAST({base}, {channel})")[f % 3]
        yield f"const vec v{bit} = {value};"
    for line in lines(netlist):
        yield f"const vec v{line.bit} = {expression(line, 'v{}'.format, 'ZERO', '~ZERO')};"
    for channel, output in enumerate(netlist.outputs.tolist()):
        yield f"*(vec *)(new + {channel} * stride + i) = v{output};"


class CRow:
    """A netlist's row by the system's C compiler, for as long as this object lives.

    Raises ToolError where there is no compiler, it fails, or the circuit is too large for it.
    """

    def __init__(self, netlist: Netlist) -> None:
        gates = len(lines(netlist))
        if gates > MOST_GATES:
            raise ToolError(
                f"A C compiler would take too long over {gates} gates, at most {MOST_GATES} are handed to it: simplify "
                "the circuit (difflogic simplify), or use --engine numba."
            )
        self.compiler = compiler()
        self._library = ctypes.CDLL(str(_compiled(source(netlist), self.compiler)))
        self.address = int(ctypes.cast(self._library.row, ctypes.c_void_p).value or 0)


def compiler() -> tuple[str, ...]:
    """The command of the C compiler: CC, else the first of `COMPILERS`. Raises ToolError."""
    named = os.environ.get("CC", "").strip()
    if named:
        command = tuple(shlex.split(named))
        if shutil.which(command[0]) is None:
            raise ToolError(f"CC names the compiler {command[0]!r}, which is not here: install it, or unset CC.")
        return command
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if found is None:
        raise ToolError(
            "No C compiler was found (cc, gcc or clang): install one (Debian and Ubuntu: the package gcc; macOS: "
            "xcode-select --install), or use --engine numba, which needs none."
        )
    return (found,)


@cache
def version(command: tuple[str, ...]) -> str:
    """The first line of what the compiler says about itself."""
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    return (done.stdout.splitlines() or [""])[0]


def _compiled(text: str, command: tuple[str, ...]) -> Path:
    """The library of this source, from the cache or made now."""
    native = "-march=native" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "-mcpu=native"
    flags = ["-O2", native, "-shared", "-fPIC", "-x", "c"]
    parts = (text, *command, version(command), *flags, *_processor())
    folder = user_cache() / "rows"
    library = folder / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place) / "row.so"
            _run([*command, *flags, "-o", str(made), "-"], text)
            made.replace(library)
    return library


def _processor() -> tuple[str, ...]:
    """What `native` means: two machines may share a folder."""
    from difflogic.cpu.compiled import target

    return target()


def _run(command: list[str], text: str) -> None:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"The C compiler {command[0]} took more than {TIMEOUT_S} s: use --engine numba.") from error
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise ToolError(f"The C compiler {command[0]} failed ({complaint}): use --engine numba, or name another in CC.")
