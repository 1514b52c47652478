"""Graphviz: the circuit for `dot`, which lays it out. A circle at a gate's input inverts it.

The proof reads the diagram back as `dot` itself reads it.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from difflogic.circuits.export.drawing import Label, Schematic, schematic
from difflogic.circuits.export.proving import Drawn, End, check_drawing, folder_of
from difflogic.circuits.export.text import Files, about
from difflogic.circuits.synthesis import tools
from difflogic.model.netlist import Netlist

_FILL = {"AND": "#dbeafe", "NAND": "#dbeafe", "OR": "#fde9c8", "NOR": "#fde9c8", "XOR": "#dcf3dc", "XNOR": "#dcf3dc"}


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.dot`. Raises CircuitError where the circuit is too large to be read."""
    drawn = schematic(netlist)
    text = [
        f"// {about(netlist)}",
        "//     dot -Tsvg -O FILE",
        f"digraph {name}_{netlist.kind} {{",
        f'  graph [rankdir=LR, label="{name}", labelloc=t, fontname="sans-serif", nodesep=0.15, ranksep=0.6];',
        '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif", fontsize=11];',
        '  edge [arrowhead=none, color="#6b7280"];',
        *_inputs(drawn),
        *(f'  b{p.bit} [label="{p.symbol}", fillcolor="{_FILL.get(p.symbol, "#ffffff")}"];' for p in drawn.parts),
        *_outputs(drawn),
    ]
    for part in drawn.parts:
        text += [_edge(wire.bit, f"b{part.bit}", wire.inverted) for wire in part.reads]
    text += [_edge(wire.bit, f"o{index}", wire.inverted) for index, wire in enumerate(drawn.outputs)]
    return {f"{name}.dot": "\n".join([*text, "}", ""])}


def _inputs(drawn: Schematic) -> list[str]:
    rows = [f'b{bit} [shape=plain, style="", label=<{_table(drawn.input_label(bit))}>];' for bit in drawn.inputs]
    return [f"  {{ rank=source; {' '.join(rows)} }}"] if rows else []


def _words(label: Label) -> str:
    return f"<td>{escape(label.name)}<br/>{escape(label.note)}</td>"


def _table(label: Label) -> str:
    """Return what is read in words; of a cell beside them the neighbourhood with its place."""
    picture = ""
    if label.patch is not None:
        colours = ["#111827" if f == label.patch else "#e5e7eb" for f in range(9)]
        cells = [f'<td width="9" height="9" fixedsize="true" bgcolor="{colour}"></td>' for colour in colours]
        rows = "".join(f"<tr>{''.join(cells[3 * dy : 3 * dy + 3])}</tr>" for dy in range(3))
        picture = f'<td><table border="0" cellborder="0" cellspacing="1" cellpadding="0">{rows}</table></td>'
    return f'<table border="0" cellborder="0"><tr>{_words(label)}{picture}</tr></table>'


def _outputs(drawn: Schematic) -> list[str]:
    labels = [drawn.output_label(index) for index in range(len(drawn.outputs))]
    names = [label.name + (f"\\n{label.note}" if label.note != "memory" else "") for label in labels]
    rows = [f'o{index} [shape=plaintext, style="", label="{name}"];' for index, name in enumerate(names)]
    return [f"  {{ rank=sink; {' '.join(rows)} }}"]


def _edge(bit: int, target: str, inverted: bool) -> str:
    return f"  b{bit} -> {target}{' [arrowhead=odot]' if inverted else ''};"


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    with folder_of(files) as folder:
        graph = json.loads(tools.run_in(folder, "dot", "-Tjson0", f"{name}.dot"))
    return [check_drawing(netlist, _read(netlist, graph), "the diagram laid out by dot")]


def _read(netlist: Netlist, graph: dict[str, Any]) -> Drawn:
    nodes = {node["_gvid"]: node for node in graph["objects"] if "nodes" not in node and "subgraphs" not in node}
    ends: dict[str, list[End]] = {node["name"]: [] for node in nodes.values()}
    for edge in graph.get("edges", []):
        source, target = nodes[edge["tail"]]["name"], nodes[edge["head"]]["name"]
        ends[target].append(End(source, edge.get("arrowhead") == "odot"))
    drawn = schematic(netlist)
    words = {_words(drawn.input_label(bit)): bit for bit in drawn.inputs}
    inputs, gates, outputs = {}, {}, {}
    for node in nodes.values():
        name, label = node["name"], node["label"]
        if label.startswith("<table"):
            (inputs[name],) = (bit for said, bit in words.items() if said in label)
        elif name.startswith("o"):
            outputs[int(name[1:])] = ends[name][0]
        else:
            gates[name] = (label, ends[name])
    return Drawn(inputs, gates, [outputs[index] for index in range(len(outputs))])
