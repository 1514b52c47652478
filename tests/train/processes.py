"""Children of the tests, run from the checkout."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: object) -> subprocess.Popen[str]:
    """`python -m module arguments`, its output and errors in pipes."""
    return _start("-m", module, *arguments)


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return _finish(start(module, *arguments))


def run_code(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return _finish(_start("-c", code, *arguments))


def _start(*arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    with process:
        out, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)
