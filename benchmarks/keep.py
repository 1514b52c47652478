"""Append the results of `difflogic bench` to results/bench.jsonl.

python -m benchmarks.keep measured.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.store import Line, append
from difflogic.bench.results import Results

LEFT_OUT = ("profile", "variant")
"""Keys of a case that are not stored as they are; `flatten` stores the kernel times of the profile, and the variant."""
DIGITS = 6
"""Number of stored significant digits, more than the precision of a measurement."""


def flatten(results: Results) -> list[Line]:
    """Return a line per case and engine, each with the machine and the device of the measurement."""
    here = {name: results.data[name] for name in ("date", "commit", "machine", "versions")}
    lines = []
    for case in results.cases:
        engine = results.engines[case["engine"]]
        kept = {key: value for key, value in case.items() if key not in LEFT_OUT}
        if "profile" in case:
            kept["kernels_ms"] = {part["name"]: part["ms"] for part in case["profile"]["parts"]}
        # A line must be complete: years later, readers have no other file.
        device = {key: engine[key] for key in ("adapter", "backend", "driver", "software", "copy_gb_per_s")}
        lines.append(_rounded({**kept, **device, "variant": case["variant"]}) | here)
    return lines


def _rounded(line: Line) -> Line:
    return {key: _short(value) for key, value in line.items()}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(each) for each in value]
    if isinstance(value, dict):
        return _rounded(value)
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    append("bench", flatten(Results.load(parser.parse_args().file)))


if __name__ == "__main__":
    main()
