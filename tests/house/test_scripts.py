"""The shell scripts parse, and shellcheck finds nothing where it is installed."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.programs import PACKAGES, needs

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


def test_tests_that_scripts_name_exist():
    workflows = (CHECKOUT / ".github/workflows").glob("*.yml")
    pattern = r"(tests/[\w/]+\.py)(?:::(\w+))?"
    named = {match for file in [*SCRIPTS, *workflows] for match in re.findall(pattern, file.read_text())}
    assert ("tests/sweeps/test_ray.py", "") in named
    assert [(path, test) for path, test in named if f"def {test}" not in (CHECKOUT / path).read_text()] == []


def test_shellcheck_finds_nothing():
    needs("shellcheck")
    result = subprocess.run(["shellcheck", "-x", *SCRIPTS], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


@pytest.fixture
def checkout(tmp_path):
    """A function that makes a checkout with one real command, and these texts for the programs that it starts."""

    def make(command, **texts):
        for name, text in {"bin/setup": "", "bin/check": "", ".venv/bin/python": "", **texts}.items():
            program = tmp_path / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/usr/bin/env bash\n{text}")
            program.chmod(0o755)
        return shutil.copy(CHECKOUT / command, tmp_path / command)

    return make


@pytest.mark.parametrize(
    ("check", "tests", "code"),
    [
        ("", "", 0),
        ("until [[ -e tested ]]; do sleep 0.01; done; exit 1", "touch tested", 1),
        ("until [[ -e tested ]]; do sleep 0.01; done; exit 1", "touch tested; exec sleep 600", 1),
        ("", "exit 3", 3),
    ],
    ids=["both pass", "check fails after the tests", "check fails during the tests", "tests fail"],
)
def test_failed_check_fails_the_tests(checkout, check, tests, code):
    python = f"[[ $1 != -m ]] || {{ {tests or ':'}; }}"
    command = checkout("bin/test", **{"bin/check": check, ".venv/bin/python": python})
    assert subprocess.run([command], timeout=60, check=False).returncode == code


@pytest.mark.parametrize(
    ("arguments", "checks", "selection"),
    [
        ([], True, ["-m", "not exhaustive"]),
        (["--all"], True, []),
        (["--parity"], False, ["-m", "parity"]),
        (["tests/core"], True, ["tests/core"]),
    ],
)
def test_arguments_select_tests(checkout, arguments, checks, selection):
    python = '[[ $1 != -m ]] || printf "%s\\n" "${@:4}" >told'
    command = checkout("bin/test", **{"bin/check": "touch checked", ".venv/bin/python": python})
    subprocess.run([command, *arguments], check=True)
    told = Path(command).parents[1] / "told"
    chosen = told.read_text().splitlines()
    shared = chosen[:7] if "--dist" in chosen else []
    assert (told.with_name("checked").exists(), chosen[len(shared) :]) == (checks, selection)
    assert bool(shared) == (arguments != ["tests/core"])


@pytest.mark.exhaustive
def test_parity_tests_cover_every_engine():
    assert "    bin/test --parity " in (CHECKOUT / "README.md").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "parity"]
    result = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    selected = Counter(line.split("::")[0] for line in result.stdout.splitlines() if "::" in line)
    assert {path.split("/")[1] for path in selected} == {"circuits", "cpu", "engines", "gpu", "reference", "tensor"}
    assert sum(selected.values()) > 800


def test_a_bare_machine_has_no_optional_program():
    if "DIFFLOGIC_EXPECT_BARE" not in os.environ:
        pytest.skip("this machine may have them: only .ci/run hides them")
    assert [program for program in PACKAGES if shutil.which(program)] == []


def test_bench_card_measures_every_row(checkout):
    command = checkout("bin/bench", **{".venv/bin/python": 'echo "$@" >>told\n'})
    told = Path(command).parents[1] / "told"
    subprocess.run([command, "--card"], check=True)
    modules = [line.split()[1] for line in told.read_text().splitlines()]
    parts = "card CASES simulate checkerboard checkerboard simulate rivals CASES instructions expected"
    names = " ".join(f"benchmarks.{name}" for name in parts.split())
    assert modules == names.replace("benchmarks.CASES", "difflogic.cli.main benchmarks.keep").split()
    told.unlink()
    subprocess.run([command, "--gpu"], check=True)
    measure, keep, *others = told.read_text().splitlines()
    assert measure.startswith("-m difflogic.cli.main bench --out ")
    assert measure.endswith(" --engine gpu --engine cpu --engine reference --require-hardware --case *")
    assert keep.startswith("-m benchmarks.keep ")
    assert others == [
        "-m benchmarks.checkerboard --engine gpu --save",
        "-m benchmarks.rivals --gpu --save",
        "-m benchmarks.simulate --gpu --save",
    ]
