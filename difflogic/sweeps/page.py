"""HTML page of a sweep in one file: each trial is a line through its values in a diagram, and a row of a table.

The table is complete and sorted by the metric even without JavaScript.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from difflogic.sweeps.course import Sweep
from difflogic.version import __version__

WIDTH, HEIGHT, MARGIN = 1000, 420, 70
SHADES = 5
"""Number of line colours, which show ranks from the best to the worst trials."""
MOST_TICKS = 12
NONE = "none"
Values = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """Vertical axis of the diagram, for one field or for the metric."""

    name: str
    x: float
    ticks: Sequence[tuple[float, str]]
    """Y position and label of each tick."""
    places: dict[str, float]
    """Mapping from each occurring value as text to its y position."""


def html(sweep: Sweep, is_alone: bool = False) -> str:
    """Return the page of a sweep as HTML; if `is_alone`, it has no links to the run folders of trials."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = [PackageLoader("difflogic.sweeps", "templates"), PackageLoader("difflogic.evaluation", "templates")]
    template = Environment(
        loader=ChoiceLoader(packages), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    ).get_template("sweep.html")
    rows = [(trial, {**trial.values, sweep.spec.metric: trial.value}) for trial in sweep.ranked]
    shown_rows = [(trial, values) for trial, values in rows if trial.status != "failed"]
    columns = _columns(sweep, [values for _, values in shown_rows])
    lines = [
        (trial, " ".join(f"{column.x:.1f},{column.places[str(values[column.name])]:.1f}" for column in columns),
         place * SHADES // len(shown_rows))
        for place, (trial, values) in enumerate(shown_rows)
    ]  # fmt: skip
    return template.render(
        sweep=sweep,
        is_alone=is_alone,
        name=sweep.spec.base.name,
        rows=[(trial, [*map(shown, values.values())]) for trial, values in rows],
        columns=columns,
        lines=lines[::-1],  # the best is drawn last, on top of the others
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
        version=__version__,
    )


def shown(value: Any) -> str:
    """Return a value as human-readable text."""
    if isinstance(value, tuple):
        return str(list(value))
    return NONE if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _columns(sweep: Sweep, rows: Sequence[Values]) -> list[Column]:
    logs = {axis.path: axis.is_log for axis in sweep.spec.axes} | {sweep.spec.metric: False}
    gap = (WIDTH - 2 * MARGIN) / (len(logs) - 1)
    return [
        _column(name, MARGIN + place * gap, [values[name] for values in rows], is_log)
        for place, (name, is_log) in enumerate(logs.items())
    ]


def _column(name: str, x: float, values: Sequence[Any], is_log: bool) -> Column:
    """Return the axis `name` at position `x`, with numbers placed by value or logarithm, other values evenly."""
    present = [value for value in values if value is not None]
    top, bottom = MARGIN, HEIGHT - MARGIN / 2  # in SVG, y grows downwards
    if present and all(type(value) in (int, float) for value in present):
        scale = math.log if is_log else float
        least, most = scale(min(present)), scale(max(present))
        span = most - least or 1.0
        places = {str(value): bottom - (bottom - top) * 0.9 * (scale(value) - least) / span for value in present}
        marks = dict.fromkeys((min(present), max(present)))
        ticks = [(places[str(value)], shown(value)) for value in marks]
    else:
        words = list(dict.fromkeys(str(value) for value in sorted(present, key=str)))
        places = {word: top + (bottom - top) * 0.9 * (place + 0.5) / len(words) for place, word in enumerate(words)}
        ticks = [(places[word], word[:24]) for word in words[:MOST_TICKS]]
    if len(present) < len(values):  # None is placed at the bottom
        places[str(None)] = HEIGHT - 10.0
        ticks.append((places[str(None)], NONE))
    return Column(name, x, ticks, places)
