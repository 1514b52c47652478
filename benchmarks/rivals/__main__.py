"""Compare the train steps of the engines and of their rivals in one run on this machine.

    python -m benchmarks.rivals                    # on the processor
    python -m benchmarks.rivals --gpu              # WGSL and CUDA on the same GPU
    python -m benchmarks.rivals --save             # append lines to results/rivals.jsonl

All train the paper's checkerboard (batch 2, 20 steps): initial states, soft forward and backward pass, AdamW, and the
hard loss of the same batch. The engine also runs its 32 evaluation grids. Each contender is verified first: the first
soft loss must be the authors' 231.266, the first hard loss 256, and the second soft loss that of the reference. Then
the contenders are timed alternately, each in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from benchmarks.rivals.problem import Problem
from benchmarks.rivals.worker import CONTENDERS
from benchmarks.store import append
from difflogic.bench.machine import stamp
from difflogic.cpu.engine import vector_unit

ROUND_SECONDS = 1.0


@dataclass
class Process:
    """Worker process of a contender, with the times that it has measured."""

    name: str
    place: str
    command: list[str]
    seconds: list[float] = field(default_factory=list)
    per_round: int = 1

    def __post_init__(self) -> None:
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3"}
        if self.place == "cpu":
            environment |= {"JAX_PLATFORMS": "cpu"}
        self._child = subprocess.Popen(
            self.command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = self._answer()

    @property
    def failed(self) -> str | None:
        return self.ready.get("failed")

    def repeat(self, count: int) -> float:
        self._pipe(self._child.stdin).write(f"{count}\n")
        self._pipe(self._child.stdin).flush()
        return float(self._answer()["seconds"])

    def warm_up(self) -> None:
        self.repeat(1)
        self.per_round = max(1, round(ROUND_SECONDS / self.repeat(2)))

    def turn(self) -> None:
        self.seconds.append(self.repeat(self.per_round))

    def end(self) -> float | None:
        """End the worker, and return its peak memory in MB."""
        self._pipe(self._child.stdin).close()
        peak = None if self.failed else self._answer().get("peak_mb")
        self._child.wait()
        return peak

    def _answer(self) -> dict[str, Any]:
        line = self._pipe(self._child.stdout).readline()
        return json.loads(line) if line else {"failed": f"it ended with code {self._child.wait()}"}

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def run(names: list[str], place: str, rounds: int) -> list[dict[str, Any]]:
    """Return a line per contender that runs; Ctrl-C ends the run with the rounds measured so far."""
    expected = Problem.checkerboard().expected_losses()
    processes: list[Process] = []
    with suppress(KeyboardInterrupt):
        for name in names:
            print(f"... {name}", file=sys.stderr)
            command = [sys.executable, "-m", "benchmarks.rivals.worker", name, place, *map(str, expected)]
            process = Process(name, place, command)
            if process.failed:
                print(f"{name}: {process.failed}", file=sys.stderr)
                process.end()
            else:
                process.warm_up()
                processes.append(process)
        for _ in range(rounds):
            for process in processes:
                process.turn()
    here = stamp()
    return [_line(process, place) | here for process in processes if process.seconds]


def _line(process: Process, place: str) -> dict[str, Any]:
    ms = sorted(1e3 * seconds for seconds in process.seconds)
    return {
        "case": "rivals",
        "contender": process.name,
        "what": CONTENDERS[process.name],
        "place": place,
        "device": process.ready["device"],
        "vectors": vector_unit(),
        "median_ms": round(statistics.median(ms), 3),
        "min_ms": round(ms[0], 3),
        "max_ms": round(ms[-1], 3),
        "rounds": len(ms),
        "open_s": round(process.ready["open_s"], 1),
        "peak_mb": round(process.end() or 0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CONTENDERS)} (default: all)")
    parser.add_argument("--gpu", action="store_true", help="everything on the GPU")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", action="store_true", help="append to results/rivals.jsonl")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CONTENDERS):
        parser.error(f"unknown: {', '.join(unknown)}; expected {', '.join(CONTENDERS)}")
    if options.rounds < 1:
        parser.error(f"--rounds takes at least 1, got {options.rounds}")
    lines = run(options.names or list(CONTENDERS), "gpu" if options.gpu else "cpu", options.rounds)
    if not lines:
        raise SystemExit("Nothing could be measured.")
    ours = next((line["median_ms"] for line in lines if line["contender"] == "difflogic"), None)
    for line in lines:
        line["ratio_to_ours"] = None if ours is None else round(line["median_ms"] / ours, 2)
        ratio = "" if ours is None else f"{line['ratio_to_ours']:8.1f} times ours"
        print(f"{line['contender']:15} {line['median_ms']:9.2f} ms {ratio}  {line['peak_mb']:6} MB  {line['device']}")
    if options.save:
        append("rivals", lines)


if __name__ == "__main__":
    main()
