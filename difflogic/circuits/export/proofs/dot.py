"""The diagram for Graphviz, as `dot` itself reads it."""

from __future__ import annotations

import json
import re
from typing import Any

from difflogic.circuits import tools
from difflogic.circuits.export.proofs.common import folder_of
from difflogic.circuits.export.proofs.drawn import Drawn, End, check_drawing
from difflogic.circuits.export.schematic import PLACES
from difflogic.circuits.export.text import Files
from difflogic.netlist import Netlist

_INPUT = re.compile(r"channel (\d+)<br/>([a-z ]+)</td>")


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
    inputs, gates, outputs = {}, {}, {}
    for node in nodes.values():
        name, label = node["name"], node["label"]
        if found := _INPUT.search(label):
            inputs[name] = 9 * netlist.origin.index(int(found[1])) + PLACES.index(found[2])
        elif label.startswith("channel "):
            outputs[int(re.findall(r"\d+", label)[0])] = ends[name][0]
        else:
            gates[name] = (label, ends[name])
    return Drawn(inputs, gates, [outputs[channel] for channel in netlist.origin])
