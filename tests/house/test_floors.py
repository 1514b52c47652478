"""The floors hold, the contracts notice when they do not, and the ground stands on NumPy alone."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "difflogic"
GROUND = sorted(
    file for room in (".", "system", "core", "config", "model", "engine") for file in (PACKAGE / room).glob("*.py")
)

OWN_PACKAGES = {
    "config/schema.py": {"tomli_w"},
    "config/text.py": {"tomli_w"},
    "config/picture_file.py": {"PIL"},
    "system/cache.py": {"platformdirs"},
}
"""What a ground file may import besides NumPy: the file format it reads and writes."""

HEAVY = ("wgpu", "numba", "matplotlib")
"""Imported where they are used, so that `difflogic --help` answers at once."""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package, to plant a mistake in."""
    shutil.copytree(CHECKOUT / "difflogic", tmp_path / "difflogic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(folder: Path) -> tuple[int, str]:
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([script, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("core/gates.py", "import difflogic.reference", "Floors"),
        ("reference/engine.py", "import difflogic.gpu", "Floors"),
        ("gpu/__init__.py", "import difflogic.reference", "Floors"),
        ("unlisted.py", "", "unlisted"),
        ("reference/engine.py", "import wgpu", "Only gpu/ imports wgpu BROKEN"),
        ("gpu/__init__.py", "import numba", "Only cpu/ imports numba BROKEN"),
    ],
)
def test_contracts_notice(copied, file, line, broken):
    with (copied / "difflogic" / file).open("a") as planted:
        planted.write(f"\n{line}\n")
    status, report = lint_imports(copied)
    assert status != 0
    assert broken in report


def test_gpu_may_import_wgpu(copied):
    (copied / "difflogic/gpu/planted.py").write_text("import wgpu\n")
    status, report = lint_imports(copied)
    assert status == 0, report


def imported_packages(source: str) -> set[str]:
    packages = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            packages.add(node.module.split(".")[0])
    return packages


@pytest.mark.parametrize("file", GROUND, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_ground_imports_numpy_alone(file):
    allowed = {"difflogic", "numpy"} | OWN_PACKAGES.get(str(file.relative_to(PACKAGE)), set())
    assert imported_packages(file.read_text()) - sys.stdlib_module_names <= allowed


@pytest.mark.parametrize("module", ["difflogic", "difflogic.cli.main", "difflogic.serve.worker.supervisor"])
def test_import_is_light(module):
    program = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
