"""Names in docs/explanation/forms.md exist, and its example is true."""

import importlib
import re
from pathlib import Path

from difflogic.circuits.synthesis.convert import to_netlist, to_xag
from difflogic.circuits.synthesis.xag import Node
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import expression, lines

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "forms.md").read_text(encoding="utf-8")


def test_every_name_of_the_page_exists() -> None:
    names = re.findall(r"`(difflogic(?:\.\w+)+)\.(\w+)`", PAGE)
    assert len(names) > 10
    for module, name in names:
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_example_of_the_page_is_true() -> None:
    netlist = CellNetlist.build(1, False, [2], [(4, 0)], [9])
    graph = to_xag(netlist)
    assert graph.gates == (Node(False, 3, 10),)
    assert graph.outputs == (20,)
    (line,) = lines(netlist)
    assert expression(line, "patch[{}]".format, "0", "1") == "patch[4] & ~patch[0]"
    assert to_netlist(graph, netlist).gates.tolist() == [4], "NOT a AND b, as the smaller literal comes first"
