"""Compile functions: inlined ones into their callers, entry points once per machine.

Python calls entry points alone. Their machine code is kept in the user's cache folder, in a folder of its own per
source text, Numba and processor: Numba itself looks only at the file of the entry point, not at the files whose
functions it has taken in.
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
from numba import extending, njit, types
from numba.core import config

from difflogic.cpu.codegen.processor import target
from difflogic.cpu.codegen.shipped import short_hash, sources
from difflogic.system.cache import usable, user_cache, warn

LINKING_NUMBA = ((0, 63), (0, 68))
"""First and last version of Numba whose internals `linked` is tested with."""
IS_LINKED = LINKING_NUMBA[0] <= tuple(map(int, numba.__version__.split(".")[:2])) <= LINKING_NUMBA[1]
"""True if inlined functions are linked; other versions of Numba compile each by itself, to the same bits but slowly."""
UNLINKED_FACTOR = 7
"""Compile time without linking, compared with linking."""

FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# No compiled function allocates an array: without reference counts there is less to compile.
_ENTRY_POINT = FLAGS | ({"_nrt": False, "no_cfunc_wrapper": True} if IS_LINKED else {})

PATIENCE = 300.0
"""Seconds for which a process waits for another that compiles the same."""

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Compile a function into its callers; a call from Python raises TypeError if it is linked."""
    if not IS_LINKED:
        return cast(Function, njit(**FLAGS)(function))
    from difflogic.cpu.codegen.linked import LinkedCompiler

    compiled: Any = njit(pipeline_class=LinkedCompiler, no_cpython_wrapper=True, **_ENTRY_POINT)(function)
    # There is nothing that Python could call, so a call must not find what was compiled, nor have it compiled.
    compiled._insert = lambda *_: None
    compiled._compile_for_args = partial(_refuse, function.__name__)
    # A constant is an argument like any other: for each value Numba would compile the function anew.
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(types.unliteral, args)), kws)
    return cast(Function, compiled)


def _refuse(name: str, *_: Any, **__: Any) -> None:
    raise TypeError(f"{name} is compiled into its callers: Python can call entry points alone.")


def intrinsic(function: Callable[..., Any]) -> Any:
    """A function that says itself which instructions it is; its first parameter is not an argument."""
    return extending.intrinsic(function)


def entry_point(function: Callable[..., Any]) -> Any:
    """A function that Python calls: compiled by its first call, or read from where an earlier process left it."""
    # Numba's own check is the modification time of one file. Here a change of any file of the engine changes the
    # folder's name, so that stale code is never found, however files were copied or checked out.
    before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder())  # Numba takes the folder when it decorates
    try:
        return njit(cache=True, **_ENTRY_POINT)(function)
    finally:
        config.CACHE_DIR = before


def is_cached(module: str = "runner") -> bool:
    """True where the entry points of a module need not be compiled."""
    return any(cache_folder().rglob(f"{module}.*.nbi"))


def compile_now(first: Any, what: str, seconds: int, warm_up: Callable[[], None]) -> None:
    """Compile what `warm_up` calls, `first` among it, and say so where it takes time."""
    if not is_cached(first.__module__.rpartition(".")[2]):
        why = "" if IS_LINKED else f" (longer than usual: difflogic is not tested with Numba {numba.__version__})"
        seconds *= 1 if IS_LINKED else UNLINKED_FACTOR
        warn(f"compiling {what} for this processor, which takes some {seconds} seconds, once{why}.")
    with _one_compiler(first.__module__), _no_collection():
        try:
            warm_up()
        except OSError as error:  # the disk is full: by then the code is compiled, and in memory
            warn(f"compiled code cannot be kept in {error.filename} ({error.strerror}).")
            with contextlib.suppress(OSError):  # another entry point, too, may fail to be kept
                warm_up()


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Numba's types and instructions live on: to look for garbage among them, again and again, takes half a second."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextlib.contextmanager
def _one_compiler(module: str) -> Iterator[None]:
    """Workers that begin together wait for the first to compile, and read what it kept, instead of each doing it."""
    lock = filelock.FileLock(cache_folder() / f"{module}.lock", timeout=PATIENCE)
    try:
        lock.acquire()
    except (filelock.Timeout, OSError, NotImplementedError):
        yield  # a stopped process holds it, or the file system knows no locks: compiling twice harms nobody
        return
    try:
        yield
    finally:
        lock.release()


@cache
def cache_folder() -> Path:
    """Return the folder of compiled code, made on first use."""
    return usable("NUMBA_CACHE_DIR", str(users_folder() / _fingerprint()))


def users_folder() -> Path:
    """Return the folder of the code of all processors: in NUMBA_CACHE_DIR if that is set, else in the user's cache."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) / "difflogic" if chosen else user_cache() / "numba"


def _fingerprint() -> str:
    """A hash of everything that the machine code depends on, because two processors may share one folder."""
    # The processor, since code for AVX-512 ends a process on one without it.
    return short_hash(__file__, sys.version, *target(), *sources())
