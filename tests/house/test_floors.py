"""The layers hold, the contracts refuse imports against them, and the lower layers need only NumPy."""

import ast
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "difflogic"
ROOMS = (".", "system", "core", "config", "model", "engine")
GROUND = sorted(file for room in ROOMS for file in (PACKAGE / room).glob("*.py"))

OWN_PACKAGES = {
    "config/document.py": {"tomli_w"},
    "config/text.py": {"tomli_w"},
    "config/picture_file.py": {"PIL"},
    "jax.py": {"jax"},
    "torch.py": {"torch"},
    "system/cache.py": {"platformdirs"},
}
"""Packages besides NumPy that a file of the lower layers may import: its file format, or the library it serves."""

HEAVY = ("wgpu", "numba", "matplotlib")
"""Imported where they are used, so that `difflogic --help` answers at once."""


def test_files_and_functions_have_the_promised_length() -> None:
    files, functions = set(), []
    for file in sorted(PACKAGE.rglob("*.py")):
        name, text = str(file.relative_to(PACKAGE)), file.read_text(encoding="utf-8")
        files |= {name} if text.count("\n") > 400 else set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = (ast.get_docstring(node, clean=False) or "").count("\n") + 1
                length = (node.end_lineno or 0) - node.lineno + 1 - (docstring if ast.get_docstring(node) else 0)
                functions += [f"{name}: {node.name}"] * (length > 50)
    assert (files, functions) == (set(), [])


def test_a_class_name_has_one_meaning() -> None:
    """Reference implementations of kernels share names, but are functions."""
    where: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            where.setdefault(name, []).append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_imports_have_no_cycles() -> None:
    graph = grimp.build_graph("difflogic", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    left_out = {name for name in imports if name.startswith("difflogic.policies.")}  # not yet separate
    kept = {name: found - left_out for name, found in imports.items() if name not in left_out}
    list(TopologicalSorter(kept).static_order())


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (r"sys\.executable|\bmultiprocessing|ProcessPool|os\.(exec|spawn|posix_spawn|fork)", ["system/child.py"]),
        (r"click\.s?echo|click\.secho|\bconsole\.print\(", ["cli/screen/echo.py", "cli/screen/table.py"]),
    ],
    ids=["start Python", "print"],
)
def test_library_is_imported_by_its_modules_only(words: str, allowed: list[str]) -> None:
    files = [path for path in PACKAGE.rglob("*.py") if re.search(words, path.read_text(encoding="utf-8"))]
    assert sorted(str(path.relative_to(PACKAGE)) for path in files) == allowed


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the package, for changes that break a contract."""
    shutil.copytree(CHECKOUT / "difflogic", tmp_path / "difflogic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(folder: Path) -> tuple[int, str]:
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([script, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


PLANTED = {
    "Floors": [
        ("core.gates", "import difflogic.reference"),
        ("reference.engine", "import difflogic.gpu"),
        ("gpu", "import difflogic.reference"),
        ("system.files", "def late():\n    import difflogic.serve.log"),
        # engine.job imports the model: a circle, though it is for type checkers alone.
        ("model.cell_netlist", "if typing.TYPE_CHECKING:\n    import difflogic.engine.job"),
    ],
    "Serve": [
        ("serve.store.files", "import difflogic.serve.worker.log"),
        ("serve.worker.log", "import difflogic.serve.api.settings"),
        ("serve.errors", "import difflogic.serve.store.jobs"),
    ],
    "Circuits": [
        ("circuits.synthesis.xag", "import difflogic.circuits.readers.source"),
        ("circuits.simulation.engines", "import difflogic.circuits.export.c"),
    ],
    "CPU": [("cpu.codegen", "import difflogic.cpu.tables"), ("cpu.kernels.adamw", "import difflogic.cpu.local_search")],
    "CLI": [
        ("cli.screen.table", "import difflogic.cli.training"),
        ("cli.training", "import difflogic.cli.commands.train"),
    ],
    "Only gpu/ imports wgpu": [("reference.engine", "import wgpu")],
    "Only cpu/ imports numba": [("gpu", "import numba")],
}
"""Mistakes by the contract that must notice them: a module, and lines at its end."""


def test_contracts_refuse_forbidden_import(copied):
    for module, lines in (mistake for mistakes in PLANTED.values() for mistake in mistakes):
        path = copied / "difflogic" / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        path.write_text(f"{path.read_text()}\nimport typing\n{lines}\n")
    status, report = lint_imports(copied)
    assert status != 0
    for contract, mistakes in PLANTED.items():
        assert re.search(rf"^{contract}.* BROKEN", report, re.MULTILINE)
        for module, lines in mistakes:
            assert re.search(rf"difflogic\.{module} -> {lines.split()[-1]} \(l\.", report), (contract, module, lines)


def test_contracts_refuse_package_without_layer(copied):
    rooms = ("unlisted", "serve/unlisted", "circuits/unlisted", "cpu/unlisted", "cli/unlisted")
    for module in rooms:
        (copied / "difflogic" / f"{module}.py").touch()
    status, report = lint_imports(copied)
    assert status != 0
    assert re.findall(r"^- difflogic\.(.*)$", report, re.MULTILINE) == [room.replace("/", ".") for room in rooms]


def imported_packages(source: str) -> set[str]:
    packages = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            packages.add(node.module.split(".")[0])
    return packages


@pytest.mark.parametrize("file", GROUND, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_lower_layers_import_only_numpy(file):
    allowed = {"difflogic", "numpy"} | OWN_PACKAGES.get(str(file.relative_to(PACKAGE)), set())
    assert imported_packages(file.read_text()) - sys.stdlib_module_names <= allowed


@pytest.mark.parametrize("module", ["difflogic", "difflogic.cli.main", "difflogic.serve.worker.supervisor"])
def test_import_is_light(module):
    program = f"import sys, {module}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
