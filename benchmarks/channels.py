"""Draw, by Graphviz, the channels on which a circuit's image depends in its last two steps.

    difflogic simplify RUN --task -o task.json
    python -m benchmarks.channels task.json docs/images/presets/lizard.svg

A drawing of hundreds of gates cannot be read, but a drawing of their channels can. The label of an arrow names the
cells from which a channel is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from difflogic.circuits.readers import source
from difflogic.core.wiring import PATCH
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import READS

PLACES = ("above left", "above", "above right", "left", "itself", "right", "below left", "below", "below right")
COLOURS = ("#dcfce7", "#e0e7ef", "#f6f2e8")
"""Fill colours of the image, of channels one step before it, and of channels two steps before it."""


def read_by(netlist: CellNetlist, channel: int) -> tuple[int, dict[int, list[int]]]:
    """Return the number of two-input gates of a channel, and the places in the patch that it reads, by channel."""
    found, waiting = set[int](), [int(netlist.outputs[channel])]
    while waiting:
        if (bit := waiting.pop()) not in found:
            found.add(bit)
            waiting += [int(each) for each in netlist.wires[bit - netlist.inputs]] if bit >= netlist.inputs else []
    places: dict[int, list[int]] = {}
    for bit in sorted(bit for bit in found if bit < netlist.inputs):
        places.setdefault(bit // PATCH, []).append(bit % PATCH)
    two = (bit for bit in found if bit >= netlist.inputs and READS[netlist.gates[bit - netlist.inputs]] == 2)
    return sum(1 for _ in two), places


def arrows(netlist: CellNetlist) -> Iterator[tuple[int, int, int, list[int]]]:
    """Yield for each arrow the steps before the end, the reading channel, the channel it reads, and the places."""
    level = [0]
    for before in range(len(COLOURS) - 1):
        earlier = set()
        for channel in level:
            for read, places in read_by(netlist, channel)[1].items():
                earlier.add(read)
                yield before, channel, read, places
        level = sorted(earlier)


def drawing(netlist: CellNetlist) -> str:
    """Return the circuit's diagram as SVG."""
    import graphviz

    font = {"fontname": "sans", "fontsize": "12"}
    graph = graphviz.Digraph(
        graph_attr={"rankdir": "LR", "bgcolor": "#fcfcf7", "ranksep": "1.2", "nodesep": "0.12"},
        node_attr={"shape": "box", "style": "rounded,filled", **font},
        edge_attr={**font, "fontsize": "9", "color": "#6b7280"},
    )
    found = list(arrows(netlist))
    for before, channel in sorted({(0, 0), *((before + 1, read) for before, _, read, _ in found)}):
        gates = read_by(netlist, channel)[0]
        words = "a copy" if not gates else f"{gates} gate{'s' * (gates > 1)}"
        name = f"channel {netlist.origin[channel]}{'' if before else ', the picture'}"
        graph.node(f"{before}-{channel}", f"{name}\n{words}", fillcolor=COLOURS[before])
    for before, channel, read, places in found:
        words = ",\n".join(PLACES[each] for each in places) if len(places) < 4 else f"{len(places)} cells"
        graph.edge(f"{before + 1}-{read}", f"{before}-{channel}", label=words)
    return str(graph.pipe("svg", encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("circuit", type=Path)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    svg = drawing(source.load(options.circuit).netlist)
    options.picture.write_text(svg[svg.index("<svg") :], encoding="utf-8")


if __name__ == "__main__":
    main()
