"""The accuracy of a classifier on rows: of a run on those that it held out, of any on a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from difflogic.circuits.readers import source
from difflogic.config import table as tables
from difflogic.config.policy import PolicyConfig
from difflogic.config.table import Integers, LabelledTable, Numbers
from difflogic.core.interval import wilson_interval
from difflogic.errors import UsageError
from difflogic.evaluation.measure import Measure
from difflogic.model import function_json
from difflogic.model.controller import Controller
from difflogic.policies import classifier
from difflogic.policies.evaluate import Decide
from difflogic.policies.member import restored
from difflogic.runs import checkpoint, chosen, manifest

MOST_SHOWN = 24
"""Classes that are measured one by one."""


def is_classifier(path: Path) -> bool:
    """Return whether a file holds a function that is no controller, or a folder the run of a classifier."""
    if path.is_dir():
        record = manifest.read(chosen.run_folder(path))
        return manifest.is_policy(record) and bool(record["config"]["table"]["sha256"])
    found = source.function(path)
    return found is not None and not isinstance(found, Controller)


def label_of(path: Path, file: Path) -> str:
    """The column of a file that a classifier does not read. Raises DataError unless there is one."""
    return tables.label_of(file, _names(path)[0])


def measures(path: Path, table: LabelledTable | None) -> Iterator[Measure]:
    """The accuracy on a table, or on the rows that a run held out, in all and of each class.

    Raises DataError, and UsageError where there are no classes or no rows.
    """
    features, classes = _names(path)
    if not classes:
        raise UsageError(f"{path} gives bits and names no classes: it has no accuracy.")
    x, y = _held_out(path) if table is None else table.as_known(features, classes)
    which = "held out" if table is None else "given"
    named = _decide(path)(x)
    yield _measure("accuracy", "all", named == y, which)
    for place in np.unique(y)[:MOST_SHOWN].tolist():
        # A label that the classifier does not know is never named rightly.
        name = classes[place] if place >= 0 else "other labels"
        yield _measure(f"accuracy-{name}", name, (named == y)[y == place], which)


def _measure(key: str, title: str, right: npt.NDArray[np.bool_], which: str) -> Measure:
    count, rows = int(right.sum()), len(right)
    low, high = wilson_interval(count, rows)
    values = {"accuracy": count / rows, "right": count, "rows": rows, "low": low, "high": high}
    return Measure(key, title, classifier.accuracy(count, rows, which), values)


def _names(path: Path) -> tuple[Sequence[str], Sequence[str]]:
    """What it reads, and its classes."""
    if path.is_dir():
        table = _config(path).table
        return table.features, table.classes
    function = source.load_function(path)
    return function.observations, function.choices


def _config(path: Path) -> PolicyConfig:
    return checkpoint.read_agents(chosen.run_folder(path)).members[0].config


def _held_out(path: Path) -> tuple[Numbers, Integers]:
    """The rows that a run held out, and their labels. Raises UsageError."""
    if not path.is_dir():
        raise UsageError(f"{path} has no rows of its own: give --data FILE, a table with the columns that it reads.")
    config, folder = _config(path), chosen.run_folder(path)
    table = tables.of_run(config, folder)
    rows = table.parts(config.table).held_out if table is not None else ()
    if table is None or not len(rows):
        raise UsageError(f"The run in {path} held no rows out: give --data FILE with others.")
    return table.x[rows], table.y[rows]


def _decide(path: Path) -> Decide:
    """The circuit that a file or run holds; of dense layers the network."""
    if path.is_dir() and not (chosen.run_folder(path) / function_json.FUNCTION).is_file():
        return restored(path, checkpoint.read_agents(chosen.run_folder(path)).best + 1).agent.decide
    return source.load_function(path)
