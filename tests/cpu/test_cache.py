"""Test the cache of compiled code, and that a cache that cannot be written changes nothing but a warning."""

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest

from difflogic.core import gates
from difflogic.cpu import engine as engines
from difflogic.cpu.codegen import compiled, shipped
from difflogic.cpu.engine import CpuEngine
from difflogic.cpu.hard import simulation
from difflogic.cpu.local_search import CpuLocalSearch
from difflogic.engine import search
from difflogic.model import column_program
from tests.tasks import task_job


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Settings of the environment count again."""
    compiled.cache_folder.cache_clear()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return monkeypatch


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    compiled.cache_folder.cache_clear()
    yield
    compiled.cache_folder.cache_clear()


def test_unwritable_cache_folder_is_replaced(tmp_path, fresh: pytest.MonkeyPatch, capsys) -> None:
    """A file is where the folder should be: as good as no permission, and the same for every user."""
    (tmp_path / "file").touch()
    fresh.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled.cache_folder().is_dir()
    assert "(Not a directory): using a temporary folder until this process ends. Set NUMBA_" in capsys.readouterr().err


def test_python_cannot_call_inlined_functions() -> None:
    @compiled.inlined
    def double(number: int) -> int:
        return 2 * number

    @compiled.entry_point
    def quadruple(number: int) -> int:
        return double(double(number))

    for _ in range(2):  # before it is compiled, and after
        with pytest.raises(TypeError, match="double is compiled into its callers: Python can only call entry points"):
            double(21)
        assert quadruple(21) == 84


UNTESTED_NUMBA = """
import sys, numba
numba.__version__ = "0.999.0"
sys.modules["difflogic.cpu.codegen.linked"] = None  # an import of it fails, as if Numba had renamed its internals
from difflogic.cpu.codegen import compiled
double = compiled.inlined(lambda number: 2 * number)
quadruple = compiled.entry_point(lambda number: double(double(number)))
compiled.compile_now(quadruple, "a test", 1, lambda: print(quadruple(21)))
"""


def test_untested_numba_compiles_without_linking(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    (tmp_path / "untested.py").write_text(UNTESTED_NUMBA)  # Numba caches functions of files alone
    command = [sys.executable, tmp_path / "untested.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "84\n"), done.stderr
    assert "about 7 seconds (longer than usual: difflogic is not tested with Numba 0.999.0), once." in done.stderr


def test_compilation_is_announced_once(engine: CpuEngine, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine, the simulator and the search are in the cache folder by the names under which they are looked up."""
    simulation.compile_kernel()
    job = task_job("a seed", probes=1)
    CpuLocalSearch(job)
    capsys.readouterr()
    assert compiled.is_cached()
    engines.compile_all.__wrapped__()
    simulation.compile_kernel.__wrapped__()
    CpuLocalSearch(job)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_held", [False, True], ids=["alone", "another stands still"])
def test_other_processes_wait_for_the_one_that_compiles(is_held: bool, tmp_path, fresh: pytest.MonkeyPatch) -> None:
    """But not for ever: one that holds the lock and stands still costs others patience, and no result."""
    fresh.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    fresh.setattr(compiled, "PATIENCE", 0.1)
    folder = compiled.cache_folder()
    free: list[bool] = []

    def warm_up() -> None:
        other = filelock.FileLock(folder / f"{__name__}.lock", timeout=0)
        with contextlib.suppress(filelock.Timeout), other:
            free.append(True)

    with filelock.FileLock(folder / f"{__name__}.lock") if is_held else contextlib.nullcontext():
        compiled.compile_now(warm_up, "a test", 1, warm_up)
    assert not free
    warm_up()
    assert free == [True], "given back"


def test_full_disk_only_prevents_caching(engine: CpuEngine, capsys: pytest.CaptureFixture[str]) -> None:
    """Numba keeps in memory what it could not write: nothing is compiled twice, and the engine opens."""
    calls = []

    def full() -> None:
        calls.append(len(calls))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/run.nbc")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "warm_up", full)
        patch.setattr(compiled, "is_cached", lambda _: True)
        engines.compile_all.cache_clear()
        CpuEngine()
    engines.compile_all.cache_clear()
    assert calls == [0, 1]
    assert "cannot be stored in /full/run.nbc (No space left on device)" in capsys.readouterr().err


def test_numba_cache_dir_overrides_the_users_cache(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    assert compiled.users_folder() == tmp_path / "numba"
    fresh.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert compiled.users_folder() == tmp_path / "chosen" / "difflogic"


def test_cache_folder_depends_on_sources_and_processor(tmp_path: Path, fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    here = compiled.cache_folder()
    compiled.cache_folder.cache_clear()
    fresh.setattr(compiled, "target", lambda: ("haswell", "+avx2"))
    assert compiled.cache_folder() != here


def test_constant_of_another_package_changes_the_cache_folder() -> None:
    """Compiled code holds the values of what it imports: a search with other costs would run as before."""
    for module in (search, gates, column_program):
        assert Path(str(module.__file__)).read_text(encoding="utf-8") in shipped.sources()
