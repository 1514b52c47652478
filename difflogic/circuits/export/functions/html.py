"""Export of a self-contained HTML page that shows a controller's circuit with live gate values, and sliders.

On the page, a controller for CartPole balances a pole that the user may push; any other controller decides on
observations that the user sets. Verification operates the page in headless Chromium and compares 100,000 decisions.
"""

import json

from difflogic.circuits.export import html
from difflogic.circuits.export.drawing import MAX_GATES
from difflogic.circuits.export.functions.observations import Observations
from difflogic.circuits.export.svg import drawing
from difflogic.circuits.export.text import Files, fill, script, template, text_of
from difflogic.errors import CircuitError
from difflogic.model.controller import Controller

POLE = "CartPole-v"
"""Prefix of the names of environments that the page can simulate: versions of CartPole."""


def export(controller: Controller, name: str) -> Files:
    """Return an HTML page, as the contents of `NAME.html`. If the circuit is too large to draw, the page says so."""
    try:
        drawn = drawing(controller, name)
    except CircuitError:
        drawn = f"<p>The circuit is not drawn, because it has more than {MAX_GATES} gates.</p>"
    rows = zip(controller.observations, controller.thermometer.thresholds, strict=True)
    data = {
        "observations": [{"name": observed, "thresholds": list(values)} for observed, values in rows],
        "actions": list(controller.choices),
        "pole": is_pole(controller),
        "lines": html.rows(controller),
        "outputs": controller.outputs.tolist(),
        "memory": controller.memory,
    }
    page = fill(
        "controller.html",
        controller,
        name,
        style="".join(map(template, ("page.css", "figure.css", "controller.css"))),
        drawing=drawn,
        data=json.dumps(data),
        script=script("drawing.js", "play.js", "controls.js", "controller.js"),
    )
    return {f"{name}.html": page}


def is_pole(controller: Controller) -> bool:
    """Return whether the controller's environment is CartPole, the only one that the page can simulate."""
    is_named = controller.environment.removeprefix("gymnasium:").startswith(POLE)
    return is_named and (len(controller.observations) - controller.memory, len(controller.choices)) == (4, 2)


def verify(controller: Controller, name: str, files: Files) -> list[str]:
    """Verify the exported page and return one sentence per successful check. Raises ExportError or ToolError."""
    page = text_of(files, f"{name}.html")
    tried = Observations(controller, controller.thermometer.fixed_point())
    proofs: list[str] = []
    for window, size in html.WINDOWS.items():
        # All observations are tested only at the first window size.
        values = tried.values if not proofs else tried.values[:1]
        report = html.drive(page, {"observations": values.tolist()}, "controller_proof.js", size)
        html.check_report(report, window)
        if not proofs:
            proofs.append(tried.check(report["actions"], False, "the page"))
    return [*proofs, f"controls, sliders and live wires work at {' and '.join(html.WINDOWS)} size without requests"]
