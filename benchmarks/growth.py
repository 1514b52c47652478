"""Measure how the CPU engine scales, and its bottleneck at each size.

    python -m benchmarks.growth --save

The points of an axis are timed alternately. `busy` is processor time divided by the time of all threads: the rest is
time in which threads waited for each other or for a processor. The limiter of a train step is its longest phase. Times
for more threads than this machine has are predicted from the serial part of the measured times.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from benchmarks.simulate import CIRCUIT
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.circuits.simulation.starts import planes_of
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import bernoulli
from difflogic.cpu.engine import CpuEngine, vector_unit
from difflogic.cpu.hard.simulation import CpuSimulation
from difflogic.cpu.model import CpuModel, time_phases
from difflogic.engine.job import TrainState, make_job
from difflogic.engine.simulation import SimulationSpec
from difflogic.model import netlist_json
from difflogic.model.circuit import Circuit
from difflogic.system.processor import cores

WAITING = 0.9
"""Minimum busy share of the threads; for less, the waiting of threads is the limiter."""
ROUND_S = 0.2
WARM_UP_S = 3.0
"""Duration of a warm-up in seconds, in which the clock of an idle processor rises, before the first axis."""
PAPER_THREADS = (4, 8)


class Point:
    """Point on an axis: a size, with the seconds and busy shares of its rounds."""

    def __init__(self, size: int, threads: int, run: Callable[[int], None], limiter: Callable[[], str]) -> None:
        self.size, self.threads, self.limiter, self._run = size, threads, limiter, run
        self.seconds: list[float] = []
        self.busy: list[float] = []
        run(2)
        began = time.perf_counter()
        run(2)
        self._count = max(2, 2 * round(ROUND_S / (time.perf_counter() - began)))

    def turn(self) -> None:
        began, worked = time.perf_counter(), time.process_time()
        self._run(self._count)
        taken = time.perf_counter() - began
        self.seconds.append(taken / self._count)
        self.busy.append((time.process_time() - worked) / taken / self.threads)


def training(size: int, config: Config, threads: int, models: int = 1) -> Point:
    """Return a point for train steps; the models of a population train one after the other on all threads."""
    job = make_job(config, Circuit.initial(config.model, config.seed))
    engine = CpuEngine(threads)
    opened = [engine.open([job], [TrainState.initial(job)]) for _ in range(models)]

    def run(count: int) -> None:
        for model in opened:
            model.train(count)

    def limiter() -> str:
        model = opened[0]
        assert isinstance(model, CpuModel)
        times: dict[str, float] = {}
        for name, _, seconds in time_phases(model):
            times[name] = times.get(name, 0.0) + seconds
        most = max(times, key=lambda name: times[name])
        return f"{most}, {100 * times[most] / sum(times.values()):.0f} % of a step"

    return Point(size, threads, run, limiter)


def simulating(side: int, threads: int) -> Point:
    """Return a point for steps of the stored Life circuit on a square grid; a small grid has fewer threads."""
    spec = SimulationSpec(netlist_json.load(CIRCUIT), side, side)
    simulation = CpuSimulation(spec, threads=threads)
    simulation.put(planes_of(spec, "random", bernoulli.CERTAIN // 2))
    return Point(side, simulation.threads, simulation.run, lambda: "the row's instructions")


def axes() -> dict[str, Callable[[], list[Point]]]:
    """Return functions that open the points of each axis; except for threads, each point has four times the work."""
    board, most = presets.checkerboard(small=False), cores()
    return {
        "threads": lambda: [training(count, board, count) for count in dict.fromkeys((1, most))],
        "grid side": lambda: [
            training(side, board.with_(task={"height": side, "width": side}), most) for side in (16, 32, 64, 128)
        ],
        "batch": lambda: [training(size, board.with_(train={"batch": size}), most) for size in (2, 8, 32)],
        "population": lambda: [training(models, board, most, models) for models in (1, 4, 16)],
        "simulated side": lambda: [simulating(side, most) for side in (64, 128, 256, 512, 1024, 2048, 4096)],
    }


def measure(rounds: int) -> list[Line]:
    """Return a line per point."""
    lines, here = [], {"vectors": vector_unit(), "rounds": rounds, **stamp()}
    began, first = time.perf_counter(), simulating(1024, cores())
    while time.perf_counter() < began + WARM_UP_S:
        first.turn()
    for axis, make in axes().items():
        points = make()
        for _ in range(rounds):
            for point in points:
                point.turn()
        for before, point in zip([None, *points[:-1]], points, strict=True):
            # Times are compared within a round, in which the machine had the same speed.
            grown = None if before is None else [a / b for a, b in zip(point.seconds, before.seconds, strict=True)]
            busy = statistics.median(point.busy)
            waits = busy < WAITING and point.threads > 1
            line = {
                "axis": axis,
                "size": point.size,
                "threads": point.threads,
                "median_ms": round(1e3 * statistics.median(point.seconds), 4),
                "growth": None if grown is None else round(statistics.median(grown), 3),
                "busy": round(busy, 2),
                "limiter": "threads that wait" if waits else point.limiter(),
                "measured": True,
            }
            lines.append(line | here)
        if axis == "threads" and len(points) > 1:
            lines += [line | here for line in on_paper(points[0], points[-1])]
    return lines


def on_paper(one: Point, most: Point) -> list[Line]:
    """Predict the times of more threads from the serial part (Amdahl's law)."""
    alone, together = statistics.median(one.seconds), statistics.median(most.seconds)
    serial = max(0.0, (together * most.threads / alone - 1) / (most.threads - 1))
    lines, before = [], together
    for count in PAPER_THREADS:
        seconds = alone * (serial + (1 - serial) / count)
        lines.append(
            {
                "axis": "threads",
                "size": count,
                "threads": count,
                "median_ms": round(1e3 * seconds, 4),
                "growth": round(seconds / before, 3),
                "busy": round(alone / count / seconds, 2),
                "limiter": f"{100 * serial:.1f} % that is not shared",
                "measured": False,
            }
        )
        before = seconds
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="append to results/growth.jsonl")
    options = parser.parse_args()
    lines = measure(options.rounds)
    for line in lines:
        growth = "" if line["growth"] is None else f"{line['growth']:.2f}"
        print(f"{line['axis']:15} {line['size']:5} {line['median_ms']:10.3f} ms {growth:>6}  {line['limiter']}")
    if options.save:
        append("growth", lines)


if __name__ == "__main__":
    main()
