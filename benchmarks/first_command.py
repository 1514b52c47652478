"""The README's first command on a GPU, as a newcomer's machine runs it, and where its time goes.

    python -m benchmarks.first_command --save
    python -m benchmarks.first_command --beside CHECKOUT    # in turns with another version, in the .venv that it has

In a home that is empty nothing is known of the adapter, and no shader is compiled. The second run finds what the first
one left there: the adapter's self-test result, and the driver's shader cache. Phases are the time in some functions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.store import CHECKOUT, Line, append
from difflogic.bench.machine import stamp
from difflogic.gpu.adapter import select_adapter

COMMAND = ("train-checkerboard", "--gpu", "--epochs", "500")
PHASES = {
    "self-test": "devices.selftest:require",
    "opening": "devices.open:_open_gpu",
    "steps": "train.automata:Automata.iterate",
    "evaluations": "train.automata:Automata.report",
    "files and pictures": "train.automata:Automata.end",
}
"""Timed function of each phase. With an empty home the first two compile the shaders."""
TIMED = """
import atexit, functools, importlib, json, sys, time
target, phases, *sys.argv = sys.argv[1:]
seconds = {}

def timed(phase, function):
    @functools.wraps(function)
    def wrapper(*given, **named):
        began = time.perf_counter()
        try:
            return function(*given, **named)
        finally:
            seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - began
    return wrapper

for phase, place in json.loads(phases).items():
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(f"difflogic.{module}"))
    setattr(owner, name, timed(phase, getattr(owner, name)))
atexit.register(lambda: json.dump(seconds, open(target, "w")))
from difflogic.cli.main import main
main()
"""
"""The command with these functions timed. Python's profiler lost some of them with Python 3.12."""


def run(checkout: Path, home: Path, out: Path) -> dict[str, float]:
    """Seconds of the command in this home, whole and by phase."""
    told = home / "seconds.json"
    # A driver may keep its shaders elsewhere than at home, as Mesa does where it is told to.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MESA_", "XDG_"))}
    python = [checkout / ".venv/bin/python", "-c", TIMED, told, json.dumps(PHASES), "difflogic"]
    began = time.perf_counter()
    subprocess.run(
        [*map(str, python), *COMMAND, "--out", str(out)],
        cwd=checkout, env={**environment, "HOME": str(home)}, check=True, capture_output=True,
    )  # fmt: skip
    whole = time.perf_counter() - began
    found = json.loads(told.read_text())
    if missing := set(PHASES) - set(found) - {"self-test"}:
        raise SystemExit(f"Never called: {', '.join(sorted(missing))}.")
    found["self-test"] = found.get("self-test", 0.0)
    found["opening"] -= found["self-test"]
    return {"whole": whole, **{phase: found[phase] for phase in PHASES}, "the rest": whole - sum(found.values())}


def measure(checkouts: Sequence[Path], rounds: int) -> dict[tuple[Path, str], dict[str, float]]:
    """Medians of rounds in turns, by checkout and by the state of the home."""
    runs: dict[tuple[Path, str], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for checkout in checkouts:
            with tempfile.TemporaryDirectory() as home:
                for state in ("empty", "second"):
                    seconds = run(checkout, Path(home), Path(home) / f"run-{state}")
                    print(checkout.name, state, *(f"{name} {value:.1f}" for name, value in seconds.items()), flush=True)
                    runs.setdefault((checkout, state), []).append(seconds)
    return {key: {phase: median(each[phase] for each in found) for phase in found[0]} for key, found in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, help="a checkout of another version")
    parser.add_argument("--save", action="store_true", help="append to results/first_command.jsonl")
    options = parser.parse_args()
    here, adapter = stamp(), select_adapter()
    measured = measure([CHECKOUT, *filter(None, [options.beside])], options.rounds)
    device = {"engine": "gpu", "adapter": adapter.name, "driver": adapter.driver, "software": adapter.software}
    lines: list[Line] = []
    for (checkout, state), seconds in measured.items():
        if checkout == CHECKOUT:
            beside = measured.get((options.beside, state)) if options.beside else None
            ratio = None if beside is None else round(seconds["whole"] / beside["whole"], 3)
            rounded = {phase: round(value, 2) for phase, value in seconds.items()}
            found = {"home": state, "seconds": rounded, "ratio": ratio, "rounds": options.rounds}
            lines.append({**found, **device, **here})
    print(*lines, sep="\n")
    if options.save:
        append("first_command", lines)


if __name__ == "__main__":
    main()
