"""What this processor does with its own instruction set, and with those below it that many machines have instead.

    python -m benchmarks.instruction_sets --save

The simulator and the train step are compiled for a named processor, and so is the C beside them. Each set has processes
of its own, which verify before they time; with --save their lines go to results/: simulate, rivals and bench.

    python -m benchmarks.instruction_sets --arm

takes no time. It compiles the simulator's inner loop for several processors, those with NEON among them, and counts
what a row of cells takes: instructions, those that compute, and those that put a register on the stack or fetch it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from llvmlite import binding

from benchmarks.simulate import CIRCUIT
from benchmarks.store import CHECKOUT
from difflogic.cpu.codegen.row_code import row_module
from difflogic.cpu.engine import vector_unit
from difflogic.model import netlist_json
from difflogic.model.column_program import column_program

X86_64_V2 = "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt"
SETS = {
    "AVX-512": {},
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": f"{X86_64_V2},+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+movbe,+f16c",
    },
    "SSE4.2": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": X86_64_V2},
}
"""By the name that the engine has for it, the environment; of the machine's own set nothing is said."""
CASES = ("train/checkerboard", "train/game-of-life", "hard/checkerboard")
TARGETS = (
    ("x86_64-unknown-linux-gnu", "znver4", "+avx512f"),
    ("x86_64-unknown-linux-gnu", "haswell", "+avx2"),
    ("x86_64-unknown-linux-gnu", "nehalem", "+sse2"),
    ("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon"),
    ("aarch64-unknown-linux-gnu", "apple-m1", "+neon"),
)
STRIDE = 80
"""Words from one channel to the next of 4096 cells."""


def measure(rounds: int, save: bool) -> None:
    """Measure this machine's set and those below it."""
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
    """A line per processor: what the loop over rows is made of."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    program = column_program(netlist_json.load(CIRCUIT))
    for triple, name, features in TARGETS:
        module = row_module(program, features, STRIDE, masked=False)
        machine = binding.Target.from_triple(triple).create_target_machine(cpu=name, opt=2)
        module.triple = triple
        body = inner_loop(machine.emit_assembly(binding.parse_assembly(str(module))))
        vectors = [line for line in body if re.search(r"[xyz]mm\d|\b[vq]\d", line)]
        moved = [line for line in vectors if re.match(r"v?mov|ld|st", line)]
        stack = [line for line in body if re.search(r"%r[sb]p|\[sp", line)]
        cells = 64 * int(re.search(r"<(\d+) x i64>", str(module))[1])
        computed = len(vectors) - len(moved)
        yield (
            f"{name}: {cells} cells a turn, {len(body)} instructions, {computed} that compute, {len(stack)} of the "
            f"stack; {256 * computed / cells:.1f} computing for 256 cells"
        )


def inner_loop(assembly: str) -> list[str]:
    """The instructions of the shortest loop."""
    lines, places, loops = assembly.splitlines(), {}, []
    for at, line in enumerate(lines):
        if label := re.match(r"(\.?L\w+):", line):
            places[label[1]] = at
        jump = re.match(r"\s+(?:j|b|cb|tb)[\w.]*\s+.*?(\.?L\w+)$", line)
        if jump and jump[1] in places:
            loops.append(lines[places[jump[1]] : at + 1])
    return [line.strip() for line in min(loops, key=len) if re.match(r"\s+[a-z]", line)]


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
