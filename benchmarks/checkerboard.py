"""The main job as a user runs it: 500 epochs of the paper's checkerboard, seed 23, as one command.

    python -m benchmarks.checkerboard --engine gpu --save

Measures the whole command (start, compilation, training, evaluations, checkpoints, images), its peak memory
beyond that of an idle interpreter, and when it was solved. With --save a line goes to
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
    """Run the command in a child process and read its run folder."""
    here = stamp()
    idle = _peak_mb([sys.executable, "-c", "pass"])
    start = time.perf_counter()
    # All of the epochs, as the paper trains it: the default stops at the first solution.
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
    """Peak resident memory in MB of a child process that must succeed."""
    # A process between this one and the command, since the peak of children is that of the largest there ever was.
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
