"""Compute checksums of all results of difflogic, to show that a change of the code changes no bit.

    python -m benchmarks.truth --out before.json
    python -m benchmarks.truth --compare before.json      # exit code 1 if any value differs

The script trains every preset for a few epochs on each engine, and runs growth, hardening, searches, pools, damage,
populations, restarts, resuming, simplification, exports and simulation. It only calls the command `difflogic` and reads
its files and JSON output: checkpoints tensor by tensor, metrics column by column, and other files as one value. Times
are excluded. Results of the engines `cpu` and `reference` are compared only on the same processor and packages, those
of `gpu` only on the same adapter and driver; results of `exact` are equal on all machines.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from llvmlite import binding
from safetensors.numpy import load_file

FORMAT = "difflogic-truth"
COMMAND = Path(sys.executable).with_name("difflogic")
LIFE = Path(__file__).parent / "circuits" / "life.json"
NAMES = ("c", "verilog", "vhdl", "blif", "aiger", "svg", "digitaljs", "html", "wgsl", "numpy")
FORMATS = " ".join(f"--format {name}" for name in NAMES)
VERSION = re.compile(rb"difflogic \d[\w.]*")
"""Pattern of the version in exports."""
SHOWN = 60
"""Maximum number of characters of a value in the file; a longer one is replaced by a checksum."""
SHOWN_DIFFERENCES = 100

TIMES = {"seconds", "created", "started", "finished", "elapsed", "rate", "took", "process", "commit", "difflogic"}
"""Names of fields that may differ between two runs of the same code, besides names that end in `_s`."""
PASSED_OVER = {".lock", "manifest.json"}

SHORT = {
    "cpu": "--epochs 12 --eval-interval 5",
    "gpu": "--epochs 3 --eval-interval 2 --set train.probes=8",
    "reference": "--epochs 2 --eval-interval 2 --batch 1 --set train.probes=4",
}
"""Options of short trainings by engine; `POOLS` has options of presets with a pool."""
POOLS = {"heart-persistent": "--batch 4"}
HARDENED = "--set hardening.share=0.5 --set hardening.begin=1 --set hardening.end=4 --set search.begin=4"

CPU = [
    "train game-of-life --recipe robust --epochs 1200 --stop-when-solved --out life",
    "train game-of-life --rule B36/S23 --epochs 60 --eval-interval 20 --out highlife",
    "train checkerboard-small --recipe robust --epochs 40 --eval-interval 10 --out grown",
    "train lizard --recipe robust --epochs 12 --eval-interval 3 --out searched",
    "train checkerboard --epochs 300 --out board",
    "train heart-steady --epochs 300 --out steady",
    "train checkerboard-async --population 3 --epochs 6 --eval-interval 3 --out several",
    "train heart-persistent --population 2 --epochs 5 --eval-interval 4 --out pools",
    "train heart-persistent --epochs 5 --eval-interval 4 --out resumed",
    "train --resume resumed --epochs 9",
    "train heart-steady --restarts 2 --epochs 60 --eval-interval 5 --out again",
    "train heart-steady --init-from again/attempt-1 --epochs 5 --out from-another",
    "train lizard --target drawing.pgm --start seed --epochs 4 --out own",
    "harden board --epochs 6 --eval-interval 3 --out hardened",
    "harden highlife --search --epochs 6 --eval-interval 3 --out mended",
    "evaluate life --quick --json",
    "evaluate board --quick --json",
    "evaluate pools --quick --json",
    "evaluate own --quick --json",
    "simplify life --json -o life-small.json",
    "simplify board --json -o board-small.json",
    "simplify steady --from-start --json -o steady-small.json",
    "simplify board --task --json -o board-task.json",
    f"export board {FORMATS} --out exports",
    "render board -o film.gif --steps 30 --damage 4 --damage-steps 1-9",
    "render several -o strip.png --at 0,5,10",
    "render board -o gates.png --what gates",
]
GPU = [
    "train checkerboard-small --recipe robust --epochs 8 --eval-interval 4 --set train.probes=4 --out grown",
    f"train heart-steady --epochs 8 --eval-interval 2 --set train.probes=4 {HARDENED} --out searched",
    "train heart-persistent --population 2 --epochs 3 --eval-interval 2 --out several",
    "train heart-steady --epochs 3 --eval-interval 2 --out resumed",
    "train --resume resumed --epochs 5",
    "harden resumed --search --epochs 3 --eval-interval 2 --out mended",
    "doctor lizard --json",
    "doctor checkerboard --population 4 --json",
]
REFERENCE = [
    f"train heart-steady --epochs 6 --eval-interval 2 --set train.probes=4 {HARDENED} --out searched",
    "train game-of-life --recipe robust --population 2 --epochs 6 --eval-interval 3 --out several",
    "train heart-steady --epochs 2 --eval-interval 2 --set train.probes=4 --out resumed",
    "train --resume resumed --epochs 3",
]
EXACT = [
    "presets --json",
    "init lizard -o lizard.toml",
    "simplify given.json --json -o life.json",
    "prove given.json life.json --judge difflogic --json",
    f"export given.json {FORMATS} --format golly --name life --out exports",
    "simulate given.json --size 130x67 --steps 40 --engine reference --json -o reference.npy",
    "simulate given.json --size 130x67 --steps 400 --engine numba --json -o numba.npy",
    "simulate given.json --size 130x67 --steps 40 --engine gpu --json -o gpu.npy",
    "simulate given.json --size 130x67 --steps 40 --engine numba --fire-rate 0.6 --json -o asynchronous.npy",
    "simulate given.json --size 64x64 --steps 9 --start seed --engine numba --every 3 --json -o film.npy",
]


def main() -> int:
    parser = argparse.ArgumentParser(description="Checksums of what difflogic computes.")
    parser.add_argument("--out", type=Path, help="write them to this file")
    parser.add_argument("--compare", type=Path, help="say what differs from this file; exit code 1 if anything does")
    asked = parser.parse_args()
    if asked.out is None and asked.compare is None:
        parser.error("nothing would come of it: give --out FILE, --compare FILE or both")
    before = None if asked.compare is None else read(asked.compare)
    now = {"format": FORMAT, "on": machines(), "found": {}}
    now["found"] = computed(now["on"])
    if asked.out is not None:
        asked.out.write_text(json.dumps(now, indent=1) + "\n")
        print(f"{len(now['found'])} checksums: {asked.out}")
    return 0 if before is None else compared(before, now)


def read(path: Path) -> dict[str, Any]:
    truth = json.loads(path.read_text())
    if truth.get("format") != FORMAT:
        sys.exit(f"{path} is no file of benchmarks.truth.")
    return truth


def machines() -> dict[str, str]:
    """Return the hardware and driver on which each engine's results depend; no `gpu` without an adapter."""
    features = hashlib.sha256(binding.get_host_cpu_features().flatten().encode()).hexdigest()[:8]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "pillow", "matplotlib"))
    here = f"{platform.machine()} {binding.get_host_cpu_name()} {features}, {versions}"
    adapters = json.loads(called("devices --json", Path.cwd()).stdout or "[]")
    found = {"exact": "", "cpu": here, "reference": here}
    if adapters:
        names = ", ".join(str(adapters[0][name]) for name in ("name", "backend", "driver"))
        found["gpu"] = f"{names}, wgpu {metadata.version('wgpu')}"
    return found


def called(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, *shlex.split(line)]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def computed(engines: Iterable[str]) -> dict[str, str]:
    """Return all values by `engine/file:part` or `engine/$ command:part`, computed on two engines at a time."""
    root = Path(tempfile.mkdtemp(prefix="difflogic-truth-"))
    try:
        # Child processes do the work, and two of them use two cores.
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda engine: dict(lane(root, engine, "gpu" in engines)), engines))
    finally:
        shutil.rmtree(root)
    return {key: value for part in parts for key, value in part.items()}


def lane(root: Path, engine: str, gpu: bool) -> Iterator[tuple[str, str]]:
    folder = root / engine
    folder.mkdir()
    shutil.copy(LIFE, folder / "given.json")
    (folder / "drawing.pgm").write_text("P2 7 6 1 " + " ".join(str(number * number % 5 % 2) for number in range(42)))
    for line in lines(engine, gpu):
        done = called(line, folder, DIFFLOGIC_CACHE_DIR=str(root / "cache"))
        print(f"{engine}: {line}: {done.returncode}", file=sys.stderr)
        yield f"{engine}/$ {line}", f"exit code {done.returncode}"
        # The text output of a command may change, but its JSON output may not.
        if "--json" in line:
            yield from rows(f"{engine}/$ {line}", documents(done.stdout))
        elif done.returncode:
            print(done.stderr, file=sys.stderr)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in PASSED_OVER:
            yield from parts_of(path, f"{engine}/{path.relative_to(folder)}")


def lines(engine: str, gpu: bool) -> Iterator[str]:
    """Yield the commands of an engine, in order."""
    if engine == "exact":
        yield from (line for line in EXACT if gpu or "--engine gpu" not in line)
        return
    # The command lists the presets, so that new presets are included.
    presets = [each["preset"] for each in documents(called("presets --json", Path.cwd()).stdout)]
    trained = [f"train {name} {SHORT[engine]} {POOLS.get(name, '')} --out {name}" for name in presets]
    for line in [*trained, *{"cpu": CPU, "gpu": GPU, "reference": REFERENCE}[engine]]:
        yield f"{line} --engine {engine}" if line.split()[0] in ("train", "harden", "evaluate", "render") else line


def parts_of(path: Path, key: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a file."""
    if path.suffix == ".safetensors":
        for name, array in sorted(load_file(path).items()):
            if not is_time(name):
                yield f"{key}:{name}", f"{array.dtype}{list(array.shape)} {checksum(array.tobytes())}"
    elif path.suffix == ".csv":
        table = list(csv.DictReader(path.read_text().splitlines()))
        for name in table[0] if table else ():
            if not is_time(name):
                yield f"{key}:{name}", checksum("\n".join(row[name] for row in table).encode())
    elif path.suffix in (".json", ".jsonl"):
        yield from rows(key, documents(path.read_text()))
    elif path.name == "summary.txt":
        yield key, checksum(re.sub(r"(?m)^Time:.*$", "", path.read_text()).encode())
    else:
        # The version in an export is not a result.
        yield key, checksum(VERSION.sub(b"difflogic", path.read_bytes()))


def documents(text: str) -> list[Any]:
    """Return the JSON document of a text, or the documents in its lines."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def rows(key: str, found: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield keys and values: of each field of a single document, of each test of an evaluation, or of all documents.

    Progress events are excluded, since their number depends on time.
    """
    told = [timeless(each) for each in found if not (isinstance(each, dict) and each.get("event") == "progress")]
    document = told[0] if len(told) == 1 else told
    parts = document if isinstance(document, dict) else {"": document}
    # Tests are identified by their keys, so that an additional test does not change those after it.
    tests = {test["key"]: test for test in parts.pop("measures", ())}
    for name, value in (parts | tests).items():
        text = json.dumps(value, sort_keys=True)
        yield f"{key}:{name}", text if len(text) <= SHOWN else checksum(text.encode())


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: timeless(part) for name, part in value.items() if not is_time(name)}
    return [timeless(part) for part in value] if isinstance(value, list) else value


def is_time(name: str) -> bool:
    return name in TIMES or name.endswith(("_s", "_per_second"))


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def compared(before: dict[str, Any], now: dict[str, Any]) -> int:
    """Print all differences; return exit code 1 if there are any."""
    # Bits are reproducible only on the same processor, or the same adapter and driver. Others compare only `exact`.
    same = [engine for engine, where in now["on"].items() if before["on"].get(engine) == where]
    for engine in sorted({*before["on"], *now["on"]} - set(same)):
        there, here = (truth["on"].get(engine, "nowhere") for truth in (before, now))
        print(f"{engine}: not compared: before on {there}, now on {here}.")
    old, new = ({k: v for k, v in truth["found"].items() if k.split("/")[0] in same} for truth in (before, now))
    different = [key for key in old | new if old.get(key) != new.get(key)]
    for key in different[:SHOWN_DIFFERENCES]:
        print(f"{key}: before {old.get(key, 'absent')}, now {new.get(key, 'absent')}")
    print(f"{len(old | new)} values compared ({', '.join(same)}): {len(different) or 'none'} differ.")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
