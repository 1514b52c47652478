"""Compare two runs: all arrays of the checkpoint bit by bit, and all rows of the metrics except times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from difflogic.runs import checkpoint, checksummed, jsonl
from difflogic.runs.journal import JSONL

TIMES = "elapsed_s"


def differences(run: Path, other: Path) -> list[str]:
    """Return descriptions of the differences between two run folders; empty if the runs are equal."""
    found = []
    left, right = _arrays(run), _arrays(other)
    found += [f"array {name}" for name in sorted(left.keys() | right.keys()) if left.get(name) != right.get(name)]
    rows = _rows(run), _rows(other)
    if len(rows[0]) != len(rows[1]):
        found.append(f"{len(rows[0])} rows instead of {len(rows[1])}")
    found += [f"row {number}" for number, (a, b) in enumerate(zip(*rows, strict=False), 1) if a != b]
    if _columns(run) != _columns(other):
        found.append("metrics.csv")
    if (run / "circuit.json").read_bytes() != (other / "circuit.json").read_bytes():
        found.append("circuit.json")
    return found


def _arrays(run: Path) -> dict[str, Any]:
    arrays = checksummed.decode((run / checkpoint.NAME).read_bytes())
    return {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items() if name != TIMES}


def _rows(run: Path) -> list[dict[str, Any]]:
    rows = jsonl.objects(run / JSONL)
    return [{name: value for name, value in row.items() if name != TIMES} for row in rows]


def _columns(run: Path) -> list[list[str]]:
    return [line.split(",")[:-1] for line in (run / "metrics.csv").read_text(encoding="utf-8").splitlines()]
