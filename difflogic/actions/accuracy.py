"""The accuracy of a classifier on rows: of a run on those that it held out, of any on a table."""

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
"""Classes that are measured one by one."""


def is_classifier(path: Path) -> bool:
    """Return whether a file holds a function that is no controller, or a folder the run of a classifier."""
    if path.is_dir():
        record = manifest.read(chosen.run_folder(path))
        return document.is_classifier(record.get("config"))
    found = source.function(path)
    return found is not None and not isinstance(found, Controller)


def label_of(path: Path, file: Path) -> str:
    """The column of a file that a classifier does not read. Raises DataError unless there is one."""
    return tables.label_of(file, _opened(path).features)


def measures(path: Path, table: LabelledTable | None) -> Iterator[Measure]:
    """The accuracy on a table, or on the rows that a run held out, in all and of each class.

    Raises DataError, and UsageError where there are no classes or no rows.
    """
    found = _opened(path)
    if not found.classes:
        raise UsageError(f"{path} gives bits and names no classes: it has no accuracy.")
    x, y = _held_out(path, found.rows) if table is None else table.as_known(found.features, found.classes)
    which = "given" if table is not None or found.rows is None else found.rows.config.final_rows
    named = found.decide(x)
    yield _measure("accuracy", "all", named == y, which)
    for place in np.unique(y)[:MOST_SHOWN].tolist():
        # A label that the classifier does not know is never named rightly.
        name = found.classes[place] if place >= 0 else "other labels"
        yield _measure(f"accuracy-{name}", name, (named == y)[y == place], which)


def _measure(key: str, title: str, right: npt.NDArray[np.bool_], which: str) -> Measure:
    count, rows = int(right.sum()), len(right)
    low, high = wilson_interval(count, rows)
    values = {"accuracy": count / rows, "right": count, "rows": rows, "low": low, "high": high}
    return Measure(key, title, classifier.accuracy(count, rows, which), values)


class _Opened(NamedTuple):
    """A classifier: what it reads, what it decides, and of a run its rows."""

    features: Sequence[str]
    classes: Sequence[str]
    decide: Decide
    rows: Rows | None = None


def _opened(path: Path) -> _Opened:
    """What a file or run holds: its circuit, of dense layers the network."""
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
    """The rows that a run held out, and their labels. Raises UsageError."""
    if rows is None:
        raise UsageError(f"{path} has no rows of its own: give --data FILE, a table with the columns that it reads.")
    if not len(rows.parts.held_out):
        raise UsageError(f"The run in {path} held no rows out: give --data FILE with others.")
    return rows.table.x[rows.parts.held_out], rows.table.y[rows.parts.held_out]
