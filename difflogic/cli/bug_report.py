"""Bug reports, which describe a machine without private names."""

import contextlib
import getpass
import os
import platform
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from difflogic.system.cache import VARIABLE, user_cache
from difflogic.version import __version__

PACKAGES = (
    *("numpy", "numba", "llvmlite", "wgpu", "click", "rich", "pillow", "matplotlib", "safetensors", "python-sat"),
    *("fastapi", "uvicorn", "pydantic", "jax", "torch"),
)
SHOWN = ("DIFFLOGIC_", "NUMBA_")
SECRET = ("DIFFLOGIC_TOKEN", "DIFFLOGIC_SERVER")
_FOLDERS = re.compile(r"(?<![\w/\\:])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\"<>|]+[/\\])+")
"""All of an absolute path but its last name."""


def lines() -> Iterator[str]:
    """Yield versions, system, processor, environment and caches."""
    from difflogic.runs.manifest import git_commit
    from difflogic.system.memory import free_memory, physical_memory
    from difflogic.system.processor import cores, processor_name

    memory = [_megabytes(found) if found else "unknown" for found in (physical_memory(), free_memory())]
    yield f"difflogic    {__version__}, commit {(git_commit() or 'unknown')[:12]}"
    yield f"Python       {platform.python_version()}, {platform.python_implementation()} {platform.architecture()[0]}"
    yield f"Packages     {', '.join(f'{name} {_version(name)}' for name in PACKAGES)}"
    yield f"System       {', '.join(part for part in _system() if part)}"
    yield f"Processor    {processor_name()}, {cores()} of {os.cpu_count()} cores"
    yield f"Memory       {memory[0]}, free {memory[1]}"
    yield f"Environment  {', '.join(_environment()) or 'no variable of difflogic or Numba is set'}"
    yield from _caches()
    yield f"CPU engine   {_cpu_engine()}"


def private() -> Callable[[str], str]:
    """Return a function that removes the names of the user, of the machine and of folders from a text."""
    names = {"<host>": [platform.node(), platform.node().partition(".")[0]], "<user>": [], "~": []}
    with contextlib.suppress(OSError, KeyError, ImportError):  # a process whose user has no name
        names["<user>"].append(getpass.getuser())
    with contextlib.suppress(RuntimeError):  # or no home
        home = Path.home()
        names["~"].append(str(home))
        names["<user>"].append(home.name)
    # A name of one letter would be found in every second word. Longest first: /home/ann goes before ann.
    words = [(word, name) for name, found in names.items() for word in found if len(word) > 1]
    words.sort(key=lambda pair: -len(pair[0]))

    def redacted(text: str) -> str:
        for word, name in words:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", name, text)
        return _FOLDERS.sub(".../", text)

    return redacted


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _system() -> Iterator[str]:
    yield f"{platform.system()} {platform.release()} on {platform.machine()}"
    with contextlib.suppress(OSError, KeyError):
        yield platform.freedesktop_os_release()["PRETTY_NAME"]
    yield " ".join(filter(None, (*platform.win32_ver()[:2], platform.mac_ver()[0], *platform.libc_ver())))


def _environment() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if name.startswith(SHOWN):
            # A path may matter for a fault, but tells who the user is.
            hidden = "set" if name in SECRET else "a path" if re.search(r"[/\\~]", value) else ""
            yield f"{name} is {hidden}" if hidden else f"{name}={value}"


def _caches() -> Iterator[str]:
    answers = f"where {VARIABLE} says" if os.environ.get(VARIABLE) else "in the usual place"
    code = "where NUMBA_CACHE_DIR says" if os.environ.get("NUMBA_CACHE_DIR") else answers
    for what, where, find in (("answers", answers, user_cache), ("code", code, _compiled)):
        try:
            state = _state(find())
        except (ImportError, OSError) as error:
            state = f"cannot be looked at ({type(error).__name__}: {error})"
        yield f"Cache        of {what}, {where}: {state}"


def _compiled() -> Path:
    from difflogic.cpu.codegen.compiled import users_folder

    return users_folder()


def _cpu_engine() -> str:
    try:
        from difflogic.cpu.codegen import shipped
    except ImportError as error:
        return f"cannot be looked at ({error})"
    return "translated from what the package brings" if shipped.folder().is_dir() else "compiled from its sources"


def _state(folder: Path) -> str:
    if not folder.is_dir():
        return "not there yet"
    held = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    written = "" if os.access(folder, os.W_OK) else ", and cannot be written"
    return f"{len(held)} files of {_megabytes(sum(held))}{written}"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
