"""Cells outside the neighbourhood are never read: after training, search, and every kind of simplification."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflogic.circuits import rle
from difflogic.circuits.export import golly
from difflogic.circuits.export.text import text_of
from difflogic.circuits.readers.rule import rule_netlist
from difflogic.circuits.synthesis.pipeline import simplify
from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.core.wiring import NEIGHBOURHOODS
from difflogic.errors import CircuitError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.model.straight_line import read_inputs
from difflogic.reference.engine import ReferenceEngine
from difflogic.train.trainer import Trainer
from tests.programs import needs
from tests.random_netlists import random_netlist
from tests.train.tiny import tiny_config

FEWER = [name for name in NEIGHBOURHOODS if name != "moore"]


def tiny(neighbourhood: str, periodic: bool = False) -> Config:
    """On a torus of one row, the cells above and below are the cell itself: reading them would give the same."""
    one_row = neighbourhood == "line"
    sides = {"height": 1, "width": 7, "start": "seed"} if one_row else {"start": "seed"}
    perceive, update = NetworkConfig((9, 8, 1), ("first_kernel", "unique")), NetworkConfig((4, 2), ("unique",))
    small = ModelConfig(2, 1, perceive, update, periodic, wiring_per_kernel=True, neighbourhood=neighbourhood)
    return tiny_config(search={"begin": 11}).with_(model=small, task=sides)


def cells(netlist: CellNetlist) -> set[int]:
    return {bit % 9 for bit in read_inputs(netlist)}


@pytest.mark.parametrize("neighbourhood", NEIGHBOURHOODS)
@pytest.mark.parametrize("per_kernel", [False, True])
@pytest.mark.parametrize("scheme", ["first_kernel", "random", "unique"])
def test_first_layer_is_wired_within_the_neighbourhood(neighbourhood: str, per_kernel: bool, scheme: str) -> None:
    """The wires reach the complete neighbourhood, too."""
    known = NEIGHBOURHOODS[neighbourhood]
    width = 3 if scheme == "unique" else 8
    perceive = NetworkConfig((9, width, 1), (scheme, "unique"))
    model = replace(tiny(neighbourhood).model, perceive=perceive, wiring_per_kernel=per_kernel)
    for seed in range(5):
        wires = Circuit.initial(model, seed).perceive_wires[0]
        assert set(wires.reshape(-1).tolist()) <= set(known)
        if scheme == "first_kernel":
            assert set(wires[:, 0].reshape(-1).tolist()) == set(known) - {4}
            assert (wires[:, 1] == 4).all()


@pytest.mark.parametrize(("neighbourhood", "ways"), [("von-neumann", 4), ("hex", 6), ("line", 2)])
def test_all_round_reads_every_neighbour(neighbourhood: str, ways: int) -> None:
    """One step carries the cell's first bits to each neighbour."""
    perceive = NetworkConfig((9, 8, 4, 2), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((2 + 2 * 2 * 4, 8, 2), ("unique",) * 2)
    for seed in range(4):
        wide: dict[str, Any] = {"perceive": perceive, "update": update, "kernels": 4, "all_round": True}
        circuit = Circuit.initial(replace(tiny(neighbourhood).model, **wide), seed)
        read = {cell for cell in range(9) if cell != 4 and any(_first_output(circuit, k)[cell] for k in range(4))}
        assert len(read) == ways


def _first_output(circuit: Circuit, kernel: int) -> np.ndarray:
    """Return the cells of the patch that reach the kernel's first output through the initial gates."""
    found = np.eye(9, dtype=bool)
    for logits, wires in zip(circuit.perceive, circuit.perceive_wires, strict=True):
        a, b = found[wires[kernel, 0]], found[wires[kernel, 1]]
        found = np.where((logits[kernel].argmax(axis=1) == 7)[:, None], a | b, a)
    return found[0]


@pytest.mark.parametrize(("neighbourhood", "periodic"), [("von-neumann", False), ("hex", True), ("line", True)])
def test_no_stage_reads_beyond_the_neighbourhood(neighbourhood: str, periodic: bool) -> None:
    """Stages: training, search, simplification, also for the initial state and the task, writing and reading."""
    config = tiny(neighbourhood, periodic)
    run = Trainer(config, ReferenceEngine()).run()
    netlist = CellNetlist.of_run(run.circuit, config)
    assert netlist.neighbourhood == neighbourhood
    found = simplify(netlist, to_start=True, task=config)
    assert found.pruned is not None
    for each in (netlist, found.simplified.netlist, found.reachable.netlist, found.pruned.netlist):
        again = netlist_json.from_json(netlist_json.to_json(each))
        assert again.neighbourhood == neighbourhood
        assert cells(again) <= set(NEIGHBOURHOODS[neighbourhood])
    start = config.task.height, config.task.width, netlist.channels
    states = np.random.default_rng(1).integers(0, 2, (8, *start), dtype=np.uint8)
    simple = found.simplified.netlist
    shown = [each.rollout(states[..., list(each.origin)], 3)[..., :1] for each in (netlist, simple)]
    np.testing.assert_array_equal(*shown)


def test_equal_cell_beyond_the_neighbourhood_is_not_read() -> None:
    """On a torus of one row the cell above is the cell itself: pruning to the task would read the first of both."""
    config = tiny("line", periodic=True)
    line = {"scenario": Scenario.of(config), "neighbourhood": "line"}
    xor = CellNetlist.build(2, True, [6, 1], [(3, 5), (18, 12)], [19, 13], **line)
    found = simplify(xor, task=config).netlist
    assert cells(found) <= {3, 4, 5}


def test_circuit_that_reads_beyond_is_refused() -> None:
    words = "The circuit reads cell 2 of the patch, but the neighbourhood hex only contains the cells 0, 1, 3, "
    with pytest.raises(CircuitError, match=words):
        CellNetlist.build(1, False, [1], [(2, 4)], [9], neighbourhood="hex")
    with pytest.raises(CircuitError, match=words):
        Circuit.initial(replace(tiny("hex").model, neighbourhood="moore"), 1).within("hex")
    with pytest.raises(CircuitError, match="Unknown neighbourhood 'square': expected one of moore, von-neumann, hex"):
        CellNetlist.build(1, False, [], [], [4], neighbourhood="square")
    constant = CellNetlist.build(1, False, [15], [(0, 0)], [9], neighbourhood="line")
    assert not read_inputs(constant), "a constant reads nothing, wherever its wires lead"


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("neighbourhood", FEWER)
def test_golly_moves_circuits_of_each_neighbourhood(neighbourhood: str, channels: int) -> None:
    """Golly steps random circuits as difflogic does, also one whose empty neighbourhood becomes 1."""
    needs("bgolly")
    names = {"von-neumann": "vonNeumann", "hex": "hexagonal", "line": "oneDimensional"}
    rng = np.random.default_rng(5)
    for periodic in (False, True):
        netlist = random_netlist(rng, 14, channels, periodic, neighbourhood=neighbourhood)
        files = golly.export(netlist, "it")
        assert f"neighborhood:{names[neighbourhood]}" in text_of(files, "it_ca.rule")
        golly.verify(netlist, "it", files)


def test_rule_on_hexagons_has_the_name_of_golly() -> None:
    """An RLE has it; the rule of a line is all 512 entries, since Golly's own W110 draws time downwards."""
    netlist = rule_netlist("B2/S34H", periodic=True)
    assert rle.rule_of(replace(netlist, neighbourhood="hex"), 8, 9) == ("B2/S34H:T9,8", "")
    assert rle.rule_of(rule_netlist("W110", True), 1, 9)[0].startswith("MAP")
