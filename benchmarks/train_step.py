"""Time of one train step, engine beside engine in the same run: verified first, then timed.

    python -m benchmarks.train_step                  # every engine on the paper's checkerboard
    python -m benchmarks.train_step --small gpu

A train step is seed grid, T steps forward, loss, T steps backward, clip and AdamW. The engines take
turns, round by round, so that a machine whose speed drifts treats them alike; the median is the number
to quote. The first step of each engine, which compiles, is timed apart. With --save a line per engine goes to
results/train_step.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stamp import RESULTS, stamp
from difflogic import presets
from difflogic.circuit import Circuit
from difflogic.engine import TrainingModel, TrainState
from difflogic.train.placement import open_engine
from difflogic.train.tasks import make_job

FIRST_LOSS = {"checkerboard": 231.266, "checkerboard-small": None}
"""Seed 23, from the authors' code; to 2e-5 relative."""


@dataclass
class Contender:
    """An engine with a model, and what was measured."""

    name: str
    model: TrainingModel
    first_s: float
    first_loss: float
    epochs: int = 0
    """Train steps per round."""
    seconds: list[float] = field(default_factory=list)

    def time(self, epochs: int) -> float:
        """Seconds per train step over `epochs` of them, waited for."""
        start = time.perf_counter()
        self.model.train(epochs)
        self.model.drain()
        return (time.perf_counter() - start) / epochs


def contender(name: str, small: bool) -> Contender:
    """A verified contender: its first loss is the known one."""
    config = presets.checkerboard(small)
    circuit = Circuit.initial(config.model, config.seed)
    engine = open_engine(name)
    model = engine.open_model(make_job(config, circuit), TrainState.initial(circuit, config.seed))
    start = time.perf_counter()
    model.train(1)
    loss = model.drain()[0].soft_loss
    expected = FIRST_LOSS[config.name]
    if expected is not None and abs(loss - expected) > 2e-5 * expected:
        raise SystemExit(f"{name}: the first loss is {loss}, not {expected}: not timed, it computes something else.")
    return Contender(name, model, time.perf_counter() - start, loss)


def result(each: Contender, small: bool) -> dict[str, Any]:
    """One line of the results file, times in milliseconds."""
    ms = sorted(1e3 * s for s in each.seconds)
    return {
        "case": "train_step",
        "preset": "checkerboard-small" if small else "checkerboard",
        "median_ms": round(statistics.median(ms), 3),
        "min_ms": round(ms[0], 3),
        "max_ms": round(ms[-1], 3),
        "rounds": len(ms),
        "first_step_s": round(each.first_s, 3),
        "first_loss": each.first_loss,
        **stamp(each.model.info),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=["gpu", "reference"])
    parser.add_argument("--small", action="store_true", help="the --small checkerboard")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=0, help="train steps per round (default: about a second's worth)")
    parser.add_argument("--save", action="store_true", help="append to results/train_step.jsonl")
    options = parser.parse_args()

    contenders = [contender(name, options.small) for name in options.engines]
    for each in contenders:
        warm = each.time(2)
        each.epochs = options.epochs or max(2, int(1 / warm))
    for _ in range(options.rounds):
        for each in contenders:
            each.seconds.append(each.time(each.epochs))
    results = [result(each, options.small) for each in contenders]
    slowest = max(line["median_ms"] for line in results)
    for line in results:
        line["ratio_to_slowest"] = round(slowest / line["median_ms"], 2)
        print(json.dumps(line))
        if options.save:
            with (RESULTS / "train_step.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
