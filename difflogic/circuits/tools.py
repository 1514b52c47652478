"""Programs of others that judge circuits, where they are installed: berkeley-abc and yosys."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from difflogic.errors import DifflogicError

ABC, YOSYS = "berkeley-abc", "yosys"
"""The programs; Debian's packages have the same names."""

SECONDS = 120.0
"""A program that takes longer is stopped."""


class ToolError(DifflogicError):
    """A program of others is missing, failed or took too long."""


def missing(tool: str) -> str | None:
    """What to do about a tool that is not here; None where it is."""
    if shutil.which(tool):
        return None
    return f"{tool} is not installed: on Debian and Ubuntu it is the package {tool}."


def run(tool: str, arguments: list[str], files: dict[str, str]) -> str:
    """What `tool` prints, run in a folder that holds `files`. Raises ToolError."""
    if advice := missing(tool):
        raise ToolError(advice)
    with TemporaryDirectory(prefix="difflogic-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        try:
            done = subprocess.run(
                [tool, *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{tool} gave no answer within {SECONDS:.0f} s.") from error
    return done.stdout + done.stderr
