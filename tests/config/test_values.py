"""Values that users of Python pass in place of an option's type."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from difflogic.config import picture_file, presets
from difflogic.config.dataset import Dataset
from difflogic.config.request import TrainRequest
from difflogic.config.values import Size, Within
from difflogic.errors import DifflogicError

X = np.eye(5, dtype=int)[None]
BITS = np.array([[1, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("target", "cat.png", Path("cat.png")),
        ("size", (24, 16), Size(24, 16)),
        ("within", 90, Within(seconds=90)),
        ("population", np.int64(4), 4),
        ("rule", 110, "110"),
    ],
)
def test_option_converts_other_types(name: str, given: Any, expected: object) -> None:
    value = getattr(TrainRequest("lizard", **{"until_solved": True, name: given}), name)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize("made", [BITS, BITS * 255, BITS[..., None] * 1.0, BITS > 0, Image.fromarray(BITS > 0)])
def test_target_takes_arrays_and_images_of_pillow(made: Any) -> None:
    file = TrainRequest("lizard", target=made).target
    assert file is not None
    np.testing.assert_array_equal(picture_file.load(file, 2).bits[..., 0], BITS)


def test_data_takes_arrays_and_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", x=X, y=1 - X)
    for given in ((X, 1 - X), [X, 1 - X, 1], str(tmp_path / "samples.npz")):
        data = TrainRequest(data=given).data  # type: ignore[arg-type]
        assert data is not None
        assert data.sha256 == Dataset.of(X, 1 - X).sha256


def test_fields_take_numbers_of_numpy() -> None:
    small = presets.checkerboard(small=True)
    changed = small.with_(train={"epochs": np.int64(5)}, task={"loss_steps": np.array([3, 20])})
    assert changed == small.with_(train={"epochs": 5}, task={"loss_steps": [3, 20]})


@pytest.mark.parametrize(
    ("name", "given"),
    [("target", 3), ("target", np.zeros((2, 3, 5))), ("data", 3), ("starts", X), ("size", 24), ("threshold", "a"),
     ("within", -1)],
)  # fmt: skip
def test_anything_else_is_refused_in_one_sentence(name: str, given: Any) -> None:
    with pytest.raises(DifflogicError, match=f"{name}|WIDTHxHEIGHT|a time"):
        TrainRequest("lizard", **{name: given})


def test_arguments_of_functions_are_options_and_fields_by_name() -> None:
    made = TrainRequest.of(preset="lizard", seed=3, batch=2, population=None, set={"train": {"epochs": 9}})
    assert made == TrainRequest("lizard", set={"seed": 3, "train": {"epochs": 9, "batch": 2}})
