"""Children of the tests, run from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """`python -m module arguments`, its output and errors in pipes."""
    command = [sys.executable, "-W", "error", "-m", module, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def run(module: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """The same, waited for."""
    with start(module, *arguments, **options) as process:
        out, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)
