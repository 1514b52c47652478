"""What stands around training costs: a sweep beside its trials, a population on two devices, a task of one's own.

python -m benchmarks.sweeps trials --save           # 200 short trials, a process for each of two cores
python -m benchmarks.sweeps trials --on ray --save  # the same on a Ray cluster of this machine, begun and ended here
python -m benchmarks.sweeps devices --save          # a population on cpu and gpu:0 together, and on each alone
python -m benchmarks.sweeps data --save             # samples beside the same task built in, on --engine

trials: the whole command is timed, until tables, plots and page are written; Ray's own start is not. What counts as
trials is the time that each says of itself. devices: every engine has one thread, alone as beside the other, so that
two cores are enough for both; a GPU adapter in software takes the rest of what its own threads leave. data: both take
turns, and the medians of rounds are compared. All of it only means something on a machine that does nothing else.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import difflogic
from benchmarks.store import append
from difflogic.bench.machine import stamp
from difflogic.config import presets
from difflogic.engine import job
from difflogic.runs import jsonl

WORKERS, ROUNDS, SAMPLES = 2, 5, 1024
PRESET = "checkerboard-small"


def command(*words: object, **environment: str) -> float:
    """Run `difflogic` with these words, which must succeed; the seconds that it took."""
    begin = time.perf_counter()
    line = [sys.executable, "-m", "difflogic.cli.main", *map(str, words)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)
    return time.perf_counter() - begin


def trials(count: int, epochs: int, on: str) -> dict[str, Any]:
    """A sweep over seeds."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "sweep"
        over = ["--over", f"seed=0..{count - 1}", "--metric", "hard_loss", "--epochs", epochs, "--devices", "cpu"]
        words = ["sweep", PRESET, *over, "--on", on, "--out", out]
        wall = command(*words, *(["--workers", WORKERS] if on == "local" else []))
        rows = list(csv.DictReader((out / "trials.csv").open()))
    assert [row["status"] for row in rows] == ["complete"] * count
    seconds = [float(row["seconds"]) for row in rows]
    return {
        "on": on.partition(":")[0],
        "trials": count,
        "epochs": epochs,
        "workers": WORKERS,
        "command_s": round(wall, 2),
        "trial_s": round(statistics.median(seconds), 3),
        "overhead_ms": round(1e3 * (WORKERS * wall - sum(seconds)) / count, 1),
        "in_trials": round(sum(seconds) / (WORKERS * wall), 4),
    }


def on_ray(count: int, epochs: int) -> dict[str, Any]:
    """The same on a cluster of one machine with as many cores as workers."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": WORKERS})
    try:
        return trials(count, epochs, f"ray:{cluster.address}")
    finally:
        cluster.shutdown()


def devices(epochs: int, population: int = 16) -> dict[str, Any]:
    """Epochs of members a second on each device alone, and on both."""
    found = {}
    for where in (["cpu"], ["gpu:0"], ["cpu", "gpu:0"]):
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "run"
            words = ["train", PRESET, "--population", population, "--epochs", epochs, "--out", out]
            on = ["--devices", ",".join(where)] if len(where) > 1 else ["--engine", where[0]]
            command(
                *words, "--set", f"train.eval_interval={epochs // 2}", *on, NUMBA_NUM_THREADS="1", LP_NUM_THREADS="1"
            )
            rows = list(jsonl.objects(out / "metrics.jsonl"))
        # Not from the start: what is compiled, and how the shares were found out, is left out.
        half = [row for row in rows if row["epoch"] in (epochs // 2, epochs)]
        first, last = (max(row["elapsed_s"] for row in half if row["epoch"] == at) for at in (epochs // 2, epochs))
        found["+".join(where)] = round(population * (epochs - epochs // 2) / (last - first), 2)
    return {
        "population": population,
        "epochs": epochs,
        **{f"per_s {name}": rate for name, rate in found.items()},
        "share": round(found["cpu+gpu:0"] / (found["cpu"] + found["gpu:0"]), 4),
    }


def data(epochs: int, engine: str) -> dict[str, Any]:
    """Milliseconds an epoch of a preset, and of the same task as samples."""
    config = presets.get(PRESET)
    shape = (SAMPLES, config.task.height, config.task.width, config.model.channels)
    starts = np.random.default_rng(0).integers(0, 2, shape, dtype=np.uint8)
    target = np.repeat(job.fixed_target(config.task)[None], SAMPLES, axis=0)
    samples = difflogic.Dataset.of(starts, target, steps=config.task.steps)
    computes = difflogic.open_engine(engine)
    rates: dict[str, list[float]] = {"built in": [], "samples": []}
    for _ in range(ROUNDS):
        for name, found in rates.items():
            options = {"data": samples} if name == "samples" else {}
            run = difflogic.fit(
                PRESET, epochs=epochs, engine=computes, fields={"train": {"eval_interval": epochs // 2}}, **options
            )
            found.append(_pace([row.elapsed_s for row in run.metrics]))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    return {
        "engine": engine,
        "samples": SAMPLES,
        "epochs": epochs,
        **{f"ms {name}": round(1e3 * each, 3) for name, each in medians.items()},
        "slower": round(medians["samples"] / medians["built in"] - 1, 4),
    }


def _pace(elapsed: Sequence[float]) -> float:
    """Seconds an epoch between the last two evaluations, where what came before is done and told."""
    half = len(elapsed) // 2
    return (elapsed[-1] - elapsed[half - 1]) / (len(elapsed) - half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("trials", "devices", "data"))
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--save", action="store_true", help="append to results/sweeps.jsonl")
    options = parser.parse_args()
    here = stamp()
    if options.case == "trials":
        on = on_ray if options.on == "ray" else lambda count, epochs: trials(count, epochs, "local")
        found = on(options.trials, options.epochs)
    else:
        found = devices(options.epochs) if options.case == "devices" else data(options.epochs, options.engine)
    line = {"case": options.case, **found, **here}
    print(json.dumps(line))
    if options.save:
        append("sweeps", [line])


if __name__ == "__main__":
    main()
