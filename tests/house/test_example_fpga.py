"""The FPGA example: what a monitor sees is what the simulator says, frame by frame."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from difflogic.circuits.export import formats
from difflogic.circuits.synthesis.tools import run_in
from difflogic.errors import ToolError
from difflogic.model import netlist_json
from difflogic.model.deployment import Scenario
from difflogic.model.grid import Grid
from tests.programs import needs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/fpga"
TIMING = {"SIDE": 3, "H_FRONT": 2, "H_SYNC": 3, "H_BACK": 5, "V_FRONT": 1, "V_SYNC": 2, "V_BACK": 2, "FRAMES": 6}
"""A small screen: the shipped one draws half a million pixels a frame."""
GLIDER = (".1.....", "..1....", "111....", ".......", ".......")


def test_screen_shows_the_frames_of_the_simulator(tmp_path: Path) -> None:
    needs("iverilog")
    life = replace(netlist_json.load(EXAMPLE / "life.json"), scenario=Scenario("picture", 5, 7, 6, picture=GLIDER))
    grid = Grid(life, 5, 7)
    formats.export(grid, "life", "verilog", tmp_path)
    sizes = [f"-Pfilm_tb.{name}={value}" for name, value in {**TIMING, "HEIGHT": 5, "WIDTH": 7}.items()]
    sources = [*(str(EXAMPLE / name) for name in ("life_screen.v", "film_tb.v")), "life.v"]
    run_in(tmp_path, "iverilog", "-g2005", *sizes, "-o", "film", *sources)
    rows = run_in(tmp_path, "vvp", "-n", "film").decode().split()
    seen = np.array([list(row) for row in rows]).reshape(-1, 5, 7)
    film = life.rollout(grid.start[None], TIMING["FRAMES"] - 1)[:, 0, ..., 0]
    assert np.array_equal(seen, np.where(film, "7", "0"))
    four = ("-s", "life_screen", "-Plife_screen.CHANNELS=4")
    with pytest.raises(ToolError, match="three_colours_and_shows_at_most_three_channels"):
        run_in(tmp_path, "iverilog", "-g2005", *four, "-o", "film", *sources)


def test_shipped_initial_state_fills_the_screen() -> None:
    life = netlist_json.load(EXAMPLE / "life.json")
    assert Grid(life, 15, 20).start.sum() == 12
