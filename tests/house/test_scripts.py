"""The shell scripts parse, and shellcheck finds nothing where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
COMMANDS = sorted([*(p for p in (CHECKOUT / "bin").iterdir() if p.is_file()), CHECKOUT / ".ci/run"])
SCRIPTS = [*COMMANDS, *sorted((CHECKOUT / "bin/lib").glob("*.sh"))]


def _name(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


@pytest.mark.parametrize("script", COMMANDS, ids=_name)
def test_command_is_executable_and_stops_at_errors(script):
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n# ")
    assert "\nset -euo pipefail\n" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_bash_parses(script):
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing():
    result = subprocess.run(["shellcheck", "-x", *SCRIPTS], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_one_command_measures_every_row_of_a_card(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(CHECKOUT / "bin/bench", tmp_path / "bin/bench")
    for name, text in {"bin/setup": "", ".venv/bin/python": 'echo "$@" >>told\n'}.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}")
        (tmp_path / name).chmod(0o755)
    told = tmp_path / "told"
    subprocess.run([tmp_path / "bin/bench", "--card"], check=True)
    modules = [line.split()[1] for line in told.read_text().splitlines()]
    kept = ["difflogic.cli.main", "benchmarks.keep"]
    others = [f"benchmarks.{name}" for name in ("simulate", "checkerboard", "checkerboard", "simulate", "rivals")]
    assert modules == [*others[:3], *kept, *others[3:]]
    told.unlink()
    subprocess.run([tmp_path / "bin/bench", "--gpu"], check=True)
    measure, keep, *others = told.read_text().splitlines()
    assert measure.startswith("-m difflogic.cli.main bench --out ")
    assert measure.endswith(" --engine gpu --require-hardware --case *")
    assert keep.startswith("-m benchmarks.keep ")
    assert others == [
        "-m benchmarks.checkerboard --engine gpu --save",
        "-m benchmarks.rivals --gpu --save",
        "-m benchmarks.simulate --gpu --save",
    ]
