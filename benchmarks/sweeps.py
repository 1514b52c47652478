"""What a sweep costs beside its trials: the share of the processor that short trials get, from first to last.

python -m benchmarks.sweeps --trials 200 --save            # a process for each core of this machine
python -m benchmarks.sweeps --trials 40 --on ray --save    # a Ray cluster of this machine alone, begun and ended here

The whole command is timed, from its start until tables, plots and page are written; on a cluster, Ray's own start is
not. What counts as trials is the time that each says of itself, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.store import append
from difflogic.bench.machine import stamp

WORKERS = 2


def measured(trials: int, epochs: int, on: str) -> dict[str, Any]:
    """One sweep over seeds, as a command."""
    here = stamp()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "sweep"
        words = [sys.executable, "-m", "difflogic.cli.main", "sweep", "checkerboard-small", "--metric", "hard_loss",
                 "--over", f"seed=0..{trials - 1}", "--epochs", str(epochs), "--devices", "cpu", "--on", on,
                 "--out", str(out)]  # fmt: skip
        words += ["--workers", str(WORKERS)] if on == "local" else []
        begin = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - begin
        rows = list(csv.DictReader((out / "trials.csv").open()))
    seconds = [float(row["seconds"]) for row in rows]
    assert [row["status"] for row in rows] == ["complete"] * trials
    return {
        "case": "trials",
        "on": on.partition(":")[0],
        "trials": trials,
        "epochs": epochs,
        "workers": WORKERS,
        "command_s": round(wall, 2),
        "trial_s": round(statistics.median(seconds), 3),
        "overhead_ms": round(1e3 * (WORKERS * wall - sum(seconds)) / trials, 1),
        "in_trials": round(sum(seconds) / (WORKERS * wall), 4),
        **here,
    }


def on_ray(trials: int, epochs: int) -> dict[str, Any]:
    """The same on a cluster of one machine with as many cores as workers."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": WORKERS})
    try:
        return measured(trials, epochs, f"ray:{cluster.address}")
    finally:
        cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    parser.add_argument("--save", action="store_true", help="append to results/sweeps.jsonl")
    options = parser.parse_args()
    line = on_ray(options.trials, options.epochs) if options.on == "ray" else measured(
        options.trials, options.epochs, "local"
    )  # fmt: skip
    print(json.dumps(line))
    if options.save:
        append("sweeps", [line])


if __name__ == "__main__":
    main()
