"""Additional initial states of a run: their file, and the fields of a configuration that they change."""

from pathlib import Path

import numpy as np
import pytest

from difflogic.config import kept_starts, presets, recipes
from difflogic.config.customise import configure
from difflogic.config.request import TrainRequest
from difflogic.errors import ConfigError, DataError, UsageError

GRIDS = np.random.default_rng(4).integers(0, 2, (3, 16, 16, 8), dtype=np.uint8)
BOARD = presets.get("checkerboard")


def file(folder: Path, grids: np.ndarray) -> Path:
    np.save(folder / "starts.npy", grids)
    return folder / "starts.npy"


def test_starts_fill_half_of_a_pool(tmp_path: Path) -> None:
    """One grid, as a proof writes it, is enough, and growth is switched off."""
    one = file(tmp_path, GRIDS[0])
    config = configure(TrainRequest("checkerboard", recipe="robust", starts=one)).config
    assert config.pool.starts == kept_starts.digest(kept_starts.load(one, config)) == kept_starts.digest(GRIDS[:1])
    assert (config.pool.size, config.growth.until) == (1024, ())
    assert recipes.applied("robust", BOARD).growth.until


@pytest.mark.parametrize(("count", "batch", "size"), [(1, 2, 1024), (600, 2, 2048), (3, 600, 1200), (700, 3, 1536)])
def test_pool_is_large_enough_for_all_starts(count: int, batch: int, size: int) -> None:
    grids = np.random.default_rng(5).integers(0, 2, (count, 16, 16, 8), dtype=np.uint8)
    config = kept_starts.kept(BOARD.with_(train={"batch": batch}), grids)
    assert config.pool.size == size
    random = np.full((size, *grids.shape[1:]), 7, dtype=np.uint8)
    pool = kept_starts.pool_of(random, grids)
    assert (pool[::2] == 7).all()
    np.testing.assert_array_equal(pool[1 : 2 * count : 2], grids)
    # Every sample's part of the pool holds as many of both.
    assert ((pool == 7).reshape(batch, -1, *grids.shape[1:]).all(axis=(2, 3, 4)).mean(axis=1) == 0.5).all()


@pytest.mark.parametrize(
    ("grids", "what"),
    [
        (GRIDS[:, :15], r"must have shape \[16, 16, 8\] or \[N, ...\], got \[3, 15, 16, 8\]"),
        (GRIDS[:0], "must have shape"),
        (2 * GRIDS, "must contain only 0 and 1"),
        (np.array(["a"]), r"must be numbers of shape \[H, W, C\] or \[N, H, W, C\], got <U1"),
    ],
)
def test_file_of_other_grids_is_refused(grids: np.ndarray, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        kept_starts.load(file(tmp_path, grids), BOARD)


def test_tasks_without_random_initial_states_are_refused(tmp_path: Path) -> None:
    for name in ("lizard", "game-of-life"):
        with pytest.raises(ConfigError, match="`starts` requires a task with random initial states and one target"):
            kept_starts.load(file(tmp_path, GRIDS), presets.get(name))
    with pytest.raises(ConfigError, match=r"pool\.size is already 4: set it to 0"):
        kept_starts.kept(BOARD.with_(pool={"size": 4}), GRIDS)
    with pytest.raises(ConfigError, match=r"pool\.size must be at least 4, got 2"):
        BOARD.with_(pool={"size": 2, "starts": "any"})


@pytest.mark.parametrize("again", [{"until_solved": True}, {"restarts": 2}])
def test_starts_and_attempts_are_refused_together(again: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`starts` cannot be used together"):
        TrainRequest("checkerboard", starts=tmp_path / "any.npy", **again)
