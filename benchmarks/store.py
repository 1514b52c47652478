"""The results files, a line of JSON for each that was measured, and the pages that show them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
RESULTS = Path(os.environ.get("DIFFLOGIC_RESULTS") or CHECKOUT / "benchmarks" / "results")
"""Folder of the results files; the variable names another one for a trial of a script."""

END = "<!-- end of generated text -->"

Line = dict[str, Any]


def load(name: str) -> list[Line]:
    """The lines of a results file, oldest first; none where there is no such file."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append(name: str, lines: list[Line]) -> None:
    """Add lines at the end."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Only ever appended: what was measured stays, and reports take the newest line of each kind.
    with (RESULTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")


def inserted(page: str, begin: str, text: str) -> str:
    """The page with other text between the line `begin` and the next END."""
    before, found, rest = page.partition(begin)
    assert found, f"the page has no place for {begin}"
    return f"{before}{begin}\n{text}\n\n{END}{rest.partition(END)[2]}"
