"""Images and rule tables in files: colours, transparency, sizes, and what is refused."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from difflogic.config import customise, picture_file
from difflogic.core import rules, text_picture
from difflogic.errors import ConfigError, DataError

RED, GREEN, WHITE, BLACK, CLEAR = (255, 0, 0, 255), (0, 255, 0, 255), (255,) * 4, (0, 0, 0, 255), (255, 255, 255, 0)


def save(path: Path, rows: object, mode: str = "RGBA", **options: object) -> Path:
    Image.fromarray(np.array(rows, dtype=np.uint8)).convert(mode).save(path, **options)
    return path


def test_black_and_white_image_has_one_channel(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", [[WHITE, BLACK, BLACK], [RED, (60, 67, 0, 255), (60, 66, 0, 255)]])
    assert picture_file.load(path, 2).bits[..., 0].tolist() == [[1, 0, 0], [1, 1, 0]]
    assert picture_file.load(path, 2, threshold=0.999).bits[..., 0].tolist() == [[1, 0, 0], [1, 0, 0]]


def test_drawing_that_is_dark_on_light_is_inverted_unless_refused(tmp_path: Path) -> None:
    """Its ink keeps its hue."""
    path = save(tmp_path / "a.png", [[WHITE] * 5, [WHITE, BLACK, RED, BLACK, WHITE], [WHITE] * 5])
    bits, notices = picture_file.load(path)
    assert text_picture.encode(bits) == (".....", ".717.", ".....")
    assert "inverted: set `invert` to false" in notices[0]
    kept = picture_file.load(path, invert=False)
    assert (text_picture.encode(kept.bits)[1], kept.notices) == ("7.1.7", ())
    path = save(tmp_path / "b.png", [[WHITE] * 5, [WHITE, BLACK, RED, CLEAR, WHITE], [WHITE] * 5])
    assert picture_file.load(path, 2, invert=True).bits[1, :, 0].tolist() == [0, 1, 1, 0, 0]
    assert not picture_file.is_dark_on_light(np.ones((4, 4, 1), np.uint8)), "nothing is drawn on it"
    with pytest.raises(DataError, match="transparent or too light"):
        picture_file.load(save(tmp_path / "c.png", [[WHITE] * 3] * 3), 2, invert=True)


@pytest.mark.parametrize(
    ("row", "cells", "notices"),
    [
        ([BLACK, WHITE], ".1", []),
        ([(255, 255, 255, 66), (255, 255, 255, 67)], ".1", []),
        ([CLEAR, BLACK, GREEN], ".72", ["Opaque cells turn on: 1 dark cell in white."]),
        ([CLEAR, BLACK, WHITE], ".47", ["Opaque cells turn on: 1 dark cell in blue."]),
        ([CLEAR, BLACK, BLACK], ".11", ["Opaque cells turn on: 2 dark cells in white."]),
        ([RED, (80, 0, 0, 255), BLACK], "11.", ["The image's 3 colours are reduced to 2."]),
        ([WHITE, (60, 60, 60, 255), BLACK], "1..", ["1 faint cell of the image turned off: `threshold` is 0.26.",
                                                    "The image's 3 colours are reduced to 2."]),
        ([(255, 170, 85, 255), BLACK], "h.", []),
    ],
    ids=["white", "opacity", "dark on clear", "with white", "silhouette", "dark hue", "faint", "64"],
)  # fmt: skip
def test_image_is_read_in_its_own_colours_and_losses_are_reported(row, cells, notices, tmp_path) -> None:
    picture = picture_file.load(save(tmp_path / "a.png", [row]))
    assert (*text_picture.encode(picture.bits), *picture.notices) == (cells, *notices)


def test_eight_colours_are_a_bit_of_red_green_and_blue(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", [[RED, GREEN, (0, 0, 255, 255)], [(255, 200, 100, 255), (0, 0, 0, 255), WHITE]])
    bits = picture_file.load(path, 8).bits
    assert bits.tolist() == [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 1, 0], [0, 0, 0], [1, 1, 1]]]


def test_sixty_four_colours_are_two_bits_each_high_ones_first(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", [[(255, 170, 85, 255), (0, 42, 43, 255), (127, 128, 212, 255)]])
    assert picture_file.load(path, 64).bits.tolist() == [[[1, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1], [0, 1, 1, 1, 0, 0]]]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "LA"])
def test_every_mode_of_pixels_is_read(mode: str, tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", [[WHITE, BLACK, WHITE]], mode)
    assert picture_file.load(path, 2).bits[..., 0].tolist() == [[1, 0, 1]]


def test_sixteen_bits_a_pixel_are_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.array([[65535, 0, 16000, 18000]], dtype=np.uint16)).save(tmp_path / "a.png")
    assert picture_file.load(tmp_path / "a.png", 2).bits[..., 0].tolist() == [[1, 0, 0, 1]]


def test_turned_photograph_is_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    pixels = np.repeat(np.repeat([[255, 0]], 8, axis=0), 8, axis=1)
    save(tmp_path / "a.jpg", pixels, "L", exif=exif)
    assert picture_file.load(tmp_path / "a.jpg", 2).bits[0, :, 0].tolist() == [0] * 8 + [1] * 8


def test_size_keeps_proportions_and_never_enlarges(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", np.full((100, 200, 4), 255))
    assert picture_file.load(path, 2, (20, 20)).bits.shape == (10, 20, 1)
    path = save(tmp_path / "b.png", np.full((5, 6, 4), 255))
    assert picture_file.load(path, 2, (20, 20)).bits.shape == (5, 6, 1)


def test_image_beyond_128_cells_a_side_is_scaled_down(tmp_path: Path) -> None:
    assert picture_file.load(save(tmp_path / "a.png", np.full((128, 128), 255)), 2).bits.shape == (128, 128, 1)
    picture = picture_file.load(save(tmp_path / "b.png", np.full((2, 129), 255)))
    assert picture.bits.shape == (1, 24, 1)
    assert picture.notices == ("The image is scaled down from 129x2 pixels to 24x1 cells.",)


def header_of(width: int, height: int) -> bytes:
    """Write a PNG whose header has these sides, without pixels."""
    chunks = (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


@pytest.mark.parametrize("sides", [(4096, 4097), (12_000, 12_000), (100_000, 100_000)])
def test_image_that_would_fill_the_memory_is_refused(sides: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(header_of(*sides))
    with pytest.raises(DataError, match=r"more than 16,777,216.*: scale it down first\.$"):
        picture_file.load(tmp_path / "bomb.png", 2, (20, 20))


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_animation_is_refused(name: str, tmp_path: Path) -> None:
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 255)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"is animated: expected a still image, such as a frame saved as PNG\.$"):
        picture_file.load(tmp_path / name, 2)


def test_files_that_are_no_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("a cat")
    (tmp_path / "empty.png").write_bytes(b"")
    save(tmp_path / "a.tiff", [[WHITE]])
    whole = save(tmp_path / "whole.png", np.random.default_rng(1).integers(0, 256, (40, 40, 4))).read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    known = "PNG, GIF, JPEG, BMP, WEBP, PPM"
    for name, words in (
        ("nowhere.png", "Cannot read the image {}: No such file or directory."),
        ("", "{} is not a file: expected an image (" + known + ")."),
        ("empty.png", "{} is empty: expected an image (" + known + ")."),
        ("text.png", "{} is not an image that can be read, expected " + known + ", undamaged."),
        ("half.png", "{} is not an image that can be read, expected " + known + ", undamaged."),
        ("a.tiff", "{} is not an image that can be read, expected " + known + ", undamaged."),
    ):
        with pytest.raises(DataError) as raised:
            picture_file.load(tmp_path / name, 2)
        assert str(raised.value) == words.format(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="is not a file"):
        picture_file.load(tmp_path / "pipe", 2)


def test_empty_image_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", [[BLACK, BLACK]])
    with pytest.raises(DataError, match=r"a\.png has no pixel that is on: all are transparent or too dark"):
        picture_file.load(path, 8)


def test_sixty_four_colours_have_no_threshold(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="omit `threshold`"):
        picture_file.load(tmp_path / "a.png", 64, threshold=0.5)


@given(kind=st.sampled_from(picture_file.FORMATS), data=st.data())
def test_damaged_file_is_an_image_or_an_error_message(kind: str, data: st.DataObject, tmp_path_factory) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(buffer, kind)
    content = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    try:
        bits = picture_file.load(path, 8, (8, 8)).bits
    except DataError:
        return
    assert set(np.unique(bits)) <= {0, 1}


ENTRIES = rules.table("B36/S23")
DIGITS = np.packbits(ENTRIES).tobytes().hex()


@pytest.mark.parametrize(
    "text",
    [
        "".join(map(str, ENTRIES)),
        "\n".join(" ".join(map(str, row)) for row in ENTRIES.reshape(32, 16)) + "\n",
        DIGITS,
        DIGITS.upper() + "\r\n",
        "\ufeff" + DIGITS,
    ],
)
def test_text_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "rule").write_text(text)
    assert np.array_equal(rules.table(customise.load_rule(tmp_path / "rule")), ENTRIES)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_arrays_are_read(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rule.npy", ENTRIES.reshape((2,) * 9).astype(dtype))
    assert np.array_equal(rules.table(customise.load_rule(tmp_path / "rule.npy")), ENTRIES)


@pytest.mark.parametrize("content", [b"", b"01" * 255, b"2" * 512, b"g" * 128, b"\xff" * 128, b"\x93NUMPY\x01\x00"])
def test_other_text_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "rule").write_bytes(content)
    sentence = "is not a rule table: expected 512 digits 0 and 1, or 128 hexadecimal digits"
    with pytest.raises(ConfigError, match=sentence):
        customise.load_rule(tmp_path / "rule")


@pytest.mark.parametrize("array", [np.zeros(511), np.full(512, 2), np.full(512, np.nan)])
def test_other_arrays_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rule.npy", array, allow_pickle=True)
    with pytest.raises(ConfigError, match="is not a rule table: "):
        customise.load_rule(tmp_path / "rule.npy")


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "No such file or directory"), ("", "Is a directory")])
def test_unreadable_files_are_refused(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        customise.load_rule(tmp_path / name)
    assert str(raised.value) == f"Cannot read the rule table {tmp_path / name}: {reason}."
