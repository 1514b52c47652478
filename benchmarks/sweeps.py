"""Measure the overhead of sweeps, of populations on two devices, and of custom tasks.

python -m benchmarks.sweeps trials --save           # 200 short trials in two processes
python -m benchmarks.sweeps trials --on ray --save  # 200 short trials on a temporary Ray cluster of this machine
python -m benchmarks.sweeps devices --save          # a population on cpu and gpu:0 together, and on each device alone
python -m benchmarks.sweeps data --save             # a task as samples and as a preset, on --engine

trials: the complete command is timed, until tables and page are written, but not the start of Ray. The time of a trial
is the time that the trial reports. `overhead_ms` is all other time of the workers per trial. It consists of `start_s`
before the first trial, `end_s` after the last trial, and `between_ms` per trial between them.

devices: each device has one thread (except hardware GPUs) and a separate core, both when it runs alone and when all
devices run. So there must be as many cores as devices: otherwise the sum of the single speeds would count a core twice.
A single device trains the complete population while no other device computes. All runs alternate in one process.
`share` is the speed of all devices together, divided by the sum of the single speeds in the same round; the median must
be 0.9 or more. `best_alone` is the share of the fastest single device. If it is near 0.9, the result means little. With
`--devices reference,gpu:0 --population 16`, the share of each device is lower.

data: train steps of both tasks alternate; `slower` is the median over the rounds. Evaluations are excluded, since
samples have more held-out samples than the preset has evaluation grids.

All results are meaningful only on an otherwise idle machine.
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
    """Run a sweep over seeds, and return its times and overhead."""
    difflogic.open_engine("cpu")  # compiles for the processor, once, in about 50 s
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
    """Run `trials` on a temporary Ray cluster of one machine with as many cores as workers."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": WORKERS})
    try:
        return trials(count, epochs, f"ray:{cluster.address}")
    finally:
        cluster.shutdown()


def devices(names: Sequence[str], population: int) -> dict[str, Any]:
    """Return the member epochs per second on each device alone and on all devices, and their ratios."""
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
    """Return the milliseconds per train step of a preset, and of the same task as samples."""
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
    """Return the epochs per second of each model by round, after a warm-up round for compilation and caches."""
    rounds = [{name: _rate(model, seconds) for name, model in models.items()} for _ in range(count + 1)]
    return {name: [each[name] for each in rounds[1:]] for name in models}


def _rate(model: Model, seconds: float) -> float:
    """Return epochs per second, measured for at least `seconds`."""
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
