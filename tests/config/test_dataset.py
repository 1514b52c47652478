"""Samples of arrays and files, and the error messages for wrong ones."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.config import dataset, presets
from difflogic.config.customise import configure
from difflogic.config.dataset import Dataset
from difflogic.config.request import TrainRequest
from difflogic.errors import ConfigError, DataError, DifflogicError, LimitError, UsageError
from difflogic.system import array_files

RNG = np.random.default_rng(3)
X = RNG.integers(0, 2, (10, 5, 6, 2), dtype=np.uint8)
Y = RNG.integers(0, 2, (10, 5, 6, 1), dtype=np.uint8)
MASK = RNG.integers(0, 2, (5, 6))
NAN = np.where(np.arange(30).reshape(5, 6) == 7, np.nan, 1.0)


def file(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "given.npz", **arrays)
    return folder / "given.npz"


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    samples = dataset.load(file(tmp_path, x=X, y=Y, mask=MASK, steps=[3, 5]))
    assert (len(samples), samples.steps, samples.y.shape) == (10, (3, 4, 5), (10, 1, 5, 6, 1))
    np.testing.assert_array_equal(samples.y[:, 0, :, :, 0], np.where(MASK, Y[..., 0].astype(int), -1))
    (tmp_path / "apart").mkdir()
    for name, array in (("x", X.astype(bool)), ("y", Y.astype(float)), ("mask", MASK), ("steps", np.arange(3, 6))):
        np.save(tmp_path / "apart" / f"{name}.npy", array)
    (tmp_path / "copy.npz").write_bytes(samples.encode())
    for other in (dataset.load(tmp_path / "apart"), dataset.load(tmp_path / "copy.npz")):
        assert other.sha256 == samples.sha256
    assert dataset.load(file(tmp_path, x=X, y=1 - Y, mask=MASK, steps=[3, 5])).sha256 != samples.sha256


def test_recordings_are_compared_at_every_frame(tmp_path: Path) -> None:
    frames = RNG.integers(0, 2, (4, 6, 5, 5))
    samples = dataset.load(file(tmp_path, frames=frames))
    assert samples.steps == (1, 2, 3, 4, 5)
    np.testing.assert_array_equal(samples.x[..., 0], frames[:, 0])
    np.testing.assert_array_equal(samples.y[..., 0], frames[:, 1:])


def test_held_out_samples_are_not_learned_and_the_same_for_every_seed() -> None:
    samples = Dataset.of(X, Y)
    learned, held = samples.split(0.25)
    assert (len(learned), len(held)) == (8, 2)
    both = np.concatenate([learned.x, held.x]).reshape(10, -1)
    assert sorted(map(bytes, both)) == sorted(map(bytes, X.reshape(10, -1)))
    assert samples.split(0.0) == (samples, samples)
    assert [dataset.held_out_samples(2, share) for share in (0.01, 0.5, 0.99)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "given.npz has no y: expected x and y, or frames."),
        ({"x": X, "y": Y, "z": Y}, "and optionally mask and steps, got x, y, z."),
        ({"x": X[:0], "y": Y[:0]}, "x must be samples [N, H, W, C], got [0, 5, 6, 2]."),
        ({"x": X[0, 0], "y": Y}, "x must be samples [N, H, W, C], got [6, 2]."),
        ({"x": X + 1, "y": Y}, "x must be 0 or 1 everywhere, got 2 at ["),
        ({"x": X.astype(str), "y": Y}, "x must be one array of 0 and 1, got values of type <U"),
        ({"x": X, "y": Y[:9]}, "y must have shape [N, H, W, C] or [N, 1, H, W, C], with [10, 5, 6] for N, H and W "
                               "as in x, got [9, 5, 6, 1]."),
        ({"x": X, "y": Y, "mask": NAN}, "mask must be 0 or 1 everywhere, got nan at [1, 1]."),
        ({"x": X, "y": Y, "mask": MASK[:4]}, "mask must have the shape of the grid, [5, 6], or of y, [10, 1, 5, 6, 1]"),
        ({"x": X, "y": Y, "mask": 0 * MASK}, "mask is 0 everywhere"),
        ({"x": X, "y": Y, "steps": [3, 3]}, "steps must be ascending numbers of at least 1, got [3, 3]."),
        ({"x": X, "y": Y, "steps": [1, 2**40]}, "steps must be a range of at most 65536 steps, got 1 to 109951162777"),
        ({"x": X, "y": Y, "steps": 0.5}, "steps must be an integer or a list of integers, got float64 of shape []."),
        ({"frames": X[:, None]}, "frames must be recordings [N, T+1, H, W, C] of at least 2 frames, got [10, 1, 5"),
        ({"x": np.array([{}]), "y": Y}, "Cannot read the arrays in"),
    ],
)  # fmt: skip
def test_samples_that_do_not_fit_are_refused(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        dataset.load(file(tmp_path, **arrays))
    assert message in str(raised.value)


def test_missing_and_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.npz").write_text("no archive")
    for name, reason in (("missing.npz", "No such file"), ("text.npz", r"expected an \.npz file")):
        with pytest.raises(DataError, match=rf"^Cannot read the arrays in {re.escape(str(tmp_path / name))}: {reason}"):
            dataset.load(tmp_path / name)
    monkeypatch.setattr(array_files, "physical_memory", lambda: 2 * X.nbytes)
    with pytest.raises(LimitError, match=r"at most 3 of 10 samples fit"):
        dataset.load(file(tmp_path, x=X, y=Y))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (TrainRequest("game-of-life", data=Dataset.of(X, Y)), "The samples have 2 channels, but a cell has 1: omit"),
        (
            TrainRequest("game-of-life", data=Dataset.of(X, Y), set={"model": {"channels": 2}}),
            "its widths must begin with 34",
        ),
        (
            TrainRequest("lizard", data=Dataset.of(X, Y), rule="B3/S23"),
            "There can be only one target: give `rule` or `data`",
        ),
        (
            TrainRequest(data=Dataset.of(X[:1], Y[:1]), set={"data": {"held_out": 0.5}}),
            "At least 2 samples are needed to hold some out, got 1: add some, or set data",
        ),
        (
            TrainRequest(data=Dataset.of(X, Y), start="seed"),
            "start only fills the channels that samples leave free: it must be random or zeros, got 'seed'",
        ),
        (TrainRequest(data=Dataset.of(X, Y), set={"pool": {"size": 64}}), "set pool.size and search.begin to 0"),
        (TrainRequest("checkerboard", set={"task": {"target": "data", "start": "zeros"}}), "go together: give them"),
    ],
)
def test_requests_that_contradict_the_samples_are_refused(request_: TrainRequest, message: str) -> None:
    with pytest.raises(DifflogicError) as raised:
        configure(request_)
    assert isinstance(raised.value, ConfigError | UsageError)
    assert message in str(raised.value)


def test_circuit_for_samples_of_one_row_reads_a_line() -> None:
    assert presets.of_samples(Dataset.of(X[:, :1], Y[:, :1])).model.neighbourhood == "line"


def test_contradictions_depend_on_the_neighbourhood() -> None:
    """Two cells that differ only in a corner have different next states, a contradiction unless corners are read."""
    x, y = np.zeros((2, 1, 5, 5, 1), dtype=np.uint8)
    x[0, 1, 1, 0] = y[0, 2, 2, 0] = 1
    assert not Dataset.of(x, y).contradiction(False)
    assert Dataset.of(x, y).contradiction(False, "von-neumann")


def test_samples_change_a_preset_and_are_a_task_without_one() -> None:
    samples = Dataset.of(X, Y, steps=(4, 7))
    config = configure(TrainRequest("checkerboard", data=samples, start="random", recipe="paper")).config
    task = config.task
    assert (task.target, task.start, task.height, task.width, task.loss_steps) == ("data", "random", 5, 6, (4, 7))
    assert (config.model, config.data.sha256) == (presets.get("checkerboard").model, samples.sha256)
    own = configure(TrainRequest(data=samples, recipe="paper")).config
    assert (own.name, own.model.channels, own.task.start) == ("data", 2, "zeros")
    again = configure(TrainRequest(config=config, data=samples)).config
    assert again == config
