"""What the gates became, evaluation by evaluation: `gates.jsonl` beside a job's run folder.

    {"epoch": 50, "layers": [{"name": "perceive 0", "counts": [16 numbers]}, ...]}

Counts are by most probable gate, in the order of `difflogic.gates.NAMES`; of a population, the best model's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from difflogic import files
from difflogic.train.evaluation.census import Layer


class GateHistory:
    """The file, appended to. Methods raise OSError."""

    def __init__(self, path: Path, epoch: int) -> None:
        """Goes on after `epoch`: later lines, of a try that was lost, are cut."""
        self._path = path
        kept = [line for line in _lines(path) if json.loads(line)["epoch"] <= epoch]
        files.write_atomically(path, b"".join(kept))

    def append(self, epoch: int, layers: Sequence[Layer]) -> None:
        counts = [{"name": layer.name, "counts": layer.kinds} for layer in layers]
        line = json.dumps({"epoch": epoch, "layers": counts}) + "\n"
        with self._path.open("ab", buffering=0) as file:
            files.write_all(file.fileno(), line.encode())


def _lines(path: Path) -> list[bytes]:
    """Whole lines only: a killed process may have left a part of one."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith(b"\n")]
