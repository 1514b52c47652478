"""Lookup circuits of images: each cell counts its place in time, and shows its colour."""

from typing import Any

import numpy as np
import pytest

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.placed import placed
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.core import text_picture, wiring
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario


def asked(preset: str, height: int, width: int, channels: int, **task: Any) -> Config:
    """Return a preset with a random image: noise is harder to look up than any drawing."""
    bits = np.random.default_rng(height * width).integers(0, 2, (height, width, channels), dtype=np.uint8)
    task |= {"picture": text_picture.encode(bits), "height": height, "width": width, "loss_channels": channels}
    return presets.get(preset).with_(task=task)


@pytest.mark.parametrize(
    ("preset", "height", "width", "channels", "steps"),
    [
        ("lizard", 3, 3, 1, 2),
        ("lizard", 20, 20, 1, 12),
        ("lizard", 12, 31, 6, 19),  # an odd torus, of which both ends know their places before they meet
        ("lizard", 15, 32, 3, 20),
        ("colored-g", 3, 4, 6, 4),
        ("colored-g", 32, 21, 3, 30),
    ],
)
def test_lookup_circuit_shows_its_image_for_ever(preset, height, width, channels, steps):
    config = asked(preset, height, width, channels, steps=steps)
    graph = placed(config)
    assert graph is not None
    size, target = len(graph.outputs), text_picture.decode(config.task.picture, channels)
    scenario, outputs = Scenario.of(config), [wiring.CENTRE] * size
    like = CellNetlist.build(size, config.model.periodic, [], [], outputs, channels, scenario=scenario)
    netlist = to_netlist(graph, like)
    shown = netlist.rollout(invariant.start_of(netlist)[None], steps + 5)[1:, 0, ..., :channels]
    assert (shown[steps - 1 :] == target).all()
    assert (shown <= target).all(), "a cell that does not know its place yet is dark"


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        ("lizard", {"task": {"steps": 6}}),  # it takes ten steps to the corners
        ("lizard", {"task": {"start": "random"}}),
        ("lizard", {"task": {"start": "zeros"}}),  # an empty torus looks the same from every cell
        ("lizard", {"model": {"neighbourhood": "von-neumann"}}),
        ("heart-steady", {"task": {"loss_steps": [4, 18]}}),
    ],
)
def test_no_lookup_circuit_without_registers(preset, fields):
    assert placed(presets.get(preset).with_(**fields)) is None
