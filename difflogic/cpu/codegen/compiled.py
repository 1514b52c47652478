"""Decorators for compiled functions: inlined functions are compiled into callers, entry points once per machine.

Python calls only entry points. Their machine code is cached in the user's cache folder, in one subfolder for each
combination of sources, Numba version and processor. Numba's own cache would not suffice: it checks only the file of the
entry point, not the files of inlined functions.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import numba
from llvmlite import ir
from numba import extending, njit, types
from numba.core import config
from numba.core.cgutils import get_or_insert_function

from difflogic.cpu.codegen.processor import target
from difflogic.cpu.codegen.shipped import short_hash, sources
from difflogic.system.cache import usable, user_cache, warn

LINKING_NUMBA = ((0, 63), (0, 68))
"""First and last Numba version with which the module `linked`, which uses Numba's internals, is tested."""
IS_LINKED = LINKING_NUMBA[0] <= tuple(map(int, numba.__version__.split(".")[:2])) <= LINKING_NUMBA[1]
"""True if inlined functions are linked; other Numba versions compile each separately: slower, with equal results."""
UNLINKED_FACTOR = 7
"""Ratio of the compile time without linking to that with linking."""

FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# No compiled function allocates an array, and without reference counting there is less to compile.
_ENTRY_POINT = FLAGS | ({"_nrt": False, "no_cfunc_wrapper": True} if IS_LINKED else {})

PATIENCE = 300.0
"""Maximum number of seconds that a process waits while another process compiles the same code."""

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Mark a function to be compiled into its callers; if IS_LINKED, calling it from Python raises TypeError."""
    if not IS_LINKED:
        return cast(Function, njit(**FLAGS)(function))
    from difflogic.cpu.codegen.linked import LinkedCompiler

    compiled: Any = njit(pipeline_class=LinkedCompiler, no_cpython_wrapper=True, **_ENTRY_POINT)(function)
    # No wrapper exists that Python could call, so a call must neither find the compiled code nor trigger a compilation.
    compiled._insert = lambda *_: None
    compiled._compile_for_args = partial(_refuse, function.__name__)
    # Treat a literal argument as a variable: otherwise Numba would compile the function once for each value.
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(types.unliteral, args)), kws)
    return cast(Function, compiled)


def _refuse(name: str, *_: Any, **__: Any) -> None:
    raise TypeError(f"{name} is compiled into its callers: Python can only call entry points.")


def intrinsic(function: Callable[..., Any]) -> Any:
    """Decorate a function as a Numba intrinsic, which emits LLVM code; its first parameter is the typing context."""
    return extending.intrinsic(function)


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Emit a call of the LLVM intrinsic or C function `name`, whose result has the LLVM type `result`."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(get_or_insert_function(builder.module, kind, name), arguments)


def entry_point(function: Callable[..., Any]) -> Any:
    """Make a function callable from Python; the first call compiles it or loads it from the cache."""
    # Numba itself compares the modification time of one file. Here a change of any file of the engine changes the
    # name of the folder, so that stale code is never loaded, even after files are copied or checked out.
    before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())  # Numba reads the setting when it decorates
    try:
        return njit(cache=True, **_ENTRY_POINT)(function)
    finally:
        config.CACHE_DIR = before


def is_cached(module: str = "runner") -> bool:
    """Return whether the cache contains an entry point of the module named `module`."""
    return any(cache_folder().rglob(f"{module}.*.nbi"))


def compile_now(first: Any, code: str, seconds: int, warm_up: Callable[[], None]) -> None:
    """Call `warm_up`, which compiles entry points; if `first` is not cached, warn how long compiling `code` takes."""
    if not is_cached(first.__module__.rpartition(".")[2]):
        why = "" if IS_LINKED else f" (longer than usual: difflogic is not tested with Numba {numba.__version__})"
        seconds *= 1 if IS_LINKED else UNLINKED_FACTOR
        warn(f"compiling {code} for this processor, which takes about {seconds} seconds{why}, once.")
    with _one_compiler(first.__module__), _no_collection():
        try:
            warm_up()
        except OSError as error:  # the disk is full, but by now the code is compiled and in memory
            warn(f"compiled code cannot be stored in {error.filename} ({error.strerror}).")
            with contextlib.suppress(OSError):  # storing another entry point may fail as well
                warm_up()


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause garbage collection, which would scan Numba's types and instructions for half a second and free none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def _one_compiler(module: str) -> Iterator[None]:
    """Let only one process compile `module` at a time; other processes wait and then load its code from the cache."""
    lock = filelock.FileLock(cache_folder() / f"{module}.lock", timeout=PATIENCE)
    with contextlib.ExitStack() as stack:
        # If a stopped process holds the lock, or the file system has no locks, compiling twice does no harm.
        with contextlib.suppress(filelock.Timeout, OSError, NotImplementedError):
            stack.enter_context(lock)
        yield


@cache
def cache_folder() -> Path:
    """Return the cache folder for the machine code of these sources on this processor; create it on first use."""
    # Its name depends on all that the machine code depends on: sources, compilers, settings and the processor, since
    # machines may share the folder, and AVX-512 code crashes without AVX-512.
    fingerprint = short_hash(__file__, sys.version, *target(), *sources())
    return usable("NUMBA_CACHE_DIR", str(users_folder() / fingerprint))


def users_folder() -> Path:
    """Return the parent of all cache folders: in NUMBA_CACHE_DIR if set, otherwise in the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) / "difflogic" if chosen else user_cache() / "numba"
