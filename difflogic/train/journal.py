"""The metrics of a run, one row per epoch: `metrics.jsonl` and `metrics.csv`, appended as they arrive.

`soft_loss` is the sum over the epoch's own batch; `train_hard_loss` the hard circuit's on the same
batch; `hard_loss` its wrong values on all probes, `accuracy` its share of right ones (0 to 1), `best`
the lowest `hard_loss` so far. These four are filled at evaluation epochs only and judge the circuit
after the epoch's update. `elapsed_s`: seconds of training when the row was read back. Floats are
written so that they read back equal; a soft loss that is not finite is null, in CSV `nan`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from difflogic.engine import EpochMetrics, Evaluation
from difflogic.files import write_all, write_atomically

JSONL = "metrics.jsonl"
CSV = "metrics.csv"
COLUMNS = ("epoch", "soft_loss", "train_hard_loss", "hard_loss", "accuracy", "best", "elapsed_s")


@dataclass(frozen=True)
class Row:
    """The metrics of one epoch; see the module's text."""

    epoch: int
    soft_loss: float
    train_hard_loss: int | None
    hard_loss: int | None
    accuracy: float | None
    best: int | None
    elapsed_s: float
    skipped: bool
    """True where the gradient was not finite and the step was not taken. Not a CSV column."""

    @classmethod
    def of(cls, metrics: EpochMetrics, elapsed_s: float) -> Row:
        """A row without evaluation."""
        loss = metrics.soft_loss if math.isfinite(metrics.soft_loss) else math.nan
        return cls(metrics.epoch, loss, None, None, None, None, round(elapsed_s, 3), metrics.skipped)

    def evaluated(self, result: Evaluation, best: int) -> Row:
        """This row with the hard columns filled."""
        return dataclasses.replace(
            self,
            train_hard_loss=result.train_hard_loss,
            hard_loss=result.hard_loss,
            accuracy=result.accuracy,
            best=best,
        )

    def unevaluated(self) -> Row:
        """This row with the hard columns empty."""
        return dataclasses.replace(self, train_hard_loss=None, hard_loss=None, accuracy=None, best=None)

    def to_dict(self) -> dict[str, int | float | None]:
        """As JSON holds it: null for what is missing or not finite."""
        row = dataclasses.asdict(self)
        return row | {"soft_loss": None if math.isnan(self.soft_loss) else self.soft_loss}

    def json_line(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def csv_line(self) -> str:
        values = (getattr(self, name) for name in COLUMNS)
        return ",".join("" if value is None else repr(value) for value in values) + "\n"


class Journal:
    """The two files, open for appending. Its methods raise OSError."""

    def __init__(self, folder: Path, rows: Iterable[Row] = ()) -> None:
        """Both files anew, holding `rows` and nothing else: what came after them is cut."""
        self._descriptors: list[int] = []
        texts = _texts(rows)
        for name, text in ((JSONL, texts[0]), (CSV, ",".join(COLUMNS) + "\n" + texts[1])):
            write_atomically(folder / name, text.encode())
            self._descriptors.append(os.open(folder / name, os.O_WRONLY | os.O_APPEND))

    def append(self, rows: Iterable[Row]) -> None:
        for descriptor, text in zip(self._descriptors, _texts(rows), strict=True):
            write_all(descriptor, text.encode())

    def sync(self) -> None:
        """Flush to the disk: called before each checkpoint, so that none is ahead of its metrics."""
        for descriptor in self._descriptors:
            os.fsync(descriptor)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def read_rows(folder: Path) -> list[Row]:
    """The rows of `metrics.jsonl` up to the first that is damaged or out of order; [] without the file.

    Raises OSError where the file exists and cannot be read.
    """
    path = folder / JSONL
    rows: list[Row] = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        row = _parse(line)
        if row is None or row.epoch != len(rows) + 1:
            break
        rows.append(row)
    return rows


def _parse(line: bytes) -> Row | None:
    """A row, or None for a line that a killed process left unfinished."""
    if not line.endswith(b"\n"):
        return None
    try:
        values = json.loads(line)
        return Row(**values | {"soft_loss": math.nan if values["soft_loss"] is None else values["soft_loss"]})
    except (ValueError, TypeError, KeyError):
        return None


def _texts(rows: Iterable[Row]) -> tuple[str, str]:
    """JSON lines and CSV lines."""
    rows = list(rows)
    return "".join(row.json_line() for row in rows), "".join(row.csv_line() for row in rows)
