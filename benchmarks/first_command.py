"""Time the README's first command on a GPU, in total and by phase, as on a new user's machine.

    python -m benchmarks.first_command --save
    python -m benchmarks.first_command --beside CHECKOUT    # alternately with another version, in the .venv of CHECKOUT

The first run has an empty home folder: no self-test result of the adapter, and no compiled shaders. The second run
uses the self-test result and the driver's shader cache of the first run. A phase is the time in one function.
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
"""Timed function of each phase. With an empty home folder, the first two phases compile the shaders."""
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
"""Program that runs the command and times these functions. Python's profiler lost some functions with Python 3.12."""


def run(checkout: Path, home: Path, out: Path) -> dict[str, float]:
    """Run the command with the home folder `home`; return its seconds, in total and by phase."""
    told = home / "seconds.json"
    # Environment variables may set another folder for a driver's shader cache, such as those of Mesa.
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
    """Return medians over alternating rounds, by checkout and by state of the home folder."""
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
