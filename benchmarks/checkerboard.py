"""Measure the main job as a user runs it: one command for 500 epochs of the paper's checkerboard, seed 23.

    python -m benchmarks.checkerboard --engine gpu --save

The results are the time of the complete command (start, compilation, training, evaluations, checkpoints, images), its
peak memory minus that of an idle interpreter, and the first epoch with a solution. With --save a line is appended to
results/checkerboard.jsonl.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.store import append
from difflogic.bench.machine import stamp


def run_command(engine: str, epochs: int, out: Path) -> dict[str, Any]:
    """Run the command in a child process, and return a line with its time, memory and losses."""
    here = stamp()
    idle = _peak_mb([sys.executable, "-c", "pass"])
    start = time.perf_counter()
    # The recipe of the paper trains for all epochs, while the default stops at the first solution.
    arguments = ["train-checkerboard", "--recipe", "paper", "--engine", engine, "--epochs", str(epochs)]
    arguments += ["--out", str(out)]
    peak = _peak_mb([sys.executable, "-m", "difflogic.cli.main", *arguments])
    seconds = time.perf_counter() - start
    rows = list(csv.DictReader((out / "metrics.csv").open()))
    used = json.loads((out / "manifest.json").read_text())["engine"]
    return {
        "case": "checkerboard",
        "epochs": epochs,
        "command_s": round(seconds, 2),
        "peak_mb": round(peak - idle, 1),
        "first_soft_loss": float(rows[0]["soft_loss"]),
        "first_train_hard_loss": int(rows[0]["train_hard_loss"]),
        "first_solved_epoch": next((int(row["epoch"]) for row in rows if row["hard_loss"] == "0"), None),
        "last_hard_loss": int(rows[-1]["hard_loss"]),
        **{key: used[key] for key in ("engine", "adapter", "backend", "driver", "software")},
        **here,
    }


def _peak_mb(command: list[str]) -> float:
    """Return the peak resident memory of a command in MB. Raises CalledProcessError if the command fails."""
    # A separate parent process runs the command, since RUSAGE_CHILDREN has the peak of all children of a process.
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); "
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    run = subprocess.run([sys.executable, "-c", script, *command], check=True, stdout=subprocess.PIPE, text=True)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, else KiB
    return int(run.stdout) * unit / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="gpu")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--save", action="store_true", help="append to results/checkerboard.jsonl")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        line = run_command(options.engine, options.epochs, Path(folder) / "run")
    print(json.dumps(line))
    if options.save:
        append("checkerboard", [line])


if __name__ == "__main__":
    main()
