"""The SVG, read as an eye does: which wire's ends touch which marks."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from difflogic.circuits.export.proofs.drawn import Drawn, End, check_drawing
from difflogic.circuits.export.text import Files
from difflogic.errors import ExportError
from difflogic.netlist import Netlist

_SVG = "{http://www.w3.org/2000/svg}"
_REACH = 10.0
"""Pixels between a wire's end and its mark, at most."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError."""
    text = files[f"{name}.svg"]
    assert isinstance(text, str)
    return [check_drawing(netlist, _read(netlist, ElementTree.fromstring(text)), "the diagram")]


def _read(netlist: Netlist, root: ElementTree.Element) -> Drawn:
    groups = {kind: _groups(root, kind) for kind in ("input", "gate", "output")}
    inputs = {}
    for index, group in enumerate(groups["input"]):
        channel, patch = re.findall(r"\d+", group.findtext(f"{_SVG}title") or "")
        inputs[f"input {index}"] = 9 * netlist.origin.index(int(channel)) + int(patch)
    boxes = {f"{kind} {index}": _box(group) for kind, found in groups.items() for index, group in enumerate(found)}
    circles = [(float(mark.get("cx", "")), float(mark.get("cy", ""))) for mark in root.iter(f"{_SVG}circle")]
    ends: dict[str, list[End]] = {name: [] for name in boxes}
    for path in root.iter(f"{_SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]
        source = _touched(boxes, (numbers[0], numbers[1]), right=True)
        target = _touched(boxes, (numbers[-2], numbers[-1]), right=False)
        inverted = any(abs(x - numbers[-2] - 4) < 0.6 and abs(y - numbers[-1]) < 0.6 for x, y in circles)
        ends[target].append(End(source, inverted))
    gates = {
        f"gate {index}": (group.findtext(f"{_SVG}text") or "", ends[f"gate {index}"])
        for index, group in enumerate(groups["gate"])
    }
    outputs = [ends[f"output {index}"][0] for index in range(len(groups["output"]))]
    return Drawn(inputs, gates, outputs)


def _groups(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in root.iter(f"{_SVG}g") if kind in (group.get("class") or "").split()]


def _box(group: ElementTree.Element) -> Box:
    """Left, top, right and bottom of the rectangles in a group."""
    found = []
    for rect in group.iter(f"{_SVG}rect"):
        x, y, width, height = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    lefts, tops, rights, bottoms = zip(*found, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _touched(boxes: dict[str, Box], point: Point, right: bool) -> str:
    """The mark whose right (or left) side a wire's end touches. Raises ExportError."""
    x, y = point
    near = [
        name
        for name, (left, top, far, bottom) in boxes.items()
        if abs(x - (far if right else left)) < _REACH and top <= y <= bottom
    ]
    if len(near) != 1:
        raise ExportError(f"In the diagram a wire ends at {x:g}, {y:g}, where there are {len(near)} marks.")
    return near[0]
