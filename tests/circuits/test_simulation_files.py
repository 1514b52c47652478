"""Patterns and images: files are read back, and errors of a file are one sentence."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from difflogic.circuits import rle
from difflogic.circuits.export import golly
from difflogic.circuits.simulation import pictures, starts
from difflogic.circuits.simulation.results import Recording
from difflogic.circuits.synthesis import tools
from difflogic.core import bernoulli, patterns, rules
from difflogic.core.bits import pack_planes, unpack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import DataError, DifflogicError, UsageError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from difflogic.system.files import Output
from tests.export_cases import life
from tests.programs import needs
from tests.random_netlists import random_netlist

GLIDER = "#N Glider\n#C a remark\nx = 3, y = 3, rule = B3/S23\nbob$2bo$3o!\nwhatever follows"
CELLS = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=np.uint8)


def identity(channels: int, visible: int = 1) -> CellNetlist:
    return CellNetlist.build(channels, False, [], [], [9 * channel + 4 for channel in range(channels)], visible)


def grids(most_channels: int = 8) -> st.SearchStrategy[np.ndarray]:
    def grid(height: int, width: int, channels: int, seed: int, share: float) -> np.ndarray:
        return (np.random.default_rng(seed).random((height, width, channels)) < share).astype(np.uint8)

    shape = (st.integers(1, 9), st.integers(1, 200), st.integers(1, most_channels))
    return st.builds(grid, *shape, st.integers(0, 2**32 - 1), st.sampled_from([0, 0.02, 0.5, 1]))


@given(grids())
def test_rle_is_read_back_as_the_same_states(tmp_path_factory: pytest.TempPathFactory, grid: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("rle") / "a.rle"
    path.write_text(rle.text(grid, "Codd"))
    assert max(len(line) for line in path.read_text().splitlines()[1:]) <= rle.LINE
    pattern = patterns.read(path)
    np.testing.assert_array_equal(patterns.bits_of(pattern.states, grid.shape[2]), grid)
    assert pattern.rule == "Codd"


@given(grids(3))
def test_png_is_read_back(tmp_path_factory: pytest.TempPathFactory, grid: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("png") / "a.png"
    channels = grid.shape[2]
    path.write_bytes(pictures.png(pack_planes(grid), grid.shape[1], visible=channels))
    assert pictures.size(path) == grid.shape[:2]
    shown = pictures.shown(channels)
    np.testing.assert_array_equal(pictures.read(path, channels, channels), grid[..., :shown])


@given(grids(1), st.integers(1, 40), st.integers(1, 40))
def test_reduced_image_has_means(grid: np.ndarray, most_rows: int, most_columns: int) -> None:
    height, width = grid.shape[:2]
    small = pictures.picture(pack_planes(grid), width, 1, (most_rows, most_columns))
    side = max(1, -(-height // most_rows), -(-width // most_columns))
    assert small.shape == (-(-height // side), -(-width // side))
    for row, column in np.ndindex(small.shape):
        cells = grid[row * side : (row + 1) * side, column * side : (column + 1) * side, 0]
        assert small[row, column] == 255 * int(cells.sum()) // cells.size


def test_large_grid_is_drawn_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.random.default_rng(0).integers(0, 2, (50, 70, 1)).astype(np.uint8)
    whole = pictures.picture(pack_planes(grid), 70, 1, (9, 9))
    monkeypatch.setattr(pictures, "_PIXELS", 1)
    np.testing.assert_array_equal(pictures.picture(pack_planes(grid), 70, 1, (9, 9)), whole)


def spec(channels: int = 1, side: tuple[int, int] = (10, 70), visible: int = 1) -> SimulationSpec:
    return SimulationSpec(identity(channels, visible), *side, seed=5)


def test_random_initial_states_are_fair_in_every_channel() -> None:
    planes = starts.planes_of(spec(3), "random", 20000)
    for channel in range(3):
        expected = bernoulli.coins(bernoulli.start_key(5, channel), 10, 2, 20000)
        expected[:, -1] &= np.uint64(0x3F)
        np.testing.assert_array_equal(planes[:, channel], expected)


def test_seed_and_zeros_are_initial_states() -> None:
    cells = unpack_planes(starts.planes_of(spec(3, (11, 200)), "seed", 0), 200)
    assert np.argwhere(cells).tolist() == [[5, 100, channel] for channel in range(3)]
    assert not starts.planes_of(spec(3), "zeros", 0).any()


@pytest.mark.parametrize("suffix", [".rle", ".png", ".npy", ".NPY"])
def test_cells_of_a_file_are_centred(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"glider{suffix}"
    if suffix == ".rle":
        path.write_text(GLIDER)
    elif suffix == ".png":
        Image.fromarray(CELLS * np.uint8(255)).save(path)
    else:
        with path.open("wb") as file:
            np.save(file, CELLS.astype(bool))
    assert starts.start_file(str(path)) == (3, 3, None)
    cells = unpack_planes(starts.planes_of(spec(2), str(path), 0), 70)
    np.testing.assert_array_equal(cells[3:6, 33:36, 0], CELLS)
    assert cells.sum() == 5


def test_npy_contains_every_channel(tmp_path: Path) -> None:
    grid = np.random.default_rng(1).integers(0, 2, (10, 70, 3))
    np.save(tmp_path / "a.npy", grid.astype(float))
    np.testing.assert_array_equal(unpack_planes(starts.planes_of(spec(3), str(tmp_path / "a.npy"), 0), 70), grid)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((5, 5, 2)), "has 2 channels, but the circuit has 3: expected an array [H, W] or [H, W, 3]."),
        (np.zeros(5), "must be numbers of shape [H, W] or [H, W, C], got float64 of shape [5]."),
        (np.full((3, 3), 2), "must contain only 0 and 1"),
        (np.full((3, 3), np.nan), "must contain only 0 and 1"),
        (np.array([["a"]]), "must be numbers of shape [H, W] or [H, W, C], got <U1 of shape [1, 1]."),
        (np.zeros((11, 5)), "has 5x11 cells, more than the grid of 70x10: use a larger --size, or omit it."),
    ],
)
def test_invalid_arrays_are_refused(tmp_path: Path, array: np.ndarray, complaint: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=re.escape(f"a.npy {complaint}")):
        starts.planes_of(spec(3), str(tmp_path / "a.npy"), 0)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, data in (("a.npy", b"no"), ("a.npy", b""), ("a.png", b"no"), ("b.png", b"\x89PNG\r\n\x1a\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match=re.escape(str(tmp_path / name))):
            starts.planes_of(spec(), str(tmp_path / name), 0)
    np.savez(tmp_path / "a", CELLS)
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(DataError, match=r"Cannot read the start .*: it is an archive"):
        starts.planes_of(spec(), str(tmp_path / "a.npy"), 0)


def test_damaged_image_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (9, 9), dtype=np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    with pytest.raises(DataError, match=r"a\.png is a damaged image"):
        starts.planes_of(spec(), str(tmp_path / "a.png"), 0)


@pytest.mark.parametrize(
    ("start", "complaint"),
    [
        (
            "noise",
            "Unknown initial state 'noise': expected random, seed, zeros, picture (the circuit's own), or a file: a "
            "pattern, .png or .npy.",
        ),
        ("absent.rle", "The file absent.rle does not exist."),
    ],
)
def test_invalid_starts_are_refused(start: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        starts.file_of(start)


def test_own_image_of_a_circuit_is_its_initial_state() -> None:
    home = Scenario("picture", 2, 4, 5, picture=("1.2.", ".3.."))
    with_picture = replace(spec(3), netlist=replace(spec(3).netlist, scenario=home))
    grid = unpack_planes(starts.planes_of(with_picture, "picture", 0), with_picture.width)
    top, left = (with_picture.height - 2) // 2, (with_picture.width - 4) // 2
    assert grid[top, left : left + 3].tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert grid.sum() == 4
    with pytest.raises(DataError, match="own image has 4x2 cells, more than the grid of 3x3"):
        starts.planes_of(replace(with_picture, height=3, width=3), "picture", 0)
    with pytest.raises(UsageError, match="has no initial image for `picture`"):
        starts.planes_of(spec(3), "picture", 0)


def recorded(tmp_path: Path, name: str, grid: np.ndarray, visible: int = 1, every: int | None = None) -> Recording:
    netlist = identity(grid.shape[2], visible)
    recording = Recording(Output(tmp_path / name), SimulationSpec(netlist, *grid.shape[:2]), steps=30, every=every)
    for _ in range(3 if recording.every else 0):
        recording.add(pack_planes(grid))
    recording.write(pack_planes(grid))
    return recording


def test_results_are_read_as_initial_states(tmp_path: Path) -> None:
    grid = np.random.default_rng(2).integers(0, 2, (10, 70, 3)).astype(np.uint8)
    for name in ("a.rle", "a.npy", "a.PNG"):
        recorded(tmp_path, name, grid, visible=3)
        again = starts.planes_of(spec(3, visible=3), str(tmp_path / name), 0)
        np.testing.assert_array_equal(unpack_planes(again, 70), grid)


def test_rle_of_many_channels_contains_the_visible_ones(tmp_path: Path) -> None:
    grid = np.random.default_rng(2).integers(0, 2, (4, 5, 9)).astype(np.uint8)
    recording = recorded(tmp_path, "a.rle", grid, visible=3)
    assert recording.notes == ["the RLE contains 3 of 9 channels, unlike .npy"]
    np.testing.assert_array_equal(patterns.bits_of(patterns.read(tmp_path / "a.rle").states, 3), grid[..., :3])


@pytest.mark.parametrize("periodic", [True, False])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_golly_steps_an_rle_as_the_circuit_does(tmp_path_factory, seed: int, periodic: bool) -> None:
    """It does if the circuit has one channel and stays empty; else it shows the states under a rule of its own."""
    needs("bgolly")
    rng = np.random.default_rng(seed)
    netlist = replace(random_netlist(rng, 12, int(rng.integers(1, 3)), periodic, reach=12), scenario=None)
    grid = rng.integers(0, 2, (9, 14, netlist.channels)).astype(np.uint8)
    folder = tmp_path_factory.mktemp("golly")
    Recording(Output(folder / "a.rle"), SimulationSpec(netlist, 9, 14), 1, None).write(pack_planes(grid))
    np.testing.assert_array_equal(patterns.read(folder / "a.rle").states, rle.numbers(grid))
    exact = "012345678//" not in (folder / "a.rle").read_text()
    steps, algorithm = (7, "QuickLife") if exact else (0, "Generations")
    tools.run_in(folder, "bgolly", "-a", algorithm, "-m", str(steps), "-o", "b.rle", "a.rle")
    expected = rle.numbers(netlist.after(grid, steps))
    found = golly.cut(patterns.read(folder / "b.rle").states)
    assert np.array_equal(found, golly.cut(expected))


def test_rule_of_an_rle_has_its_usual_name(tmp_path: Path) -> None:
    for periodic, outside in ((True, "T"), (False, "P")):
        asynchronous = SimulationSpec(life(periodic), 5, 6, fire_units=1 << 15)
        recording = Recording(Output(tmp_path / "a.rle", force=True), asynchronous, 1, None)
        recording.write(pack_planes(np.zeros((5, 6, 1), dtype=np.uint8)))
        remark, header = (tmp_path / "a.rle").read_text(encoding="ascii").splitlines()[:2]
        assert header == f"x = 6, y = 5, rule = B3/S23:{outside}6,5"
        assert remark == "#C Here only some cells are updated in each step, in Golly all."
    nor = CellNetlist.build(1, True, [8], [[0, 1]], [9])
    assert rle.rule_of(nor, 5, 6)[0] == "012345678//4", "something comes of nothing"
    west = CellNetlist.build(1, True, [], [], [3])
    name = rle.rule_of(west, 5, 6)[0].removesuffix(":T6,5")
    assert (name[:3], len(name)) == ("MAP", 3 + 86)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(name[3:] + "=="), np.uint8))
    assert bits.tolist() == rules.patches()[:, 3].tolist()


@pytest.mark.parametrize("rule", ["B3/S23", "B36/S23", "B/S", "B012345678/S012345678"])
def test_counted_rule_is_recognised(rule: str) -> None:
    assert rules.counted(rules.table(rule)) == rule
    entries = rules.table(rule)
    entries[5] ^= 1
    assert rules.counted(entries) is None


def test_files_of_several_states_have_all_frames(tmp_path: Path) -> None:
    grid = np.random.default_rng(2).integers(0, 2, (600, 5, 1)).astype(np.uint8)
    recorded(tmp_path, "a.npy", grid, every=10)
    assert np.load(tmp_path / "a.npy").shape == (3, 600, 5, 1)
    recording = recorded(tmp_path, "a.gif", grid)
    assert recording.every == 1
    assert recording.notes == ["a pixel of the GIF is the mean of 2x2 cells"]
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.size == (3, 300)


@pytest.mark.parametrize(
    ("name", "every", "complaint"),
    [
        ("a.txt", None, "a.txt must end in .rle, .png, .gif or .npy, which selects the format."),
        ("none/a.png", None, "none does not exist. Create it first."),
        ("a.png", 5, "--every needs a file of several states, .gif or .npy, got .png."),
    ],
)
def test_invalid_outputs_are_refused(tmp_path: Path, name: str, every: int | None, complaint: str) -> None:
    with pytest.raises(DifflogicError, match=re.escape(complaint)):
        Recording(Output(tmp_path / name), SimulationSpec(life(), 5, 5), 30, every)
