"""The study of success: what is drawn, chosen, counted and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import success
from difflogic.config import presets
from difflogic.errors import UsageError

BOARD = presets.get("checkerboard")


def test_probes_are_turned_and_mirrored() -> None:
    probes = np.arange(2 * 3 * 3 * 2).reshape(2, 3, 3, 2)
    views = success.turned(probes)
    assert views.shape == (16, 3, 3, 2)
    assert len({view.tobytes() for view in views}) == 16
    assert {tuple(sorted(view.reshape(-1))) for view in views} == {tuple(sorted(p.reshape(-1))) for p in probes}


def test_probes_side_by_side() -> None:
    probes = np.arange(5 * 2 * 2).reshape(5, 2, 2, 1)
    (board,) = success.tiled(probes, 4)
    assert board[..., 0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


def test_fresh_starts_are_the_seeds_own() -> None:
    one, again = (success.draw(BOARD.with_(seed=3), 4, 16, 16) for _ in range(2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, success.draw(BOARD.with_(seed=4), 4, 16, 16))
    assert set(np.unique(one)) == {0, 1}


@pytest.mark.parametrize(
    ("preset", "judged", "right"),
    [
        ("checkerboard", {"wrong": 0, "wrong_later": 0, "wrong_large": 0}, True),
        ("checkerboard", {"wrong": 0, "wrong_later": 0, "wrong_large": 1}, False),
        ("checkerboard-async", {"wrong_shares": [0.0, 0.01, 0.5]}, True),
        ("checkerboard-async", {"wrong_shares": [0.0, 0.011, 0.011]}, False),
        ("game-of-life", {"wrong": 9}, False),
    ],
)
def test_what_success_means(preset: str, judged: dict[str, object], right: bool) -> None:
    assert success.is_right(presets.get(preset), judged) is right


def line(preset: str, seed: int, solved: bool, **more: object) -> dict[str, object]:
    known = {"protocol": success.PROTOCOL, "preset": preset, "recipe": "paper", "seed": seed, "success": solved}
    return {**known, "epochs": 100 + seed, "active_gates": 7, **more}


def test_a_seed_that_is_done_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / success.FILE
    path.write_text(json.dumps(line("lizard", 1, solved=False)) + "\n")
    done = success.load(path)
    assert not success.missing(success.Case("lizard", "paper", 1), done)
    assert success.missing(success.Case("lizard", "robust", 1), done)
    assert success.missing(success.Case("lizard", "paper", 2), done)


def test_a_folder_of_another_protocol_is_refused(tmp_path: Path) -> None:
    path = tmp_path / success.FILE
    path.write_text(json.dumps(line("lizard", 1, solved=True, protocol=99)) + "\n")
    with pytest.raises(UsageError) as refused:
        success.load(path)
    said = f"{path} holds results of protocol 99, but this is protocol {success.PROTOCOL}: give another folder."
    assert str(refused.value) == said


def test_the_table() -> None:
    lines = [line("lizard", 0, solved=True), line("lizard", 2, solved=True), line("lizard", 3, solved=False)]
    row = success.report(lines).splitlines()[-1]
    assert row == "| lizard | paper | 3500 | 2 of 3 | 21 to 94 % | 101 (100 to 102) | 7 (7 to 7) |"
