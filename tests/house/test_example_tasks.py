"""The examples of tasks and of an FPGA."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.films import stepped
from difflogic.circuits.export import formats
from difflogic.circuits.synthesis.tools import run_in
from difflogic.config import registered
from difflogic.config.own_task import FRESH
from difflogic.devices.open import open_engine
from difflogic.errors import ToolError
from difflogic.model import netlist_json
from difflogic.model.deployment import Scenario
from difflogic.model.grid import Grid
from difflogic.train.trainer import Trainer
from tests.own_tasks import install_examples
from tests.programs import needs


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_examples(monkeypatch, tmp_path / "site")


def test_learned_adder_adds_longer_numbers() -> None:
    own = registered.find("difflogic-tasks:adder")
    run = Trainer(own.config(), open_engine("cpu")).run(population=8, stop_when_solved=1)
    assert run.solved
    longer = registered.find("difflogic-tasks:adder", {"bits": 16}).drawn(100, FRESH)
    grids = np.zeros((100, 1, 16, 3), dtype=np.float32)
    grids[..., :2] = longer.x
    states = open_engine("reference").rollout(run.circuit, grids, 16, "hard")[1:, ..., :1].swapaxes(0, 1)
    right = (states == longer.y) | (longer.y < 0)
    # Its rule is that of every length, or it has learned the short sums by heart.
    assert right.all(axis=(1, 2, 3, 4)).mean() > 0.9


def test_targets_of_the_adder_are_sums() -> None:
    samples = registered.find("difflogic-tasks:adder", {"bits": 5}).drawn(1024)
    weights = 1 << np.arange(5)[::-1]
    numbers = (samples.x[:, 0] * weights[:, None]).sum(axis=1)
    assert len({tuple(pair) for pair in numbers.tolist()}) == 1024
    assert ((samples.y[:, -1, 0, :, 0] * weights).sum(axis=1) == numbers.sum(axis=1) % 32).all()
    # What counts goes on counting, and without a carry at once.
    counts = samples.y >= 0
    assert (counts[:, 1:] >= counts[:, :-1]).all()
    assert counts[(samples.x.sum(axis=-1) < 2).all(axis=(1, 2))].all()


def test_waves_spread_through_mazes_that_have_a_way() -> None:
    own = registered.find("difflogic-tasks:maze", {"size": 4, "steps_judged": 81})
    samples = own.drawn(6)
    wall = samples.x[..., 1] == 1
    wave = samples.y[..., 0] == 1
    assert wall[:, [0, -1]].all()
    assert not (wave & wall[:, None]).any()
    assert (wave[:, -1] == ~wall).all()  # every room is joined
    film = np.concatenate([samples.x[:, None], np.repeat(samples.x[:, None], 81, axis=1)], axis=1)
    film[:, 1:, ..., 0] = wave
    pictures = own.drawings(film, samples)
    # The way back from the exit is drawn in red, entrance and exit included.
    assert all((picture[[1, -2], [1, -2]] == (220, 60, 40)).all() for picture in pictures.values())


@pytest.mark.parametrize("name", ["density", "synchronisation"])
def test_rings_are_evaluated_by_the_asked_ring(name: str) -> None:
    settings = {"size": 9, "time": 14} | ({"starts": "fair"} if name == "density" else {})
    own = registered.find(f"difflogic-tasks:{name}", settings)
    samples = own.drawn(64)
    assert list(own.evaluated(samples.y.astype(np.uint8), samples).values()) == [1.0]
    last = samples.y[:, -1, 0, :, 0]
    assert (last == last[:, :1]).all()
    shown = samples.y.astype(np.uint8)
    shown[:32, -1, 0, 0] ^= 1
    assert list(own.evaluated(shown, samples).values()) == [0.5]
    if name == "density":
        assert (last[:, 0] == (samples.x[:, 0, :, 0].sum(axis=1) > 4)).all()
        assert list(own.evaluated(1 - samples.y.astype(np.uint8), samples).values()) == [0.0]
    else:
        assert list(own.evaluated(1 - samples.y.astype(np.uint8), samples).values()) == [1.0]  # any beat will do


def test_traffic_sends_the_majority_to_every_cell() -> None:
    """Cells that keep the value of the last two equal neighbours find the majority."""
    samples = registered.find("difflogic-tasks:density", {"size": 9, "time": 14, "starts": "fair"}).drawn(64)
    cars, answer = samples.x[:, 0, :, 1], samples.x[:, 0, :, 0]
    for _ in range(14):
        left, right = np.roll(cars, 1, 1), np.roll(cars, -1, 1)
        answer = np.where((cars == left) | (cars == right), cars, answer)
        cars = np.where(cars == 1, right, left)
    assert (answer == samples.y[:, -1, 0, :, 0]).all()
    assert (cars == samples.y[:, -1, 0, :, 1]).all()


def test_suits_has_a_code_for_each_of_four_images() -> None:
    own = registered.find("difflogic-tasks:suits")
    samples, config = own.drawn(4), own.config()
    assert sorted((int(x[0, 0, 1]), int(x[0, 0, 2])) for x in samples.x) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({y.tobytes() for y in samples.y}) == 4
    assert (samples.x[..., 1:] == samples.x[:, :1, :1, 1:]).all()  # every cell has the same bits
    assert not samples.x[..., 0].any()
    assert (config.model.held, config.data.held_out, config.train.batch) == ((1, 2), 0, 4)


def test_learned_circuit_grows_the_image_of_each_code() -> None:
    """The circuit that seed 23 learned, simplified, is run by NumPy alone."""
    circuit = json.loads((Path(__file__).parents[1] / "data" / "suits.json").read_text())
    samples = registered.find("difflogic-tasks:suits").drawn(4)
    state = np.zeros((*samples.x.shape[:3], len(circuit["outputs"])), dtype=np.uint8)
    state[..., :3] = samples.x
    for _ in range(samples.steps[0]):
        state = stepped(circuit, state)
        np.testing.assert_array_equal(state[..., 1:3], samples.x[..., 1:])
    np.testing.assert_array_equal(state[..., 0], samples.targets[0, ..., 0])


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
