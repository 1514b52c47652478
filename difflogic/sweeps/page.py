"""Page of a sweep in one file: every trial as a line through its values, and as a row of a table.

Without scripts the table is in the order of the metric, and complete.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from difflogic.sweeps.course import Sweep
from difflogic.version import __version__

WIDTH, HEIGHT, MARGIN = 1000, 420, 70
SHADES = 5
"""Number of colours, from the best lines to the worst."""
MOST_TICKS = 12
NONE = "none"
Values = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """Vertical axis of the drawing."""

    name: str
    x: float
    ticks: Sequence[tuple[float, str]]
    """Heights and labels."""
    places: dict[str, float]
    """Height of each value that occurs."""


def html(found: Sweep, is_alone: bool = False) -> str:
    """Return the page; with `is_alone` without links to trials."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = [PackageLoader("difflogic.sweeps", "templates"), PackageLoader("difflogic.evaluation", "templates")]
    template = Environment(
        loader=ChoiceLoader(packages), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    ).get_template("sweep.html")
    rows = [(each, {**each.values, found.spec.metric: each.value}) for each in found.ranked]
    drawn = [(each, values) for each, values in rows if each.status != "failed"]
    columns = _columns(found, [values for _, values in drawn])
    lines = [
        (each, " ".join(f"{column.x:.1f},{column.places[str(values[column.name])]:.1f}" for column in columns),
         place * SHADES // len(drawn))
        for place, (each, values) in enumerate(drawn)
    ]  # fmt: skip
    return template.render(
        sweep=found,
        is_alone=is_alone,
        name=found.spec.base.name,
        rows=[(each, [*map(shown, values.values())]) for each, values in rows],
        columns=columns,
        lines=lines[::-1],  # the best is drawn last, above all
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
        version=__version__,
    )


def shown(value: Any) -> str:
    """Return a value as text for people."""
    if isinstance(value, tuple):
        return str(list(value))
    return NONE if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _columns(found: Sweep, drawn: Sequence[Values]) -> list[Column]:
    logs = {axis.path: axis.is_log for axis in found.spec.axes} | {found.spec.metric: False}
    gap = (WIDTH - 2 * MARGIN) / (len(logs) - 1)
    return [
        _column(name, MARGIN + place * gap, [values[name] for values in drawn], is_log)
        for place, (name, is_log) in enumerate(logs.items())
    ]


def _column(name: str, x: float, values: Sequence[Any], is_log: bool) -> Column:
    """Place numbers by their size, and other values at equal distances."""
    known = [value for value in values if value is not None]
    top, bottom = MARGIN, HEIGHT - MARGIN / 2  # in SVG heights grow downwards
    if known and all(type(value) in (int, float) for value in known):
        scale = math.log if is_log else float
        least, most = scale(min(known)), scale(max(known))
        span = most - least or 1.0
        places = {str(value): bottom - (bottom - top) * 0.9 * (scale(value) - least) / span for value in known}
        marks = dict.fromkeys((min(known), max(known)))
        ticks = [(places[str(value)], shown(value)) for value in marks]
    else:
        words = list(dict.fromkeys(str(value) for value in sorted(known, key=str)))
        places = {word: top + (bottom - top) * 0.9 * (place + 0.5) / len(words) for place, word in enumerate(words)}
        ticks = [(places[word], word[:24]) for word in words[:MOST_TICKS]]
    if len(known) < len(values):  # None is below all others
        places[str(None)] = HEIGHT - 10.0
        ticks.append((places[str(None)], NONE))
    return Column(name, x, ticks, places)
