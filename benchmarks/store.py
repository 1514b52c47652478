"""Read and append results files, with a line of JSON per measurement, and insert generated text into pages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = Path(os.environ.get("DIFFLOGIC_RESULTS") or CHECKOUT / "benchmarks" / "results")
"""Folder of the results files; the variable DIFFLOGIC_RESULTS sets another folder, to try a script."""

END = "<!-- end of generated text -->"

Line = dict[str, Any]


def load(name: str) -> list[Line]:
    """Return the lines of a results file, oldest first; an empty list if there is no such file."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append(name: str, lines: list[Line]) -> None:
    """Append lines to a results file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Lines are never changed or removed; reports use the newest line of each kind.
    with (RESULTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")


def inserted(page: str, begin: str, text: str) -> str:
    """Return the page with `text` between the line `begin` and the next END."""
    before, found, rest = page.partition(begin)
    assert found, f"the page has no place for {begin}"
    return f"{before}{begin}\n{text}\n\n{END}{rest.partition(END)[2]}"
