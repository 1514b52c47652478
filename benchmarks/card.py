"""Rates of a hardware GPU, and train steps with and without its two compilation options.

    python -m benchmarks.card --save             # on a hardware GPU, about a minute
    python -m benchmarks.card --any --case train/game-of-life    # on any adapter, to try the script

The script measures the gap between dispatches by timestamps, and the bandwidth of a shader that copies 1 GiB. Then it
alternates train steps whose kernels are compiled with constant sizes (`device.bakes_sizes`), without bounds checks
(`device.trusts_kernels`), with both options, and with neither. Results are verified first. With --save, each line is
appended to results/card.jsonl as soon as it is complete, so that an interrupted run loses no lines.
`python -m benchmarks.report` shows the numbers that arithmetic predicts next to the measured ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from benchmarks.keep import flatten
from benchmarks.store import Line, append
from difflogic.bench import cases
from difflogic.bench.engines import Bench, open_benches
from difflogic.bench.machine import stamp
from difflogic.bench.runner import Effort, measure
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.engine import GpuEngine

CASES = ("train/checkerboard", "population/64")
EFFORT = Effort(rounds=5, memory=False)
VARIANTS = {
    "baked, trusted": (True, True),
    "plain": (False, False),
    "baked": (True, False),
    "trusted": (False, True),
}
"""Values of `bakes_sizes` and `trusts_kernels` by variant; training on a hardware GPU uses the first variant."""


def rates(bench: Bench) -> Line:
    """Return a line for a results file with the rates, limits and features of the device."""
    adapter = select_adapter()
    about = {"limits": adapter.limits, "features": list(adapter.features)}
    return {"case": "rates", "contender": "device", **bench.to_dict(), **about, **stamp()}


def variants(bench: Bench) -> list[Bench]:
    """Return an engine for each variant, each with a separate device."""
    adapter = select_adapter()
    benches = []
    for name, (bakes, trusts) in VARIANTS.items():
        device = GpuDevice(adapter)
        device.bakes_sizes, device.trusts_kernels = bakes, trusts
        benches.append(replace(bench, name=name, engine=GpuEngine(device)))
    return benches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--any", action="store_true", help="also a software adapter")
    parser.add_argument("--case", dest="patterns", action="append", help=f"a case of `difflogic bench` {CASES}")
    parser.add_argument("--save", action="store_true", help="append to results/card.jsonl")
    options = parser.parse_args()
    (bench,) = open_benches(["gpu"], require_hardware=not options.any)

    def keep(lines: list[Line]) -> None:
        for line in lines:
            print(json.dumps(line))
        if options.save:
            append("card", lines)

    keep([rates(bench)])
    for case in cases.select(options.patterns or CASES, quick=False):
        results = measure([case], variants(bench), EFFORT, lambda text: print(text, file=sys.stderr))
        keep([line | {"contender": line["engine"], "engine": "gpu"} for line in flatten(results)])
        if results.lists("stopped"):
            raise KeyboardInterrupt


if __name__ == "__main__":
    main()
