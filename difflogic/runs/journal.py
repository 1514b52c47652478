"""Reader and writer of the metrics of a run, one row per epoch: `metrics.jsonl` and `metrics.csv`.

`soft_loss` is the sum over the epoch's batch, `train_hard_loss` the hard circuit's loss on the same batch, and `gap`
their difference. `hard_loss` is the number of mismatches of the hard circuit on all evaluation grids, `accuracy` the
share of correct values (0 to 1), `best` the lowest `hard_loss` so far, `undecided` the number of gates in which no
function has a probability above 90 %. These six are set only in evaluation epochs and measure the circuit after the
epoch's update. `elapsed_s` is the training time so far in seconds. Floats are written exactly. A soft loss that is not
finite is null, in CSV `nan`. Epochs of a search (`difflogic.engine.search`) have no soft loss, and their batch is the
evaluation grids. A population's rows begin with a `seed`, and the rows of an epoch are in the order of the seeds.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from difflogic.engine.api import EpochMetrics, Evaluation
from difflogic.runs import jsonl
from difflogic.system.files import PLAIN, write_all, write_atomically

JSONL = "metrics.jsonl"
CSV = "metrics.csv"
COLUMNS = ("epoch", "soft_loss", "train_hard_loss", "hard_loss", "accuracy", "best", "gap", "undecided", "elapsed_s")


# All lines share one encoder for speed, since there is a line for each epoch and model.
_ENCODE = json.JSONEncoder(allow_nan=False, check_circular=False).encode


class MetricsLine:
    """Base class of metrics rows: `Row` for an epoch of an automaton, `PolicyRow` for an iteration of an agent."""

    columns: ClassVar[Sequence[str]]
    """Names of the columns of metrics.csv, without `seed`."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the row for a result of `to_dict`; `seed` is ignored if present. Raises TypeError or KeyError."""
        return cls(**{name: value for name, value in values.items() if name != "seed"})

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the row as a dictionary for JSON, with None for values that are missing or not finite."""
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in vars(self).items()}  # fmt: skip

    def json_line(self, seed: int | None = None) -> str:
        """Return the row as a line of JSON; `seed` is the member's seed, or None outside a population."""
        label = {} if seed is None else {"seed": seed}
        return _ENCODE(label | self.to_dict()) + "\n"

    def csv_line(self, seed: int | None = None) -> str:
        """Return the row as a line of CSV; `seed` is the member's seed, or None outside a population."""
        values = [*([] if seed is None else [seed]), *(getattr(self, name) for name in self.columns)]
        return ",".join("" if value is None else repr(value) for value in values) + "\n"


@dataclass(frozen=True)
class Row(MetricsLine):
    """Metrics of one epoch of an automaton; the module docstring describes each column."""

    columns = COLUMNS

    epoch: int
    soft_loss: float
    train_hard_loss: int | None
    hard_loss: int | None
    accuracy: float | None
    best: int | None
    elapsed_s: float
    skipped: bool
    """True if the optimizer step was skipped because the gradient was not finite; not a column of the CSV."""
    gap: float | None = None
    undecided: int | None = None

    @classmethod
    def of(cls, metrics: EpochMetrics, elapsed_s: float) -> Self:
        """Return the row of an epoch without evaluation; `elapsed_s` is the training time so far."""
        # JSON has no infinity, and a row must be unchanged after it is written and read.
        loss = metrics.soft_loss if math.isfinite(metrics.soft_loss) else math.nan
        return cls(metrics.epoch, loss, None, None, None, None, round(elapsed_s, 3), metrics.skipped)

    def evaluated(self, result: Evaluation, best: int, undecided: int) -> Self:
        """Return a copy of the row with the evaluation columns set; `best` is the lowest hard loss so far."""
        return dataclasses.replace(
            self,
            train_hard_loss=result.train_hard_loss,
            hard_loss=result.hard_loss,
            accuracy=result.accuracy,
            best=best,
            gap=None if math.isnan(self.soft_loss) else result.train_hard_loss - self.soft_loss,
            undecided=undecided,
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return super().from_dict({**values, "soft_loss": math.nan if (soft := values["soft_loss"]) is None else soft})

    def unevaluated(self) -> Self:
        """Return a copy of the row with the evaluation columns set to None."""
        return dataclasses.replace(
            self, train_hard_loss=None, hard_loss=None, accuracy=None, best=None, gap=None, undecided=None
        )


Rows = Sequence[Sequence[Row]]
"""Rows of each member of a run, for the same epochs."""


def last_evaluated(rows: Sequence[Row]) -> Row | None:
    """Return the last row of an evaluation epoch, or None without such a row."""
    return next((row for row in reversed(rows) if row.hard_loss is not None), None)


class Journal:
    """Metrics files metrics.jsonl and metrics.csv, open for appending. All methods raise OSError."""

    def __init__(
        self,
        folder: Path,
        seeds: Sequence[int],
        rows: Sequence[Sequence[MetricsLine]],
        columns: Sequence[str] = COLUMNS,
    ) -> None:
        """Rewrite both files with `rows`, which end at the checkpoint from which a run is resumed, and open them."""
        self._seeds = seeds
        self._descriptors: list[int] = []
        header = ",".join(columns if len(seeds) == 1 else ("seed", *columns))
        texts = self._texts(rows)
        for name, text in ((JSONL, texts[0]), (CSV, f"{header}\n{texts[1]}")):
            # A resumed run trains the epochs after its checkpoint again, so their old rows are removed.
            write_atomically(folder / name, text.encode())
            self._descriptors.append(os.open(folder / name, os.O_WRONLY | os.O_APPEND | PLAIN))

    def append(self, rows: Sequence[Sequence[MetricsLine]]) -> None:
        for descriptor, text in zip(self._descriptors, self._texts(rows), strict=True):
            write_all(descriptor, text.encode())

    def _texts(self, rows: Sequence[Sequence[MetricsLine]]) -> tuple[str, str]:
        labelled = [line for epoch in zip(*rows, strict=True) for line in zip(_labels(self._seeds), epoch, strict=True)]
        jsonl = "".join([row.json_line(seed) for seed, row in labelled])
        return jsonl, "".join([row.csv_line(seed) for seed, row in labelled])

    def sync(self) -> None:
        """Flush both files to disk; call this before each checkpoint, so that its metrics are complete."""
        for descriptor in self._descriptors:
            os.fsync(descriptor)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def read_rows(folder: Path, seeds: Sequence[int] = (0,)) -> list[list[Row]]:
    """Return each member's rows of `metrics.jsonl`, up to the first line that is damaged or out of order.

    For a run of one model, `seeds` is one arbitrary number. Raises OSError if the file exists but cannot be read.
    """
    labels = _labels(seeds)
    rows: list[list[Row]] = [[] for _ in labels]
    for number, values in enumerate(jsonl.objects(folder / JSONL)):
        earlier, member = divmod(number, len(labels))
        try:
            row = Row.from_dict(values)
        except (TypeError, KeyError):
            break
        # A resumed run needs every epoch, so rows after a missing epoch are useless.
        if (values.get("seed"), row.epoch) != (labels[member], earlier + 1):
            break
        rows[member].append(row)
    return rows


def _labels(seeds: Sequence[int]) -> Sequence[int | None]:
    """Return the seed in each member's lines, or [None] for a single model, whose lines have no seed."""
    return seeds if len(seeds) > 1 else [None]
