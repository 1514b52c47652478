"""Python children import nothing from the current folder, and one function builds their commands."""

import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from types import SimpleNamespace

import pytest

from difflogic.devices import selftest
from difflogic.serve import cluster
from difflogic.serve.api import pictures
from difflogic.serve.worker import follow_up_process, supervisor


def test_child_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """Folders hold a file for each installed package, one of them also for each module of the standard library."""
    marker = tmp_path / "imported"

    def hostile(folder: Path, *names: str) -> Path:
        folder.mkdir()
        for name in {*packages_distributions(), *names} - {"difflogic"}:
            (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write(__name__ + ' ')\n")
        return folder

    # With arguments that end each child when all is imported.
    children = [selftest._command("absent"), supervisor.COMMAND, follow_up_process.COMMAND, pictures.COMMAND]
    starts = dict.fromkeys(children, hostile(tmp_path / "all", *sys.stdlib_module_names))
    # Python itself imports from the standard library before it runs a module.
    starts[sys.executable, "-m", "difflogic", "presets"] = hostile(tmp_path / "packages", "fractions", "json")
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    processes = [subprocess.Popen(each, cwd=cwd, stdout=null, stderr=pipe, text=True) for each, cwd in starts.items()]
    ends = ["".join(process.communicate()[1].splitlines()[-1:]).partition(":")[0] for process in processes]
    assert not marker.exists(), marker.read_text()
    assert ends == ["", "IndexError", "ValueError", "IndexError", ""]


def test_cluster_workers_skip_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders: list[Path] = []
    ray = SimpleNamespace(init=lambda *_, **__: folders.append(Path.cwd()))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.chdir(tmp_path)
    assert cluster.connected("ray", "A test") is ray
    assert [*folders, Path.cwd()] == [Path(sys.prefix), tmp_path]
