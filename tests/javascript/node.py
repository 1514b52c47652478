"""Programs in JavaScript, run by node."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.programs import lacking

HERE = Path(__file__).parent
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Search path: if a system has no Node, bin/setup puts one beside this Python."""
SECONDS = 300
"""Timeout of a script, after which it is taken to hang."""


def needs() -> None:
    """Skip the test if Node or the packages of this folder are missing; fail in CI: bin/setup brings both."""
    if shutil.which("node", path=PATH) is None or not (HERE / "node_modules").is_dir():
        lacking("Node or the packages of tests/javascript are missing: run bin/setup.", is_optional=False)


def run(script: str, given: Any, environment: Mapping[str, str] | None = None) -> Any:
    """Return the JSON that a script beside this file writes at last, given JSON. AssertionError if it fails."""
    command, text = [shutil.which("node", path=PATH) or "node", HERE / script], json.dumps(given)
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{script}: {done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])  # Dawn logs before
