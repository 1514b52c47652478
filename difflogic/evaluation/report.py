"""Render an evaluation as a single HTML file that contains all images and no scripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from difflogic.evaluation.evaluate import RunEvaluation
from difflogic.evaluation.measure import Film
from difflogic.runs import film, plots
from difflogic.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_CURVE = 1000
"""Maximum number of points per curve."""


def to_html(evaluation: RunEvaluation) -> str:
    """Return the report of an evaluation as HTML text."""
    trained, neighbourhood = evaluation.trained, evaluation.trained.circuit.neighbourhood
    return page(
        "report.html",
        title=trained.title,
        facts=f"{trained.facts} Run: {trained.path}",
        evaluation=evaluation,
        shown=[
            (
                measure,
                _base64(film.animation(plots.colors(measure.film.frames), "gif", scale=1, neighbourhood=neighbourhood)),
                _curve(measure.curve, measure.film),
            )
            for measure in evaluation.measures
            if measure.film is not None
        ],
        loss=_base64(plots.loss_png(trained.rows, trained.config, "losses")) if trained.rows else "",
        faults=_base64(plots.accuracy_png(evaluation.fault_curves)) if evaluation.fault_curves else "",
        gates=_base64(plots.gates_png(evaluation.layers, "gates by layer")),
        config=trained.config.to_toml(),
    )


def page(file: str, **values: Any) -> str:
    """Return the HTML of the template `file` with `values`. Raises an error if a value is missing."""
    return _environment().get_template(file).render(version=__version__, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("difflogic.evaluation", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def _curve(wrong: Sequence[float], shots: Film) -> str:
    if len(wrong) < 2 or not any(wrong):
        return ""
    # More points than pixels would take time without a visible effect.
    count = len(wrong)
    shown = np.unique(np.linspace(0, count - 1, min(count, MAX_CURVE)).astype(int))
    step = shots.steps[-1] / (count - 1)
    curve = np.array(wrong)[shown].tolist()
    return _base64(plots.curve_png(curve, (shown * step).tolist(), "wrong cells"))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
