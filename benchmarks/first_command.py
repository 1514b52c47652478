"""The README's first command on a GPU, as a newcomer's machine runs it, and where its time goes.

    python -m benchmarks.first_command --save
    python -m benchmarks.first_command --beside CHECKOUT    # in turns with another version, in the .venv that it has

In a home that is empty nothing is known of the adapter, and no shader is compiled. The second run finds what the first
one left there: the adapter's verdict, and what the driver keeps of shaders. Phases are told by Python's profiler.
"""

from __future__ import annotations

import argparse
import os
import pstats
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
    "self-test": ("devices/selftest.py", "require"),
    "opening": ("devices/open.py", "_open_gpu"),
    "steps": ("train/automata.py", "iterate"),
    "evaluations": ("train/automata.py", "report"),
    "files and pictures": ("train/automata.py", "end"),
}
"""By what is said of each, the function whose time it is. On an empty home the first two compile the shaders."""


def run(checkout: Path, home: Path, out: Path) -> dict[str, float]:
    """Seconds of the command in this home, whole and by phase."""
    profile = home / "profile"
    # A driver may keep its shaders elsewhere than at home, as Mesa does where it is told to.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MESA_", "XDG_"))}
    python = [checkout / ".venv/bin/python", "-m", "cProfile", "-o", profile, "-m", "difflogic.cli.main"]
    began = time.perf_counter()
    subprocess.run(
        [*map(str, python), *COMMAND, "--out", str(out)],
        cwd=checkout, env={**environment, "HOME": str(home)}, check=True, capture_output=True,
    )  # fmt: skip
    whole = time.perf_counter() - began
    stats = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
    found = {
        phase: sum(each[3] for (path, _, name), each in stats.items() if path.endswith(file) and name == function)
        for phase, (file, function) in PHASES.items()
    }
    found["opening"] -= found["self-test"]
    return {"whole": whole, **found, "the rest": whole - sum(found.values())}


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
