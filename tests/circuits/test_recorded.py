"""Samples from recordings and patterns: frames, states, and recordings without a rule."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from difflogic.circuits import misread, recorded
from difflogic.core import rules
from difflogic.errors import DifflogicError

GLIDER = "x = 3, y = 3, rule = B3/S23\nbob$2bo$3o!\n"


def film_of(rule: str, states: int, size: tuple[int, int] = (12, 9), frames: int = 7) -> np.ndarray:
    film = [np.random.default_rng(2).integers(0, states, size)]
    step = recorded.named(rule)
    while len(film) < frames:
        film.append(step(film[-1]))
    return np.stack(film)


def test_pattern_moves_by_the_rule_of_its_header(tmp_path: Path) -> None:
    """A glider repeats after four steps, a cell further, also in plain text with a named rule."""
    (tmp_path / "glider.rle").write_text(GLIDER)
    (tmp_path / "glider.cells").write_text("!Name: glider\n.O\n..O\nOOO\n")
    samples = recorded.samples(tmp_path / "glider.rle", frames=5)
    assert (samples.x.shape, samples.steps) == ((4, 12, 12, 1), (1,))
    np.testing.assert_array_equal(samples.x[1:], samples.y[:-1, 0])
    np.testing.assert_array_equal(samples.y[3, 0], np.roll(samples.x[0], (1, 1), (0, 1)))
    other = recorded.samples(tmp_path / "glider.cells", "b3/s23", 5, (12, 12))
    assert other.sha256 == samples.sha256
    (tmp_path / "plane").write_text(GLIDER.replace("S23", "S23:P30,20"))
    plane = recorded.samples(tmp_path / "plane")
    assert plane.x.shape == (49, 20, 30, 1)
    assert plane.contradiction(periodic=True)
    assert not plane.contradiction(periodic=False)


def test_states_are_bits() -> None:
    """An electron moves along a wire; a cell that fires rests, and then is ready."""
    wire = np.array([[0] * 6, [3, 3, 2, 1, 3, 3], [0] * 6])
    np.testing.assert_array_equal(recorded.named("wireworld")(wire)[1], [3, 3, 3, 2, 1, 3])
    brain = np.zeros((6, 6), dtype=int)
    brain[2, 2:4] = 1
    after = recorded.named("brians-brain")(brain)
    assert (after == 2).sum() == 2
    assert (after == 1).sum() == 4
    np.testing.assert_array_equal(misread.bits_of(wire[None])[0, 1], [[1, 1], [1, 1], [0, 1], [1, 0], [1, 1], [1, 1]])


@pytest.mark.parametrize(("rule", "states"), [("B36/S23", 2), ("wireworld", 4), ("brians-brain", 3)])
def test_recording_is_read_in_each_format(rule: str, states: int, tmp_path: Path) -> None:
    """Several pixels a cell, the darkest colour as state 0; states in an array, and bits."""
    film = film_of(rule, states)
    np.save(tmp_path / "film.npy", film)
    bits = misread.bits_of(film)
    np.save(tmp_path / "bits.npy", bits.astype(np.float32))  # as JAX and NumPy automata save them
    shades = np.array([[0, 0, 0], [90, 0, 0], [0, 120, 40], [255, 255, 255]], dtype=np.uint8)[film]
    pictures = [Image.fromarray(frame.repeat(4, axis=0).repeat(4, axis=1)) for frame in shades]
    pictures[0].save(tmp_path / "film.gif", save_all=True, append_images=pictures[1:])
    of_array, of_bits, of_gif = (recorded.samples(tmp_path / name) for name in ("film.npy", "bits.npy", "film.gif"))
    assert of_array.sha256 == of_bits.sha256 == of_gif.sha256
    np.testing.assert_array_equal(of_array.x, bits[:-1])
    np.testing.assert_array_equal(of_array.y[:, 0], bits[1:])
    assert not of_array.contradiction(periodic=True)
    assert len(recorded.samples(tmp_path / "film.npy", frames=3)) == 2


def test_recording_of_two_shades_is_read_as_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = film_of("B3/S23", 2).astype(np.uint8)
    for name, frames in (("bits.npy", film), ("shades.npy", 255 * film), ("channel.npy", 255 * film[..., None])):
        np.save(tmp_path / name, frames)
    bits, *others = (recorded.samples(tmp_path / name).sha256 for name in ("bits.npy", "shades.npy", "channel.npy"))
    assert others == [bits, bits]
    assert capsys.readouterr().err.count(" contains only 0 and 255: 255 is read as 1.\n") == 2


def test_contradiction_names_its_place_and_count(tmp_path: Path) -> None:
    """A recording with 0 outside does not contradict itself, though it is no torus."""
    film = np.zeros((3, 8, 8), dtype=np.uint8)
    film[2, 4, 5] = 1
    np.save(tmp_path / "film.npy", film)
    with pytest.raises(DifflogicError) as raised:
        recorded.samples(tmp_path / "film.npy")
    assert str(raised.value).endswith(
        "1 neighbourhood has two successors, in 128 places in all, such as row 0, column 0 of frame 1 and "
        "row 4, column 5 of frame 2, where the cell in the middle of 0 0 0 0 0 0 0 0 0 becomes 0 and 1."
    )
    table = rules.table("B3/S23")
    alone = [np.random.default_rng(1).integers(0, 2, (9, 9), dtype=np.uint8)]
    while len(alone) < 9:
        alone.append(rules.apply(table, alone[-1], periodic=False))
    np.save(tmp_path / "alone.npy", np.stack(alone))
    samples = recorded.samples(tmp_path / "alone.npy")
    assert samples.contradiction(periodic=True)
    assert not samples.contradiction(periodic=False)


def test_recording_of_a_line_is_read(tmp_path: Path) -> None:
    film = np.random.default_rng(5).integers(0, 2, (1, 64), dtype=np.uint8)
    for _ in range(30):
        film = np.concatenate([film, np.roll(film[-1:], 1) ^ np.roll(film[-1:], -1)])  # W90
    np.save(tmp_path / "line.npy", film)
    samples = recorded.samples(tmp_path / "line.npy")
    assert samples.x.shape == (30, 1, 64, 1)
    assert not samples.contradiction(periodic=True)


def with_lines(film: np.ndarray) -> np.ndarray:
    """Return cells of 5x5 pixels behind a grid of lines two pixels wide, in a colour of their own."""
    pixels = np.pad(film[:, :, None, :, None].repeat(5, 2).repeat(5, 4), ((0, 0), (0, 0), (2, 0), (0, 0), (2, 0)),
                    constant_values=2)  # fmt: skip
    return pixels.reshape(len(film), film.shape[1] * 7, film.shape[2] * 7)


FAULTS = {
    "with its last axis as time: save np.moveaxis(frames, -1, 0)": lambda film: film.transpose(1, 2, 0),
    "with its second axis as channels: save": lambda film: np.stack([film, 1 - film, 0 * film], axis=1),
    "with its third axis as time: save": lambda film: np.stack([film, 1 - film], -1).transpose(1, 2, 0, 3),
    "as 3 recordings [T, H, W]: give them to --data": lambda film: np.stack([film, film[:, ::-1], 1 * film[..., ::-1]]),
    "without repeated frames": lambda film: film[[0, 0, 1, 2, 2, 2, *range(3, len(film))]],
    "with every second frame left out: save frames[::2]": lambda film: np.insert(film, range(1, 13), film[::-1], 0),
    "of two steps per frame: record every step": lambda film: film,
    "without its margin.": lambda film: np.pad(film, ((0, 0), (3, 1), (0, 2))),
    "without its grid lines with one pixel per cell.": with_lines,
    "without its margin and its grid lines with one": lambda film: np.pad(with_lines(film), ((0, 0), (3, 4), (5, 6))),
    " with one pixel per cell.": lambda film: np.pad(film, ((0, 0), (1, 0), (0, 0))).repeat(4, 1).repeat(3, 2)[:, 4:-1],
}


@pytest.mark.parametrize("said", FAULTS)
def test_usual_mistake_in_a_recording_is_named(said: str, tmp_path: Path) -> None:
    film = film_of("B3/S23", 2, (24, 20), 40)[:: 2 if "of two steps" in said else 1][-12:].astype(np.uint8)
    np.save(tmp_path / "film.npy", FAULTS[said](film))
    with pytest.raises(DifflogicError) as raised:
        recorded.samples(tmp_path / "film.npy")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("one.npy", np.zeros((1, 5, 5), dtype=int), {}, "has one frame: expected at least 2."),
        ("flat.npy", np.zeros(5, dtype=int), {}, "must be numbers of shape [T, W] or [T, H, W] or [T, H, W, C]"),
        ("half.npy", np.full((2, 5, 5), 0.5), {}, "of cells as integers, got 0.5."),
        ("nan.npy", np.full((2, 5, 5), np.nan), {}, "of cells as integers, got nan."),
        ("many.npy", np.full((2, 5, 5), 256), {}, "must be 0 to 255, got 256 to 256."),
        ("pickled.npy", np.array([{}]), {}, "Cannot read the recording"),
        ("film.npy", np.zeros((2, 5, 5), dtype=int), {"rule": "B3/S23"}, "require a pattern, but "),
        ("no.gif", "text", {}, "Cannot read the recording"),
        ("large.rle", "x = 2000, y = 2000, rule = B3/S23\n!", {}, "cells in all frames, expected at most"),
        ("two.rle", "x = 2, y = 1\nAB!", {"rule": "B3/S23"}, "has state 2, but the rule B3/S23 has states 0 to 1."),
        ("glider.rle", GLIDER, {"size": (1 << 20, 1 << 20)}, "cells in all frames, expected at most"),
        ("film.mp4", "text", {}, "Expected a recording, .gif or .npy, or a pattern, RLE, "),
        ("bad.cells", "!\nx.O", {"rule": "B3/S23"}, "expected rows of . and O, got 'x'."),
        ("nameless.cells", ".O", {}, "does not state its rule: name one with --recording-rule, for example B3/S23."),
        ("glider.rle", GLIDER, {"rule": "B3"}, "'B3' is not a rule"),
        ("glider.rle", GLIDER, {"size": (2, 9)}, "is 3 cells wide and 3 high: use a larger --size."),
    ],
)
def test_file_without_a_recording_is_refused(name: str, content: object, options: dict, message: str, tmp_path) -> None:
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    elif isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content, allow_pickle=True)
    with pytest.raises(DifflogicError) as raised:
        recorded.samples(tmp_path / name, **options)
    assert message in str(raised.value)
