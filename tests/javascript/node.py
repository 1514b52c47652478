"""Programs in JavaScript, run by node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Where a system has no Node, bin/setup puts one beside this Python."""
SECONDS = 300
"""What has not ended by then hangs."""


def needs(*programs: str) -> None:
    """Skip where a program or the packages of node are missing, which on a server is a failure."""
    missing = [program for program in programs if shutil.which(program, path=PATH) is None]
    if not (HERE / "node_modules").is_dir():
        missing.append("the packages of tests/javascript, which bin/setup brings")
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"needs {' and '.join(missing)}")


def run(script: str, given: Any, environment: Mapping[str, str] | None = None) -> Any:
    """What a script beside this file writes as JSON at last, given JSON. AssertionError where it fails."""
    done = subprocess.run(
        [shutil.which("node", path=PATH) or "node", HERE / script],
        input=json.dumps(given),
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{script}: {done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])  # Dawn logs before
