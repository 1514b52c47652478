"""Mutation tests of the kernels: one operator or number of a shader is changed, and its parity tests must fail.

    python -m benchmarks.mutants --count 60              # a sample that depends only on the code and the seed
    python -m benchmarks.mutants --count 20 --only gate_backward
    python -m benchmarks.mutants --only common/d_patches.wgsl --list

A mutant of a file runs in the tests that compare kernels with this file to their reference implementations. It is
killed if a test fails or hangs. Surviving mutants are printed: they show a gap in the tests, or have no effect.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHADERS, TESTS = ROOT / "shaders", ROOT / "tests" / "gpu"
FOLDER = "DIFFLOGIC_MUTANT_SHADERS"
"""Environment variable with the shader folder of a child process."""
TIMEOUT_SECONDS = 300

SWAPS = {
    " + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / ", " < ": " <= ", " <= ": " < ", " > ": " >= ",
    " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && ", " & ": " | ", " | ": " & ",
    " ^ ": " | ", " << ": " >> ", " >> ": " << ", " += ": " -= ", " -= ": " += ", "min(": "max(", "max(": "min(",
}  # fmt: skip
SITE = re.compile("|".join(map(re.escape, sorted(SWAPS, key=len, reverse=True))) + r"|\b\d+u\b|\b\d+\.\d+\b")
DECLARES = re.compile(r"\s*(#import|@|override|struct|alias|var<|fn |[\w]+: [\w<>, ]+,$|//)")
"""Pattern of lines whose operators and numbers are not mutated, such as declarations."""


@dataclass(frozen=True)
class Mutant:
    """Shader file with one changed operator or number."""

    file: str
    line: int
    """Line number from 0."""
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line + 1}:{self.column + 1}: `{self.old.strip()}` -> `{self.new.strip()}`"

    def write(self, folder: Path) -> None:
        """Copy all shaders to the new folder `folder`, and change one of them."""
        shutil.copytree(SHADERS, folder)
        lines = (folder / self.file).read_text().splitlines(keepends=True)
        before, after = lines[self.line][: self.column], lines[self.line][self.column + len(self.old) :]
        lines[self.line] = before + self.new + after
        (folder / self.file).write_text("".join(lines))


def mutants(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file; comments are not changed."""
    for number, line in enumerate((SHADERS / file).read_text().splitlines()):
        if DECLARES.match(line):
            continue
        for site in SITE.finditer(line.partition("//")[0]):
            old = site.group()
            yield Mutant(file, number, site.start(), old, SWAPS.get(old) or _next(old))


def _next(number: str) -> str:
    return f"{int(number[:-1]) + 1}u" if number.endswith("u") else f"{float(number) + 1}"


def imported(file: str) -> set[str]:
    """Return the file and all files that it imports, directly or indirectly."""
    direct = re.findall(r"^#import (\S+)$", (SHADERS / file).read_text(), re.MULTILINE)
    return {file}.union(*map(imported, direct))


def judges(file: str) -> list[str]:
    """Return the tests of all kernels that contain the file."""
    if file.startswith("simulation/"):
        return [str(TESTS / "test_simulation.py")]
    kernels = {path.stem for path in SHADERS.glob("*.wgsl") if file in imported(path.name)}
    found = []
    for path in sorted(TESTS.glob("test_kernels_*.py")):
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                named = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
                if named & kernels or file in ast.unparse(function):
                    found.append(f"{path}::{function.name}")
    return found


def outcome(mutant: Mutant) -> str:
    """Run the tests of a mutant; return `killed`, `survived`, or `invalid` if it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        mutant.write(Path(folder) / "shaders")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "benchmarks.mutants", "-p", "no:cacheprovider"]
        environment = os.environ | {FOLDER: f"{folder}/shaders"}
        try:
            done = subprocess.run(
                [*command, *judges(mutant.file)], cwd=ROOT, env=environment, capture_output=True, text=True,
                timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "killed"
    if done.returncode == 0:
        return "survived"
    return "invalid" if "does not compile" in done.stdout else "killed"


def pytest_configure() -> None:
    """Replace the shaders by the mutated ones in the child process of pytest, before tests are collected."""
    if FOLDER in os.environ:
        from difflogic.gpu import shaders

        shaders.shader_root = lambda: Path(os.environ[FOLDER])


def main() -> int:
    """Test a sample of mutants; return exit code 1 if a mutant survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="how many, drawn from all by --seed [60]")
    parser.add_argument("--only", help="of files whose path holds this text alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name them and their tests, and run nothing")
    options = parser.parse_args()
    files = [path.relative_to(SHADERS).as_posix() for path in sorted(SHADERS.rglob("*.wgsl"))]
    files = [file for file in files if not file.startswith("selftest/") and (options.only or "") in file]
    every = [mutant for file in files for mutant in mutants(file)]
    drawn = random.Random(options.seed).sample(every, min(options.count, len(every)))
    counts = {"killed": 0, "survived": 0, "invalid": 0}
    for mutant in drawn:
        if options.list:
            print(mutant, *(judge.rpartition("/")[2] for judge in judges(mutant.file)))
            continue
        how = outcome(mutant)
        counts[how] += 1
        print(f"{how:8} {mutant}", flush=True)
    if not options.list:
        judged = counts["killed"] + counts["survived"]
        print(f"{counts['killed']} of {judged} killed, of {len(every)} mutants; {counts['invalid']} do not compile")
    return int(counts["survived"] > 0)


if __name__ == "__main__":
    sys.exit(main())
