"""Measure the overhead of sweeps, of populations on two devices, and of custom tasks.

python -m benchmarks.sweeps trials --save           # 200 short trials, a process for each of two cores
python -m benchmarks.sweeps trials --on ray --save  # the same on a Ray cluster of this machine, begun and ended here
python -m benchmarks.sweeps devices --save          # a population on cpu and gpu:0 together, and on each alone
python -m benchmarks.sweeps data --save             # samples beside the same task built in, on --engine

trials: the whole command is timed, until tables and page are written; Ray's own start is not. What counts as a
trial is the time that it says of itself. All else that the workers have is `overhead_ms`, for each trial: `start_s`
passes before the first trial, `end_s` after the last, and `between_ms` for each trial in between.

devices: every device has one thread (hardware GPUs have what they have) and a core to itself, alone as beside the
others: there must be as many cores as devices. Otherwise the sum of the speeds alone would count a core twice, and
nothing could reach it. Alone, a device trains the whole population, and nothing else is computed. All of this takes
turns in one process. `share` is the speed of all devices together, divided by the sum of the speeds alone of the same
turn; the median must be 0.9 or more. `best_alone` is what the fastest device alone has of that sum. Where that is 0.9
already, the row says little: `--devices reference,gpu:0 --population 16` are two of which neither reaches it.

data: the train steps of both take turns; `slower` is the median over turns. Evaluations are left out: that of samples
takes all held-out ones, which are more than the evaluation grids of the task built in.

All of it only means something on a machine that does nothing else.
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
from collections.abc import Mapping, Sequence
from operator import truediv
from pathlib import Path
from typing import Any, cast

import numpy as np

import difflogic
from benchmarks.store import append
from difflogic.bench.machine import stamp
from difflogic.config import presets
from difflogic.config.customise import configure
from difflogic.config.request import TrainRequest
from difflogic.devices.shared import SharedEngine
from difflogic.engine import job
from difflogic.engine.api import Engine, Model
from difflogic.system.processor import cores
from difflogic.train import start

WORKERS, SAMPLES = 2, 1024
PRESET = "checkerboard-small"


def trials(count: int, epochs: int, on: str) -> dict[str, Any]:
    """A sweep over seeds."""
    difflogic.open_engine("cpu")  # compiled once for a processor, in some 50 s
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "sweep"
        over = ["--over", f"seed=0..{count - 1}", "--metric", "hard_loss", "--epochs", epochs, "--devices", "cpu"]
        words = ["sweep", PRESET, *over, "--workers", WORKERS if on == "local" else on, "--out", out, "--json"]
        begin, told = time.perf_counter(), list[float]()
        line = [sys.executable, "-m", "difflogic.cli.main", *map(str, words)]
        with subprocess.Popen(line, stdout=subprocess.PIPE) as child:
            for each in child.stdout or ():
                told += [time.perf_counter() - begin] if json.loads(each)["event"] == "trial" else []
        wall = time.perf_counter() - begin
        rows = list(csv.DictReader((out / "trials.csv").open()))
    assert [row["status"] for row in rows] == ["complete"] * count
    seconds = [float(row["seconds"]) for row in rows]
    started = told[0] - seconds[0]
    return {
        "on": on.partition(":")[0],
        "trials": count,
        "epochs": epochs,
        "workers": WORKERS,
        "command_s": round(wall, 2),
        "trial_s": round(statistics.median(seconds), 3),
        "start_s": round(started, 2),
        "end_s": round(wall - told[-1], 2),
        "between_ms": round(1e3 * (WORKERS * (told[-1] - started) - sum(seconds)) / count, 1),
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


def devices(names: Sequence[str], population: int) -> dict[str, Any]:
    """Epochs of members a second on each device alone, and on all."""
    assert cores() >= len(names), "what each has alone, all could not have together"
    os.environ |= {"NUMBA_NUM_THREADS": "1", "LP_NUM_THREADS": "1"}  # before an engine loads
    begun = start.fresh(TrainRequest(config=presets.get(PRESET), population=population))
    engines = {name: difflogic.open_engine(name) for name in names}
    engines["all"] = cast("Engine", SharedEngine(list(engines.values())))
    models = {name: _opened(engine, begun) for name, engine in engines.items()}
    rates = _in_turns(models, 5, 4.0)
    sums = [sum(turn) for turn in zip(*(rates[name] for name in names), strict=True)]
    return {
        "population": population,
        "shares": models["all"].info.variant,
        **{f"per_s {name}": round(population * statistics.median(found), 2) for name, found in rates.items()},
        "best_alone": round(max(statistics.median(map(truediv, rates[name], sums)) for name in names), 4),
        "share": round(statistics.median(map(truediv, rates["all"], sums)), 4),
    }


def data(engine: str) -> dict[str, Any]:
    """Milliseconds a train step of a preset, and of the same task as samples."""
    built_in = presets.get(PRESET)
    shape = (SAMPLES, built_in.task.height, built_in.task.width, built_in.model.channels)
    starts = np.random.default_rng(0).integers(0, 2, shape, dtype=np.uint8)
    target = np.repeat(job.fixed_target(built_in.task)[None], SAMPLES, axis=0)
    samples = difflogic.Dataset.of(starts, target, steps=built_in.task.steps)
    config = configure(TrainRequest(preset=PRESET, data=samples, recipe="paper")).config
    computes = difflogic.open_engine(engine)
    begun = {
        "built in": start.fresh(TrainRequest(config=built_in)),
        "samples": start.fresh(TrainRequest(config=config, data=samples)),
    }
    rates = _in_turns({name: _opened(computes, each) for name, each in begun.items()}, 20, 1.0)
    return {
        "engine": engine,
        "samples": SAMPLES,
        **{f"ms {name}": round(1e3 / statistics.median(found), 3) for name, found in rates.items()},
        "slower": round(statistics.median(map(truediv, rates["built in"], rates["samples"])) - 1, 4),
    }


def _opened(engine: Engine, begun: start.Start) -> Model:
    return engine.open([each.job for each in begun.members], [each.state for each in begun.members])


def _in_turns(models: Mapping[str, Model], count: int, seconds: float) -> dict[str, list[float]]:
    """Epochs a second of each, round by round, after a round for what is compiled and for the caches."""
    rounds = [{name: _rate(model, seconds) for name, model in models.items()} for _ in range(count + 1)]
    return {name: [each[name] for each in rounds[1:]] for name in models}


def _rate(model: Model, seconds: float) -> float:
    """Return epochs a second, measured for `seconds`, or for one call that takes longer."""
    begin, epochs = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        model.train(calls := model.epochs_per_call())
        epochs += calls
    model.fetch_metrics()
    return epochs / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("trials", "devices", "data"))
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=60, help="of a trial")
    parser.add_argument("--on", choices=("local", "ray"), default="local")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--devices", default="cpu,gpu:0")
    parser.add_argument("--population", type=int, default=32)
    parser.add_argument("--save", action="store_true", help="append to results/sweeps.jsonl")
    options = parser.parse_args()
    here = stamp()
    if options.case == "trials":
        on = on_ray if options.on == "ray" else lambda count, epochs: trials(count, epochs, "local")
        found = on(options.trials, options.epochs)
    elif options.case == "devices":
        found = devices(options.devices.split(","), options.population)
    else:
        found = data(options.engine)
    line = {"case": options.case, **found, **here}
    print(json.dumps(line))
    if options.save:
        append("sweeps", [line])


if __name__ == "__main__":
    main()
