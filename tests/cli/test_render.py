"""`difflogic render`: every kind of image and animation, and the options that it refuses."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.circuits.simulation.starts import planes_of
from difflogic.cli.main import main
from difflogic.config.resized import resized
from difflogic.core import prng
from difflogic.core.bits import unpack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.evaluation import rehearsal
from difflogic.model.cell_netlist import CellNetlist
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import checkpoint
from difflogic.runs.plots import colors
from tests.cli.conftest import Said
from tests.evaluation.pass_on import keeper_config, kept

PICTURE = ("124", "...", "777", "1.1")
STILL = {"target": "picture", "picture": PICTURE, "start": "picture", "start_picture": PICTURE}
STILL |= {"height": 4, "width": 3, "steps": 3, "loss_channels": 3}


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run whose circuit keeps every cell of a small coloured image."""
    monkeypatch.chdir(tmp_path)
    kept(tmp_path / "still", keeper_config(4, STILL))
    return Path("still")


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A circuit that keeps every cell of 5x6."""
    monkeypatch.chdir(tmp_path)
    task = {"target": "checkerboard", "height": 5, "width": 6, "steps": 3}
    kept(tmp_path / "board", keeper_config(2, task))
    return Path("board")


def pixels(path: str, scale: int, index: int = 0) -> np.ndarray:
    """RGB, a pixel a cell, of one frame."""
    with Image.open(path) as picture:
        picture.seek(index)
        return np.asarray(picture.convert("RGB"))[::scale, ::scale]


def render(*arguments: object) -> int:
    return main(["render", *map(str, arguments), "--engine", "reference"])


def test_animation_shows_the_rollout(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(run, "-o", "film.gif", "--size", "7x9", "--steps", 5, "--seed", 3, "--scale", 2) == 0
    assert capsys.readouterr().out == f"Written: film.gif, {Path('film.gif').stat().st_size / 1000:.1f} kB\n"
    found = checkpoint.load(run)
    config = resized(found.config.with_(seed=3), 9, 7)
    start = rehearsal.fresh_starts(config, 1, prng.split(rehearsal.evaluation_key(config))[0])
    states = ReferenceEngine().rollout(found.circuit, start, 5, "hard")[:, 0].astype(np.uint8)
    for step in (0, 1, 2):
        assert np.array_equal(pixels("film.gif", 2, step), colors(states[step, ..., :1]))


def test_equal_seeds_give_equal_animations(run: Path) -> None:
    options = ("--async", "--damage", 2, "--damage-at", "random", "--damage-steps", "1-2", "--start", "random")
    for name, seed in (("a.apng", 1), ("b.apng", 1), ("c.apng", 2)):
        assert render(run, "-o", name, "--seed", seed, *options) == 0
    assert Path("a.apng").read_bytes() == Path("b.apng").read_bytes() != Path("c.apng").read_bytes()


def test_rollouts_from_one_initial_state_are_side_by_side(run: Path) -> None:
    """The first is the one that is drawn alone; in the others other cells fire."""
    asked = ("--size", "7x9", "--steps", 3, "--at", "0,3", "--scale", 1, "--async")
    assert render(run, "-o", "one.gif", *asked) == 0
    assert render(run, "-o", "three.gif", *asked, "--rollouts", 3) == 0
    for frame in (0, 1):
        one, three = pixels("one.gif", 1, frame), pixels("three.gif", 1, frame)
        parts = [three[:, left : left + 7] for left in (0, 8, 16)]
        assert three.shape == (9, 23, 3)
        np.testing.assert_array_equal(parts[0], one)
        assert all((part == one).all() for part in parts) == (frame == 0)


def test_damage_is_drawn_in_colours(still: Path) -> None:
    hole = ("--damage", 2, "--damage-at", "1,1", "--damage-steps", 2)
    assert render(still, "-o", "film.gif", "--scale", 1, *hole) == 0
    start = pixels("film.gif", 1, 0)
    assert start[0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert start[2].tolist() == [[255, 255, 255]] * 3
    damaged = pixels("film.gif", 1, 1)
    assert damaged[2].tolist() == [[255, 255, 255], [0, 0, 0], [0, 0, 0]]
    assert np.array_equal(damaged[0], start[0])


def test_channels_select_the_image(still: Path) -> None:
    assert render(still, "-o", "tiles.gif", "--scale", 1, "--channels", "all") == 0
    assert pixels("tiles.gif", 1).shape == (2 * 5 - 1, 2 * 4 - 1, 3)
    assert render(still, "-o", "one.gif", "--scale", 1, "--channels", 1) == 0
    assert pixels("one.gif", 1)[0].tolist() == [[0] * 3, [255] * 3, [0] * 3]


def test_start_selects_the_initial_state(still: Path) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (3, 3, 4))
    np.save("start.npy", bits)
    np.save("flat.npy", bits[..., 0].astype(bool))
    Image.fromarray(np.array([[[255, 0, 0], [0, 0, 0]], [[0, 255, 255], [9, 9, 9]]], dtype=np.uint8)).save("start.png")
    for start, top, expected in (
        ("start.npy", 0, colors(bits[..., :3].astype(np.uint8))),
        ("flat.npy", 0, np.stack([bits[..., 0] * 255, bits[..., 0] * 0, bits[..., 0] * 0], axis=-1)),
        ("start.png", 1, [[[255, 0, 0], [0, 0, 0]], [[0, 255, 255], [0, 0, 0]]]),
    ):
        assert render(still, "-o", "film.gif", "--scale", 1, "--start", start, "--force") == 0
        shown = pixels("film.gif", 1)
        left = (3 - np.shape(expected)[1]) // 2
        assert np.array_equal(shown[top : top + len(expected), left : left + np.shape(expected)[1]], expected)
    assert render(still, "-o", "film.gif", "--scale", 1, "--start", "seed", "--size", "5x5", "--force") == 0
    assert pixels("film.gif", 1).sum() == pixels("film.gif", 1)[2, 2].sum() == 3 * 255
    # The odd cell that is left over is where `simulate` has it.
    model = checkpoint.load(still)
    spec = SimulationSpec(CellNetlist.of_run(model.circuit, model.config), 4, 4)
    assert render(still, "-o", "film.gif", "--scale", 1, "--start", "flat.npy", "--size", "4x4", "--force") == 0
    simulated = unpack_planes(planes_of(spec, "flat.npy", 0), 4)[..., 0]
    assert np.array_equal(pixels("film.gif", 1)[..., 0] > 0, simulated > 0)
    assert render(still, "-o", "film.gif", "--start", "zeros", "--force") == 0
    assert pixels("film.gif", 8).sum() == 0


def test_boundary_changes_the_rollout(run: Path) -> None:
    for boundary in ("zero", "periodic"):
        assert render(run, "-o", f"{boundary}.apng", "--boundary", boundary, "--steps", 9) == 0
    assert render(run, "-o", "own.apng", "--steps", 9) == 0
    assert Path("own.apng").read_bytes() == Path("zero.apng").read_bytes() != Path("periodic.apng").read_bytes()


@pytest.mark.usefixtures("painted")
def test_strip_gates_and_loss_are_drawn(run: Path) -> None:
    assert render(run, "-o", "strip.png", "--at", "0,2-3", "--scale", 4) == 0
    with Image.open("strip.png") as picture:
        assert picture.width == 3 * (6 * 4 + 6) + 6
    for what in ("gates", "loss"):
        assert main(["render", str(run), "-o", f"{what}.png", "--what", what]) == 0
        with Image.open(f"{what}.png") as picture:
            assert picture.width > 500


@pytest.mark.parametrize(("arguments", "text"), [
    (["-o", "film.mp4"], "Expected a file name ending in .gif, .apng, .png for rollout, got film.mp4."),
    (["-o", "film"], "Expected a file name ending in .gif, .apng, .png for rollout, got film."),
    (["-o", "gates.gif", "--what", "gates"], "file name ending in .png for gates, got"),
    (["-o", "gates.png", "--what", "gates", "--steps", "3"], "--what gates does not show a rollout: omit --steps."),
    (["-o", "film.gif", "--size", "2x9"], "2"),
    (["-o", "film.gif", "--size", "9"], "Expected a size WIDTHxHEIGHT in cells, such as 24x24, got '9'."),
    (["-o", "film.gif", "--channels", "2"], "Expected a channel from 0 to 1, got 2."),
    (["-o", "film.gif", "--channels", "red"], "'red' is not a channel: expected loss, all, or a number."),
    (["-o", "film.gif", "--at", "9"], "Expected steps from 0 to 3, the length of the rollout, got 9."),
    (["-o", "film.gif", "--at", "5-3"], "write the lower end of a range first"),
    (["-o", "film.gif", "--damage-steps", "now"], "'now' is not a list of steps: expected, for example, 12,"),
    (["-o", "film.gif", "--damage-at", "here", "--damage", "1"], "'here' is not a position"),
    (["-o", "film.gif", "--damage-at", "0,0"], "--damage-at and --damage-steps require --damage SIDE."),
    (["-o", "film.gif", "--fire-rate", "0"], "Invalid value for '--fire-rate'"),
    (["-o", "film.gif", "--start", "picture"], "The run has no initial image"),
    (["-o", "film.gif", "--start", "noise"], "Expected --start random, boards, seed, zeros, picture or a file"),
    (["-o", "film.gif", "--start", "no.npy"], "Cannot read the start no.npy"),
    (["-o", "film.gif", "--start", "no.png"], "Cannot read the image no.png"),
    (["-o", "film.gif", "--start", "half.npy"], "must contain only 0 and 1"),
    (["-o", "film.gif", "--start", "words.npy"], "must be numbers of shape [H, W] or [H, W, C], got <U"),
    (["-o", "film.gif", "--rollouts", "3"], "All rollouts of this synchronous circuit"),
    (["-o", "film.gif", "--start", "wide.npy"], "expected at most 6x5 cells of 2 channels, got 9x2 cells of 1."),
])  # fmt: skip
def test_wrong_options_are_refused(board: Path, said: Said, arguments: list[str], text: str) -> None:
    np.save("half.npy", np.full((3, 3), 0.5))
    np.save("words.npy", np.array([["a"]]))
    np.save("wide.npy", np.zeros((2, 9)))
    errors = said("render", board, *arguments, "--engine", "reference", code=2).err
    assert text in errors
    assert errors.count("\n") == 1
    assert not Path("film.gif").exists()


def test_missing_metrics_are_reported(still: Path, said: Said) -> None:
    errors = said("render", still, "-o", "loss.png", "--what", "loss", code=2).err
    assert "No metrics for still: expected a run folder with metrics.jsonl." in errors


def test_grid_beyond_memory_is_refused_at_once(run: Path, said: Said) -> None:
    errors = said("render", run, "-o", "film.gif", "--size", "900000x900000", code=1).err
    assert "Error: Displaying a grid of 810000000000 cells needs about " in errors
    assert not Path("film.gif").exists()
