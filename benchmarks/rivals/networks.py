"""Compare training steps of logic gate networks with torchlogix and with Petersen's `difflogic` in one run.

    python -m benchmarks.rivals.networks --python VENV/bin/python           # on the processor
    python -m benchmarks.rivals.networks --python VENV/bin/python --gpu     # on the GPU
    python -m benchmarks.rivals.networks --python VENV/bin/python --save    # append lines to results/networks.jsonl

The cases are `feed-forward/*` of `difflogic bench`: 784 bits, a batch of 256, ten classes, Adam. VENV is a separate
environment, since Petersen's package has the name of this package. `python -m venv VENV` creates it, and
`VENV/bin/pip install torchlogix difflogic` requires a CUDA toolkit. A missing library is reported and left out.
Contenders are timed alternately, each in a separate process; the result is the median over the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from benchmarks.rivals.__main__ import Process
from benchmarks.store import Line, append
from difflogic.bench.arrays import BATCH, CASES, ArrayCase, open_array_contender
from difflogic.bench.engines import Bench
from difflogic.bench.machine import stamp
from difflogic.bench.memory import own_peak_bytes
from difflogic.cpu.engine import vector_unit
from difflogic.devices.open import open_engine

LIBRARIES = ("torchlogix", "torchlogix_compiled", "difflogic")
OURS = "ours"


def work(case: ArrayCase, place: str) -> None:
    """Run the contender of this package by the protocol of `worker.py`."""
    begin = time.perf_counter()
    engine = open_engine(place, require_hardware=place == "gpu")
    contender = open_array_contender(case, Bench(place, engine, 1.0))
    device = f"{engine.info.adapter}, {engine.info.driver}"
    print(json.dumps({"device": device, "open_s": time.perf_counter() - begin}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"seconds": contender.repeat(int(line))}), flush=True)
    print(json.dumps({"peak_mb": (own_peak_bytes() or 0) / 1e6}), flush=True)


def run(case: ArrayCase, place: str, python: str | None, rounds: int) -> list[Line]:
    """Return a line per contender that could be measured."""
    commands = {OURS: [sys.executable, "-m", "benchmarks.rivals.networks", "--work", case.name, place]}
    script = Path(__file__).with_name("foreign_network.py")
    for library in LIBRARIES if python else ():
        sizes = map(str, (case.layers, case.size))
        # In isolated mode (-I), this package is not on the path, where it would hide Petersen's.
        commands[library] = [str(python), "-I", str(script), library, place, *sizes]
    processes = []
    for name, command in commands.items():
        process = Process(name, place, command)
        if process.failed:
            print(f"{case.name}, {name}: {process.failed}", file=sys.stderr)
            process.end()
        else:
            process.warm_up()
            processes.append(process)
    for _ in range(rounds):
        for process in processes:
            process.turn()
    return _lines(case, place, processes)


def _lines(case: ArrayCase, place: str, processes: list[Process]) -> list[Line]:
    median = {process.name: statistics.median(process.seconds) for process in processes}
    ours, here = median.get(OURS), stamp()
    return [
        {
            "case": case.name,
            "contender": process.name,
            "place": place,
            "device": process.ready["device"],
            "vectors": vector_unit(),
            "batch": BATCH,
            "iterations_per_s": round(1 / median[process.name], 2),
            "ratio_to_ours": None if ours is None else round(median[process.name] / ours, 2),
            "rounds": len(process.seconds),
            "peak_mb": round(process.end() or 0),
            **here,
        }
        for process in processes
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="interpreter of the environment with the other libraries")
    parser.add_argument("--gpu", action="store_true", help="everything on the GPU")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="append to results/networks.jsonl")
    parser.add_argument("--work", nargs=2, metavar=("CASE", "PLACE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = {case.name: case for case in CASES if case.what == "logic"}
    if options.work:
        work(cases[options.work[0]], options.work[1])
        return
    for case in cases.values():
        lines = run(case, "gpu" if options.gpu else "cpu", options.python, options.rounds)
        for line in lines:
            rate, ratio = f"{line['iterations_per_s']:9.2f}/s", f"{line['ratio_to_ours']} times our time"
            print(f"{case.name:20} {line['contender']:20} {rate}  {ratio}  {line['device']}", flush=True)
        if options.save:
            append("networks", lines)


if __name__ == "__main__":
    main()
