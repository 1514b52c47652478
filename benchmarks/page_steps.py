"""Time a train step of in-browser training by Dawn in Node, and one of the engine, on the first adapter.

    python -m benchmarks.page_steps --save

The player of the page runs a training that was recorded for this kind of adapter. Its first losses must equal those of
the engine. The second half of the epochs is timed, after player and engine have adapted the number of steps per submit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from benchmarks.same_bits import PLAYER, recorded, work
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine
from tests.javascript import node

CLOSE = 1e-3
"""Relative tolerance of the losses, since compilers and plans may differ."""
COMPARED = 2
"""Number of first losses that are compared; rounding changes the gates on which later losses depend."""


def of_the_engine(engine: GpuEngine, preset: str, epochs: int) -> tuple[list[float], float]:
    """Train by the engine; return the losses of the first half of the epochs, and the milliseconds per step."""
    (job, state), _ = work(preset)
    model = engine.open([job], [state])
    model.train(epochs // 2)
    losses = [row.soft_loss for row in model.fetch_metrics()[0]]
    began = time.perf_counter()
    model.train(epochs - epochs // 2)
    model.fetch_metrics()
    taken = time.perf_counter() - began
    model.close()
    return losses, 1e3 * taken / (epochs - epochs // 2)


def of_the_page(preset: str, epochs: int, software: bool) -> tuple[list[float], float]:
    """Train by the page's player in Node; return the losses, and the milliseconds per step."""
    found = node.run("play.js", {"player": PLAYER.read_text(), **recorded(preset, epochs, software)})
    half = next(each for each in found["times"] if each[0] >= epochs // 2)
    last = found["times"][-1]
    return found["losses"], (last[1] - half[1]) / (last[0] - half[0])


def measured(preset: str, epochs: int, rounds: int) -> list[Line]:
    """Return a line for the engine and one for the page, with medians over alternating rounds."""
    adapter = select_adapter()
    engine = GpuEngine(GpuDevice(adapter))
    times: dict[str, list[float]] = {"gpu": [], "page in Node": []}
    for _ in range(rounds):
        right, ms = of_the_engine(engine, preset, epochs)
        times["gpu"].append(ms)
        losses, ms = of_the_page(preset, epochs, adapter.software)
        times["page in Node"].append(ms)
        np.testing.assert_allclose(losses[:COMPARED], right[:COMPARED], rtol=CLOSE)
    device = {"adapter": adapter.name, "driver": adapter.driver, "software": adapter.software}
    return [
        {"case": f"page/{preset}", "contender": name, "median_ms": round(statistics.median(each), 3), "epochs": epochs}
        | {"rounds": rounds, "ratio_to_engine": round(statistics.median(each) / statistics.median(times["gpu"]), 2)}
        | device
        | stamp()
        for name, each in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="checkerboard")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", action="store_true", help="append to results/page_steps.jsonl")
    options = parser.parse_args()
    lines = measured(options.preset, options.epochs, options.rounds)
    print("\n".join(map(json.dumps, lines)))
    if options.save:
        append("page_steps", lines)


if __name__ == "__main__":
    main()
