"""External programs that verify circuits and exports, if they are installed."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from difflogic.errors import ToolError

ABC, YOSYS = "berkeley-abc", "yosys"

PACKAGES = {name: name for name in (ABC, YOSYS, "chromium", "gcc", "iverilog", "nextpnr-ice40", "verilator")}
PACKAGES |= {"bgolly": "golly", "ghdl": "ghdl-mcode", "vvp": "iverilog"}
"""Mapping from programs to the Debian and Ubuntu packages that contain them."""
YOWASP = (YOSYS, "nextpnr-ecp5", "nextpnr-ice40")
"""Programs that `pip install yowasp-PROGRAM` installs on any operating system."""

SECONDS = 120.0
"""Default time limit in seconds of programs that `run` starts."""
PATIENCE = 600.0
"""Default time limit in seconds of programs that `run_in` starts, to compile or simulate an export."""

_SHOWN = 300


def missing(tool: str) -> str | None:
    """Return a sentence on how to install a missing tool, or None if it is installed."""
    if _program(tool):
        return None
    ways = [f"install the package {PACKAGES[tool]} on Debian or Ubuntu"] if tool in PACKAGES else []
    ways += [f"run `pip install yowasp-{tool}` on any system"] if tool in YOWASP else []
    return f"{tool} is not installed: {'; '.join(ways)}."


def _program(tool: str) -> str | None:
    """Return the path of a program or of its YoWASP build; None if neither is installed."""
    return shutil.which(tool) or (shutil.which(f"yowasp-{tool}") if tool in YOWASP else None)


def run(tool: str, arguments: Sequence[str], files: dict[str, str], seconds: float | None = None) -> str:
    """Run a tool in a temporary folder with `files`, and return its output for any exit code. Raises ToolError."""
    # The exit code is not the result: yosys returns 1 both if a proof fails and if a file is invalid.
    with TemporaryDirectory(prefix="difflogic-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        done = _done(tool, arguments, Path(folder), b"", SECONDS if seconds is None else seconds)
    return (done.stdout + done.stderr).decode(errors="replace")


def run_in(folder: Path, tool: str, *arguments: str, stdin: bytes = b"", seconds: float = PATIENCE) -> bytes:
    """Run a program in `folder` and return its output. Raises ToolError if it is missing, fails or times out."""
    done = _done(tool, arguments, folder, stdin, seconds)
    if done.returncode:
        output = (done.stderr or done.stdout).decode(errors="replace").strip()
        # The cause begins in the first line that mentions an error or failure; otherwise it is the end of the output.
        match = re.search(r"^[^\n]*(error|fail).*", output, re.IGNORECASE | re.MULTILINE | re.DOTALL)
        cause = match[0][:_SHOWN] if match else output[-_SHOWN:]
        raise ToolError(f"{tool} failed with exit code {done.returncode}: {cause}")
    return done.stdout + done.stderr


def _done(
    tool: str, arguments: Sequence[str], folder: Path, stdin: bytes, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    if (tool in PACKAGES or tool in YOWASP) and (advice := missing(tool)):
        raise ToolError(advice)
    command = [_program(tool) or tool, *arguments]
    try:
        return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{tool} did not finish within {seconds:.0f} s.") from error
