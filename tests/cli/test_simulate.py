"""`difflogic simulate`: the same bits on every engine, files to go on from, and one sentence for mistakes."""

import io
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from difflogic.circuits.simulation import loop
from difflogic.cli.screen import simulation
from difflogic.config import presets
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from difflogic.train.trainer import Trainer
from tests.cli.conftest import Call, complaints
from tests.export_cases import life
from tests.train.tiny import tiny_config


@pytest.fixture
def simulate(difflogic: Call) -> Call:
    """`simulate("--steps", 3)` runs `difflogic simulate life.json --steps 3` in tmp_path."""
    Path("life.json").write_text(netlist_json.to_json(life()))
    return lambda *arguments, circuit="life.json": difflogic("simulate", circuit, *arguments)


@pytest.mark.parametrize("engine", ["auto", "numba", "gpu", "reference"])
def test_engines_write_the_same_state(simulate: Call, tmp_path: Path, engine: str) -> None:
    options = ("--size", "70x9", "--steps", 7, "--seed", 4, "--fire-rate", 0.7, "--density", 0.3, "--boundary", "zero")
    for name, which in (("a.npy", "reference"), ("b.npy", engine)):
        done = simulate(*options, "--engine", which, "-o", name)
        assert done.code == 0, done.errors
    a, b = (np.load(tmp_path / name) for name in ("a.npy", "b.npy"))
    assert a.shape == (9, 70, 1)
    assert a.any()
    np.testing.assert_array_equal(a, b)
    assert "70x9 cells, 0 outside the grid, 0.7 of the cells in each step; start: random" in done.out
    assert re.search(r"^7 steps in \S+ s: \S+ cell updates/s$", done.out, re.MULTILINE)
    assert f"Cells that are 1, per channel: {a.sum()}\nWrote b.npy\n" in done.out


def test_simulation_continues_from_its_last_state(simulate: Call, tmp_path: Path) -> None:
    (tmp_path / "glider.rle").write_text("x = 3, y = 3\nbob$2bo$3o!")
    for suffix in ("rle", "npy", "png"):
        assert simulate("--start", "glider.rle", "--size", "33x20", "--steps", 5, "-o", f"a.{suffix}").code == 0
        assert simulate("--start", f"a.{suffix}", "--steps", 6, "-o", f"b.{suffix}").code == 0
        assert simulate("--start", "glider.rle", "--size", "33x20", "--steps", 11, "-o", f"c.{suffix}").code == 0
        assert (tmp_path / f"b.{suffix}").read_bytes() == (tmp_path / f"c.{suffix}").read_bytes()


def test_bounded_rule_of_start_gives_size_and_boundary(simulate: Call, tmp_path: Path) -> None:
    """A glider on a plane of 30x20 cells is a block after 40 steps; an option wins."""
    (tmp_path / "plane.txt").write_text("x = 3, y = 3, rule = B3/S23:P30,20\nbob$2bo$3o!")
    done = simulate("--start", "plane.txt", "--steps", 40, "-o", "a.npy")
    assert "30x20 cells, 0 outside the grid" in done.out, done.errors
    assert np.load(tmp_path / "a.npy").sum() == 4
    assert "30x20 cells, wrapped at the border" in simulate("--start", "plane.txt", "--boundary", "periodic").out


def test_notation_gives_size_and_boundary(simulate: Call) -> None:
    assert "30x20 cells, 0 outside the grid" in simulate("--steps", 1, circuit="B2/S/C3:P30,20").out


def test_run_folder_gives_the_grid_of_its_rule(simulate: Call, tmp_path: Path) -> None:
    """Boundary, fire rate and start are the run's, and the state is what the engine makes of it."""
    config = tiny_config(epochs=1, start="zeros")
    run = Trainer(config, ReferenceEngine()).run(out=tmp_path / "run")
    done = simulate("--size", "12x11", "--steps", 4, "-o", "a.npy", circuit="run")
    assert done.code == 0, done.errors
    assert "start: zeros" in done.out
    start = np.zeros((1, 11, 12, config.model.channels), dtype=np.float32)
    expected = ReferenceEngine().rollout(run.circuit, start, 4, "hard")[-1, 0]
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)


def test_every_selects_frames(simulate: Call, tmp_path: Path) -> None:
    done = simulate("--size", "600x300", "--steps", 25, "--every", 10, "-o", "a.gif")
    assert "Note: a pixel of the GIF is the mean of 2x2 cells" in done.out
    with Image.open(tmp_path / "a.gif") as gif:
        assert (gif.n_frames, gif.size) == (4, (300, 150))
    assert simulate("--size", "9x8", "--steps", 25, "--every", 10, "-o", "a.npy").code == 0
    assert np.load(tmp_path / "a.npy").shape == (4, 8, 9, 1)


def test_json_has_the_results(simulate: Call) -> None:
    done = simulate("--size", "9x8", "--steps", 25, "--json", "-o", "a.png")
    events = [json.loads(line) for line in done.out.splitlines()]
    begin, end = events[0], events[-1]
    assert (begin["event"], end["event"]) == ("begin", "end")
    assert (begin["width"], begin["height"], begin["gates"], begin["boundary"]) == (9, 8, 28, "periodic")
    assert (end["step"], end["out"], end["interrupted"]) == (25, "a.png", None)
    assert end["population"][0] >= 0
    assert complaints(done.errors) == []


def test_ctrl_c_writes_the_reached_state(simulate: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Interrupting(simulation.SimulationReporter):
        def advanced(self, progress: loop.SimulationProgress) -> None:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(simulation, "SimulationReporter", Interrupting)
    done = simulate("--size", "70x9", "--steps", 10**9, "--engine", "numba", "-o", "a.npy")
    assert done.code == 128 + signal.SIGINT
    assert "Stopped by SIGINT after 1 of 1000000000 steps" in done.out
    assert simulate("--size", "70x9", "--steps", 1, "-o", "b.npy").code == 128 + signal.SIGINT  # it is still patched
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


@pytest.mark.parametrize("reporter", ["Bar", "GridScreen"])
def test_live_draws_on_a_terminal(simulate: Call, reporter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    options = ["--live", "--every", 5] if reporter == "GridScreen" else []
    opened: list[str] = []
    choose = simulation.choose

    def noted(*arguments: Any) -> simulation.SimulationReporter:
        watching = choose(*arguments)
        opened.append(type(watching.sink).__name__)
        return watching

    monkeypatch.setattr(simulation, "choose", noted)
    done = simulate("--size", "20x10", "--steps", 20, *options)
    assert done.code == 0, done.errors
    assert opened == [reporter]
    assert "20 steps in" in done.out


@pytest.mark.parametrize(
    ("rle", "until", "steps", "told"),
    [
        ("2o$2o!", "still", 1, "Step 1 equals step 0: the state is still"),
        ("2bo$3o!", "still", 4, "Step 4 equals step 3: the state is still"),
        ("3o!", "period:2", 2, "Step 2 equals step 0: the state repeats every 2 steps"),
        ("3o!", "still", 30, ""),
        ("bob$2bo$3o!", "period:48", 48, "Step 48 equals step 0: the state repeats every 48 steps"),
        ("bob$2bo$3o!", "period:47", 60, ""),
    ],
)
def test_until_stops_at_a_repeated_state(simulate: Call, rle: str, until: str, steps: int, told: str) -> None:
    """A block, what becomes a beehive, a blinker, and a glider that comes around a torus of 12 cells in 48 steps."""
    Path("start.rle").write_text(f"x = 4, y = 3\n{rle}")
    done = simulate("--start", "start.rle", "--size", "12x12", "--steps", 100 if told else steps, "--until", until)
    assert done.code == 0, done.errors
    assert f"\n{steps} steps in" in done.out
    assert ("equals step" in done.out, told in done.out) == (told != "", True)


def test_half_blocks_show_two_pixels() -> None:
    picture = np.array([[0, 255], [255, 0], [128, 128]], dtype=np.uint8)
    text = simulation.half_blocks(picture)
    assert text.plain == "▀▀\n▀▀"
    shades = ((0, 255), (255, 0), (128, 0))
    assert [str(span.style) for span in text.spans] == [f"rgb({a},{a},{a}) on rgb({b},{b},{b})" for a, b in shades]


@pytest.mark.parametrize(
    ("encoding", "system", "shown"),
    [("utf-8", None, "▄▀\n▀▀"), ("cp1252", "truecolor", ".#\n#.\n##"), ("ascii", None, ".#\n#.\n##")],
)
def test_blocks_without_colours_or_half_blocks(encoding: str, system: Any, shown: str) -> None:
    picture = np.array([[0, 255], [255, 0], [128, 128]], dtype=np.uint8)
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=True, color_system=system)
    assert simulation.blocks(picture, console).plain == shown
    assert simulation.blocks(np.repeat(picture[..., None], 3, axis=2), console).plain == shown


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--size", "2x9"], "A grid needs at least 3x3 cells, got 2x9."),
        (["--size", "9"], "Expected a size WIDTHxHEIGHT in cells, such as 24x24, got '9'."),
        (["--engine", "cuda"], "Unknown engine 'cuda': expected auto, numba, gpu or reference."),
        (["--fire-rate", "0"], "--fire-rate must be between"),
        (["--density", "1.5"], "--density must be between 0 and 1, got 1.5."),
        (["--start", "noise"], "Unknown initial state 'noise'"),
        (["--engine", "c"], "Unknown engine 'c': expected auto, numba, gpu or reference."),
        (["-o", "a.jpg"], "a.jpg must end in .rle, .png, .gif or .npy"),
        (["--every", "5"], "--every requires frames to record: add -o FILE.gif, -o FILE.npy or --live."),
        (["--live", "--json"], "--live and --json cannot be used together: give one of them."),
        (["--live"], "--live requires a terminal: give -o FILE.gif instead."),
        (["--visible", "2"], "visible must be 1 to 1, the number of channels, got 2."),
        (["--until", "period"], "--until must be 'still', 'steps' or 'period:N' with a maximum period N, got"),
        (["--until", "still", "--fire-rate", "0.5"], "--until still needs all cells to be updated in each step"),
        (["--steps", "-1"], "'--steps': -1 is not in the range x>=0."),
    ],
)
def test_wrong_options_are_reported_in_one_sentence(simulate: Call, options: list[str], complaint: str) -> None:
    done = simulate(*options)
    assert (done.code, done.out) == (2, "")
    assert done.errors.startswith("Error: ")
    assert complaint in done.errors
    assert len(done.errors.splitlines()) == 1


def test_grid_beyond_memory_is_refused(simulate: Call) -> None:
    done = simulate("--size", "9999999x9999999")
    assert (done.code, done.out) == (1, "")
    assert done.errors.startswith("Error: 9999999x9999999 cells with 1 channel need ")


def test_missing_channels_are_refused(simulate: Call, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(netlist_json.to_json(life()).replace("in[0][8]", "in[3][8]", 1))
    done = simulate(circuit="bad.json")
    assert done.code == 2
    assert "in[3][8]" in done.errors


def test_dead_gates_are_left_out(simulate: Call, tmp_path: Path) -> None:
    config = presets.checkerboard(small=True)
    netlist = CellNetlist.from_circuit(Circuit.initial(config.model, 23), visible=1)
    (tmp_path / "raw.json").write_text(netlist_json.to_json(netlist))
    done = simulate("--size", "20x10", "--steps", 3, "-o", "a.npy", circuit="raw.json")
    assert done.out.startswith("Circuit (raw.json): 0 gates per cell, 8 channels\n")
    grid = np.load(tmp_path / "a.npy")
    simulate("--size", "20x10", "--steps", 3, "--engine", "reference", "-o", "b.npy", circuit="raw.json")
    np.testing.assert_array_equal(grid, np.load(tmp_path / "b.npy"))
