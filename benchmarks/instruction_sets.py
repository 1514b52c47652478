"""Compare this processor's instruction set with smaller instruction sets that many machines have.

    python -m benchmarks.instruction_sets --save

The simulator, the train step and the rival in C are compiled for each instruction set, and run in separate processes.
Results are verified before they are timed. With --save, lines are appended to simulate, rivals and bench in results/.

    python -m benchmarks.instruction_sets --arm

This command measures no time. It compiles the simulator's inner loop for several processors, including ARM processors
with NEON, and counts all instructions, arithmetic instructions, and spills and reloads of registers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from llvmlite import binding

from benchmarks.arithmetic import counted
from benchmarks.simulate import CIRCUIT, SIDE
from benchmarks.store import CHECKOUT
from difflogic.cpu.engine import vector_unit
from difflogic.engine.simulation import SimulationSpec
from difflogic.model import netlist_json

X86_64_V2 = "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt"
SETS = {
    "AVX-512": {},
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": f"{X86_64_V2},+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+f16c",
    },
    "SSE4.2": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": X86_64_V2},
}
"""Environment variables by name of the instruction set; empty for the set of this machine."""
CASES = ("train/checkerboard", "train/game-of-life", "hard/checkerboard")
TARGETS = (
    ("x86_64-unknown-linux-gnu", "znver4", "+avx512f"),
    ("x86_64-unknown-linux-gnu", "haswell", "+avx2"),
    ("x86_64-unknown-linux-gnu", "nehalem", "+sse2"),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon"),
    ("aarch64-unknown-linux-gnu", "apple-m1", "+neon"),
)


def measure(rounds: int, save: bool) -> None:
    """Measure the instruction set of this machine, and all smaller sets."""
    names = list(SETS)
    if vector_unit() not in names:
        raise SystemExit(f"Expected a processor with one of {', '.join(names)}, got {vector_unit()}: see --arm.")
    kept = ["--save"] if save else []
    for name in names[names.index(vector_unit()) :]:
        environment = {**os.environ, **({} if name == vector_unit() else SETS[name])}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "measured.json"
            cases = [option for case in CASES for option in ("--case", case)]
            bench = ["difflogic.cli.main", "bench", "--engine", "cpu", *cases, "--rounds", rounds, "--out", file]
            rivals = ["benchmarks.rivals", "difflogic", "in_c", "--rounds", rounds, *kept]
            commands = [["benchmarks.simulate", "--rounds", rounds, *kept], rivals, bench]
            commands += [["benchmarks.keep", file]] if save else []
            for command in commands:
                print(f"{name}: {command[0]}", flush=True)
                subprocess.run([sys.executable, "-m", *map(str, command)], env=environment, cwd=CHECKOUT, check=True)


def count() -> Iterator[str]:
    """Yield a line of text per processor with the instructions of the loop over rows."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    spec = SimulationSpec(netlist_json.load(CIRCUIT), SIDE, SIDE)
    for triple, name, features in TARGETS:
        (lines, computing, of_stack), cells = counted(spec, triple, name, features)
        yield (
            f"{name}: {cells} cells a turn, {len(lines)} instructions, {computing} that compute, {of_stack} of the "
            f"stack; {256 * computing / cells:.1f} computing for 256 cells"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", action="store_true", help="append to the results")
    parser.add_argument("--arm", action="store_true", help="compile and count alone")
    options = parser.parse_args()
    if options.arm:
        print(*count(), sep="\n")
    else:
        measure(options.rounds, options.save)


if __name__ == "__main__":
    main()
