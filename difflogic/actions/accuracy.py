"""Accuracy of a classifier on the held-out rows of its run or on another table."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from difflogic.circuits.readers import source
from difflogic.config import document
from difflogic.config import table as tables
from difflogic.config.table import Integers, LabelledTable, Numbers
from difflogic.core.interval import wilson_interval
from difflogic.errors import UsageError
from difflogic.evaluation.measure import Measure
from difflogic.model import function_json
from difflogic.model.controller import Controller
from difflogic.policies import classifier
from difflogic.policies.classifier import Rows
from difflogic.policies.evaluate import Decide
from difflogic.policies.member import restored
from difflogic.runs import checkpoint, chosen, manifest

MOST_SHOWN = 24
"""Maximum number of classes whose accuracies are measured separately."""


def is_classifier(path: Path) -> bool:
    """Return whether `path` is a classifier's run folder, or the file of a function that is no controller."""
    if path.is_dir():
        record = manifest.read(chosen.run_folder(path))
        return document.is_classifier(record.get("config"))
    function = source.function(path)
    return function is not None and not isinstance(function, Controller)


def label_of(path: Path, file: Path) -> str:
    """Return the label column: the only column of `file` that the classifier `path` does not read. Raises DataError."""
    return tables.label_of(file, _opened(path).features)


def measures(path: Path, table: LabelledTable | None) -> Iterator[Measure]:
    """Yield the accuracy on all rows, then for each class, on `table` or by default on the held-out rows of the run.

    Raises UsageError if there are no classes or no rows, or DataError if the table lacks a column.
    """
    opened = _opened(path)
    if not opened.classes:
        raise UsageError(f"{path} has no accuracy: its outputs are bits, not classes.")
    x, y = _held_out(path, opened.rows) if table is None else table.as_known(opened.features, opened.classes)
    kind = "given" if table is not None or opened.rows is None else opened.rows.config.final_rows
    decisions = opened.decide(x)
    yield _measure("accuracy", "all", decisions == y, kind)
    for label in np.unique(y)[:MOST_SHOWN].tolist():
        # A row with a label that is unknown to the classifier counts as an error.
        name = opened.classes[label] if label >= 0 else "other labels"
        yield _measure(f"accuracy-{name}", name, (decisions == y)[y == label], kind)


def _measure(key: str, title: str, hits: npt.NDArray[np.bool_], kind: str) -> Measure:
    count, rows = int(hits.sum()), len(hits)
    low, high = wilson_interval(count, rows)
    values = {"accuracy": count / rows, "right": count, "rows": rows, "low": low, "high": high}
    return Measure(key, title, classifier.accuracy(count, rows, kind), values)


class _Opened(NamedTuple):
    """Classifier loaded from a file or run, with the rows of the run; `rows` is None for a file."""

    features: Sequence[str]
    classes: Sequence[str]
    decide: Decide
    rows: Rows | None = None


def _opened(path: Path) -> _Opened:
    """Load the classifier of a file or run: a circuit, or a network of dense layers."""
    if not path.is_dir():
        function = source.load_function(path)
        return _Opened(function.observations, function.choices, function)
    folder = chosen.run_folder(path)
    member = restored(path, checkpoint.read_agents(folder).best + 1)
    is_gates = (folder / function_json.FUNCTION).is_file()
    decide = source.load_function(path) if is_gates else member.agent.decide
    rows = cast("Rows", member.environments)
    return _Opened(rows.config.features, rows.config.classes, decide, rows)


def _held_out(path: Path, rows: Rows | None) -> tuple[Numbers, Integers]:
    """Return the features and labels of the held-out rows. Raises UsageError if there are no held-out rows."""
    if rows is None:
        raise UsageError(f"{path} contains no rows: give --data FILE, a table with the classifier's columns.")
    if not len(rows.parts.held_out):
        raise UsageError(f"The run in {path} has no held-out rows: give --data FILE with other rows.")
    return rows.table.x[rows.parts.held_out], rows.table.y[rows.parts.held_out]
