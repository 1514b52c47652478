"""HTML: one page that needs no network, on which the automaton lives, in WebGPU or else in JavaScript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from difflogic.circuits.export.schematic import MAX_GATES
from difflogic.circuits.export.svg import drawing
from difflogic.circuits.export.text import Files, about, fill, statements, template
from difflogic.circuits.export.wgsl import shader
from difflogic.errors import CircuitError
from difflogic.habitat import Habitat
from difflogic.netlist import Netlist
from difflogic.straight_line import Line, lines

_MOST_STATEMENTS = 5_000
"""Gates of a shader that a browser still compiles in reasonable time; beyond, the page computes in JavaScript."""


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.html`. A circuit too large to be drawn comes without its drawing, and says so."""
    code = lines(netlist)
    try:
        drawn = drawing(netlist, name)
    except CircuitError:
        drawn = ""
    data = {
        "channels": netlist.channels,
        "visible": netlist.visible,
        "periodic": netlist.periodic,
        "origin": list(netlist.origin),
        "home": None if netlist.habitat is None else _home(netlist.habitat, netlist.origin),
        "shader": shader(netlist, name) if len(code) <= _MOST_STATEMENTS else None,
        "lines": [_row(line) for line in code] if drawn else None,
        "most": MAX_GATES,
    }
    cell = statements(netlist, "const {name} = {value};", "result[{name}] = {value};", "0", "-1")
    page = fill(
        "page.html",
        name=name,
        about=about(netlist),
        style=template("page.css"),
        drawing=drawn,
        data=json.dumps(data),
        cell=cell,
        engines=template("engines.js"),
        script=template("page.js"),
    )
    return {f"{name}.html": page}


def _home(habitat: Habitat, origin: Sequence[int]) -> dict[str, Any]:
    """Where the page begins: `ones` are the cells of a start picture, `[row, column, channel]`."""
    own = habitat.grid(origin) if habitat.start == "picture" else None
    ones: list[list[int]] = [] if own is None else np.argwhere(own).tolist()
    return {
        "start": habitat.start,
        "height": habitat.height,
        "width": habitat.width,
        "steps": habitat.steps,
        "rate": habitat.fire_rate,
        "ones": ones,
    }


def _row(line: Line) -> list[int]:
    """Bit, gate, a, b, of which the page finds all computed: what is not read is a bit that is there anyway."""
    a, b = (*line.reads, *line.reads, 0, 0)[:2]
    return [line.bit, line.gate, a, b]
