"""Text of a bug report, which describes the installation and the machine without private names."""

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
"""Pattern for the folders of an absolute path, up to the last slash."""


def lines() -> Iterator[str]:
    """Yield the report's lines: versions, system, processor, memory, environment variables, caches and CPU engine."""
    from difflogic.runs.manifest import git_commit
    from difflogic.system.memory import free_memory, physical_memory
    from difflogic.system.processor import cores, processor_name

    memory = [_megabytes(size) if size else "unknown" for size in (physical_memory(), free_memory())]
    yield f"difflogic    {__version__}, commit {(git_commit() or 'unknown')[:12]}"
    yield f"Python       {platform.python_version()}, {platform.python_implementation()} {platform.architecture()[0]}"
    yield f"Packages     {', '.join(f'{name} {_version(name)}' for name in PACKAGES)}"
    yield f"System       {', '.join(part for part in _system() if part)}"
    yield f"Processor    {processor_name()}, {cores()} of {os.cpu_count()} cores"
    yield f"Memory       {memory[0]}, free {memory[1]}"
    yield f"Environment  {', '.join(_environment()) or 'no variables of difflogic or Numba are set'}"
    yield from _caches()
    yield f"CPU engine   {_cpu_engine()}"


def private() -> Callable[[str], str]:
    """Return a function that replaces names of the user, the machine and folders in a text with placeholders."""
    names = {"<host>": [platform.node(), platform.node().partition(".")[0]], "<user>": [], "~": []}
    with contextlib.suppress(OSError, KeyError, ImportError):  # the user may have no name
        names["<user>"].append(getpass.getuser())
    with contextlib.suppress(RuntimeError):  # or no home folder
        home = Path.home()
        names["~"].append(str(home))
        names["<user>"].append(home.name)
    # Names of one letter occur in many texts by chance. Long names are replaced first: /home/ann before ann.
    words = [(word, name) for name, private in names.items() for word in private if len(word) > 1]
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
        return "not installed"


def _system() -> Iterator[str]:
    yield f"{platform.system()} {platform.release()} on {platform.machine()}"
    with contextlib.suppress(OSError, KeyError):
        yield platform.freedesktop_os_release()["PRETTY_NAME"]
    yield " ".join(filter(None, (*platform.win32_ver()[:2], platform.mac_ver()[0], *platform.libc_ver())))


def _environment() -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if name.startswith(SHOWN):
            # Whether a path is set may matter for a fault, but the path may contain the user's name.
            hidden = "set" if name in SECRET else "a path" if re.search(r"[/\\~]", value) else ""
            yield f"{name} is {hidden}" if hidden else f"{name}={value}"


def _caches() -> Iterator[str]:
    results = f"in {VARIABLE}" if os.environ.get(VARIABLE) else "in the default folder"
    code = "in NUMBA_CACHE_DIR" if os.environ.get("NUMBA_CACHE_DIR") else results
    for content, place, find in (("results", results, user_cache), ("code", code, _compiled)):
        try:
            state = _state(find())
        except (ImportError, OSError) as error:
            state = f"cannot be read ({type(error).__name__}: {error})"
        yield f"Cache        of {content}, {place}: {state}"


def _compiled() -> Path:
    from difflogic.cpu.codegen.compiled import users_folder

    return users_folder()


def _cpu_engine() -> str:
    try:
        from difflogic.cpu.codegen import shipped
    except ImportError as error:
        return f"cannot be imported ({error})"
    return "precompiled in the package" if shipped.folder().is_dir() else "compiled from its sources"


def _state(folder: Path) -> str:
    if not folder.is_dir():
        return "does not exist yet"
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    access = "" if os.access(folder, os.W_OK) else ", not writable"
    return f"{len(sizes)} files of {_megabytes(sum(sizes))}{access}"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
