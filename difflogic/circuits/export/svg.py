"""Export of an SVG drawing, inputs on the left and outputs on the right. A circle at a gate's input inverts it.

Verification reads the circuit back from the drawing: a wire connects the two symbols that its ends touch.
"""

import re
from html import escape
from xml.etree import ElementTree

from difflogic.circuits.export.drawing import DrawnGate, Point, Positions, Schematic, layout, schematic
from difflogic.circuits.export.proving import check_cells, vectors_for
from difflogic.circuits.export.text import Files, about, template, text_of
from difflogic.core import wiring
from difflogic.core.topology import topological_sort
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import on_inverted

_COLUMN, _ROW = 120, 40
_BOX_WIDTH, _BOX_HEIGHT = 56, 28
_LEFT, _TOP, _RIGHT = 150, 56, 130
"""Margins of the drawing in pixels."""


def export(netlist: Netlist, name: str) -> Files:
    """Return a drawing of the circuit, as the contents of `NAME.svg`. Raises CircuitError for too large a circuit."""
    return {f"{name}.svg": drawing(netlist, name)}


def drawing(netlist: Netlist, name: str) -> str:
    """Return the text of the SVG; the attribute `data-bit` of a gate, input or wire is the bit that it carries."""
    drawn = schematic(netlist)
    placed = layout(drawn)
    width = _LEFT + (placed.columns - 1) * _COLUMN + _RIGHT
    height = _TOP + round(placed.rows * _ROW) + 16
    gates = [_gate(part, row, drawn) for part, row in zip(drawn.parts, placed.parts, strict=True)]
    body = [*_wires(drawn, placed), *_inputs(drawn, placed), *gates, *_outputs(drawn, placed)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="The circuit {escape(name)}">',
            f"<style>{template('circuit.css')}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            f'<text class="title" x="16" y="26">{escape(name)}</text>',
            f'<text class="note" x="16" y="43">{escape(about(netlist))}</text>',
            *body,
            "</svg>",
            "",
        ]
    )


def _x(column: float) -> float:
    return _LEFT + column * _COLUMN


def _y(row: float) -> float:
    return round(_TOP + row * _ROW, 1)


def _wires(drawn: Schematic, placed: Positions) -> list[str]:
    parts, paths = list(zip(drawn.parts, placed.parts, strict=True)), []
    starts = dict(zip(drawn.inputs, ((_x(0) - 4, y) for y in placed.inputs), strict=True))
    starts |= {part.bit: (_x(part.depth) + _BOX_WIDTH / 2, y) for part, y in parts}
    # End point and wires of each gate and of each output.
    readers = [((_x(part.depth) - _BOX_WIDTH / 2, y), part.reads) for part, y in parts]
    readers += [((_x(placed.columns - 1), y), (w,)) for w, y in zip(drawn.outputs, placed.outputs, strict=True)]
    for reader, (end, wires) in enumerate(readers):
        between = {wire: placed.wires[wire.bit, reader] for wire in wires}
        downwards = sorted(wires, key=lambda wire: (between[wire] or (starts[wire.bit],))[-1][1])
        for index, wire in enumerate(downwards):
            y = end[1] + (0.0 if len(wires) == 1 else (14 * index - 7) / _ROW)
            paths.append(_path(wire.bit, starts[wire.bit], between[wire], (end[0] - 8 * wire.inverted, y)))
            if wire.inverted:
                paths.append(f'<circle class="not" cx="{end[0] - 4:g}" cy="{_y(y):g}" r="4"/>')
    return paths


def _path(bit: int, start: Point, between: tuple[Point, ...], end: Point) -> str:
    """Return a wire as an SVG path: straight within columns, curved between them."""
    x, y = start
    text = f"M{x:g} {_y(y):g}"
    for column, row in between:
        left, right = _x(column) - _BOX_WIDTH / 2, _x(column) + _BOX_WIDTH / 2
        text += f"{_curve(x, y, left, row)}L{right:g} {_y(row):g}"
        x, y = right, row
    return f'<path class="wire" data-bit="{bit}" d="{text}{_curve(x, y, *end)}"/>'


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:g} {_y(y):g} {middle:g} {_y(to_y):g} {to_x:g} {_y(to_y):g}"


def _inputs(drawn: Schematic, placed: Positions) -> list[str]:
    """Return SVG elements of the inputs with their labels and, for a cell, the neighbourhood with the input marked."""
    elements = []
    for bit, row in zip(drawn.inputs, placed.inputs, strict=True):
        label = drawn.input_label(bit)
        left, top = _x(0) - 34, _y(row) - 13
        elements.append(f'<g class="input" data-bit="{bit}"><title>{escape(drawn.netlist.bit_name(bit))}</title>')
        if label.patch is None:
            left += 15
            elements.append(f'<rect class="read" x="{left:g}" y="{top + 7:g}" width="12" height="12"/>')
        if isinstance(drawn.netlist, CellNetlist):
            elements += _neighbourhood(drawn.netlist.neighbourhood, label.patch, left, top)
        elements.append(
            f'<text class="label end" x="{left - 8:g}" y="{top + 11:g}">{escape(label.name)}</text>'
            f'<text class="note end" x="{left - 8:g}" y="{top + 24:g}">{escape(label.note)}</text></g>'
        )
    return elements


def _neighbourhood(name: str, read: int | None, left: float, top: float) -> list[str]:
    """Draw the neighbourhood `name` and mark patch position `read`. Each hexagon row is half a cell further left."""
    elements = []
    for f in wiring.NEIGHBOURHOODS[name]:
        (row, column), kind = divmod(f, 3), "read" if f == read else "other"
        if name == "hex":
            x, y = left + 9 * column + 4.5 * (1 - row) + 4, top + 7.8 * row + 5
            ring = ((0, -4.8), (4.1, -2.4), (4.1, 2.4), (0, 4.8), (-4.1, 2.4), (-4.1, -2.4))
            elements.append(f'<polygon class="{kind}" points="{" ".join(f"{x + u:g},{y + v:g}" for u, v in ring)}"/>')
        else:
            place = f'x="{left + 9 * column:g}" y="{top + 9 * row:g}"'
            elements.append(f'<rect class="{kind}" {place} width="8" height="8"/>')
    return elements


def _gate(part: DrawnGate, row: float, drawn: Schematic) -> str:
    name = drawn.netlist.bit_name(part.bit)
    left, top = _x(part.depth) - _BOX_WIDTH / 2, _y(row) - _BOX_HEIGHT / 2
    return (
        f'<g class="gate {part.symbol.lower() if part.reads else "constant"}" data-bit="{part.bit}">'
        f"<title>{name}: {part.symbol}</title>"
        f'<rect x="{left:g}" y="{top:g}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6"/>'
        f'<text class="symbol" x="{_x(part.depth):g}" y="{_y(row) + 4:g}">{part.symbol}</text></g>'
    )


def _outputs(drawn: Schematic, placed: Positions) -> list[str]:
    elements = []
    for index, (wire, row) in enumerate(zip(drawn.outputs, placed.outputs, strict=True)):
        x, y = _x(placed.columns - 1), _y(row)
        label = drawn.output_label(index)
        elements.append(
            f'<g class="output" data-bit="{wire.bit}" data-inverted="{int(wire.inverted)}">'
            f'<rect class="read" x="{x:g}" y="{y - 6:g}" width="12" height="12"/>'
            f'<text class="label" x="{x + 20:g}" y="{y - 1:g}">{escape(label.name)}</text>'
            f'<text class="note" x="{x + 20:g}" y="{y + 12:g}">{escape(label.note)}</text></g>'
        )
    return elements


_SVG = "{http://www.w3.org/2000/svg}"
_REACH = 10.0
"""Maximum distance in pixels between a wire's end and the mark that it touches."""

_GATES = {"0": 0, "AND": 1, "itself": 3, "XOR": 6, "OR": 7, "NOR": 8, "XNOR": 9, "NAND": 14, "1": 15}
"""Mapping from symbols to gate ids; `itself` stands for an output, which passes its wire through."""

Box = tuple[float, float, float, float]
Mark = tuple[str, int]
"""Kind of a mark (`input`, `gate` or `output`), and its index among marks of this kind."""


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Verify the exported file and return one sentence per successful check. Raises ExportError."""
    vectors = vectors_for(netlist)
    read = _read(netlist, ElementTree.fromstring(text_of(files, f"{name}.svg")))
    return [check_cells(netlist, vectors, vectors.outputs(read), "the circuit that the diagram shows")]


def _read(netlist: Netlist, root: ElementTree.Element) -> Netlist:
    """Return the circuit that an SVG drawing shows. Raises ExportError if a wire's end touches no mark or several."""
    groups = {
        kind: [group for group in root.iter(f"{_SVG}g") if kind in (group.get("class") or "").split()]
        for kind in ("input", "gate", "output")
    }
    boxes = {(kind, index): _box(group) for kind, marks in groups.items() for index, group in enumerate(marks)}
    circles = [(float(mark.get("cx", "")), float(mark.get("cy", ""))) for mark in root.iter(f"{_SVG}circle")]
    ends: dict[Mark, list[tuple[Mark, bool]]] = {mark: [] for mark in boxes}
    for path in root.iter(f"{_SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))]
        source = _touched(boxes, (numbers[0], numbers[1]), right=True)
        target = _touched(boxes, (numbers[-2], numbers[-1]), right=False)
        inverted = any(abs(x - numbers[-2] - 4) < 0.6 and abs(y - numbers[-1]) < 0.6 for x, y in circles)
        ends[target].append((source, inverted))
    # Gates have the bits after the inputs. Each output becomes a gate: a NOT if its wire ends in a circle, otherwise a
    # pass-through.
    titles = [group.findtext(f"{_SVG}title") or "" for group in groups["input"]]
    place: dict[Mark, int] = {("input", k): netlist.input_names.index(title) for k, title in enumerate(titles)}
    gates = [mark for mark in boxes if mark[0] != "input"]
    place |= {mark: netlist.inputs + number for number, mark in enumerate(gates)}
    types, wires = [], []
    for mark in gates:
        symbol = groups["gate"][mark[1]].findtext(f"{_SVG}text") or "" if mark[0] == "gate" else "itself"
        (a, not_a), (b, not_b) = (*ends[mark], *ends[mark], (mark, False), (mark, False))[:2]
        types.append(on_inverted(_GATES[symbol], not_a, not_b))
        wires.append((place[a], place[b]) if ends[mark] else (0, 0))
    outputs = [place["output", index] for index in range(len(groups["output"]))]
    order, wires, outputs = topological_sort(netlist.inputs, wires, outputs, list(map(str, gates)))
    return netlist.with_gates([types[index] for index in order], wires, outputs)


def _box(group: ElementTree.Element) -> Box:
    """Return the left, top, right and bottom edges of all shapes in a group."""
    boxes = []
    for rect in group.iter(f"{_SVG}rect"):
        x, y, width, height = (float(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        boxes.append((x, y, x + width, y + height))
    for polygon in group.iter(f"{_SVG}polygon"):
        for point in polygon.get("points", "").split():
            x, y = map(float, point.split(","))
            boxes.append((x, y, x, y))
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _touched(boxes: dict[Mark, Box], point: Point, right: bool) -> Mark:
    """Return the only mark that a wire's end `point` touches at its right (or left) edge. Raises ExportError."""
    x, y = point
    near = [
        name
        for name, (left, top, far, bottom) in boxes.items()
        if abs(x - (far if right else left)) < _REACH and top <= y <= bottom
    ]
    if len(near) != 1:
        raise ExportError(f"Expected one symbol at the end of the wire at {x:g}, {y:g}, got {len(near)}.")
    return near[0]
