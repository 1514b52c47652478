"""Graphviz: the circuit for `dot`, which lays it out. A circle at a gate's input inverts it."""

from __future__ import annotations

from difflogic.circuits.export.schematic import PLACES, Schematic, schematic
from difflogic.circuits.export.text import Files, about
from difflogic.netlist import Netlist

_FILL = {"AND": "#dbeafe", "NAND": "#dbeafe", "OR": "#fde9c8", "NOR": "#fde9c8", "XOR": "#dcf3dc", "XNOR": "#dcf3dc"}


def export(netlist: Netlist, name: str) -> Files:
    """`NAME.dot`. Raises CircuitError where the circuit is too large to be read."""
    drawn = schematic(netlist)
    text = [
        f"// {about(netlist)}",
        "//     dot -Tsvg -O FILE",
        f"digraph {name}_cell {{",
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
    rows = []
    for bit in drawn.inputs:
        channel, patch = drawn.place(bit)
        rows.append(f'b{bit} [shape=plain, style="", label=<{_table(channel, patch)}>];')
    return [f"  {{ rank=source; {' '.join(rows)} }}"] if rows else []


def _table(channel: int, patch: int) -> str:
    """The neighbourhood with the place that is read, below it in words."""
    colours = ["#111827" if f == patch else "#e5e7eb" for f in range(9)]
    cells = [f'<td width="9" height="9" fixedsize="true" bgcolor="{colour}"></td>' for colour in colours]
    rows = "".join(f"<tr>{''.join(cells[3 * dy : 3 * dy + 3])}</tr>" for dy in range(3))
    picture = f'<table border="0" cellborder="0" cellspacing="1" cellpadding="0">{rows}</table>'
    words = f"channel {channel}<br/>{PLACES[patch]}"
    return f'<table border="0" cellborder="0"><tr><td>{words}</td><td>{picture}</td></tr></table>'


def _outputs(drawn: Schematic) -> list[str]:
    names = [f"channel {name}" + "\\nvisible" * (i < drawn.visible) for i, name in enumerate(drawn.channels)]
    rows = [f'o{index} [shape=plaintext, style="", label="{name}"];' for index, name in enumerate(names)]
    return [f"  {{ rank=sink; {' '.join(rows)} }}"]


def _edge(bit: int, target: str, inverted: bool) -> str:
    return f"  b{bit} -> {target}{' [arrowhead=odot]' if inverted else ''};"
