"""The study of success: what is counted and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import success
from difflogic.errors import UsageError


def line(preset: str, seed: int, solved: bool, **more: object) -> dict[str, object]:
    known = {"protocol": success.PROTOCOL, "preset": preset, "recipe": "paper", "seed": seed, "solved": solved}
    known |= {"seconds": 10.0 + seed, "papers": 0.5 * seed, "active_gates": 7, "gates": 5, "from_step": None}
    return {**known, **more}


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
    lines = [line("checkerboard", seed, solved=seed < 3, from_step=16 if seed else None) for seed in range(4)]
    row = success.report(lines).splitlines()[-1]
    assert row == (
        "| checkerboard | paper | 3 of 4 | 3 of 4 | 11 (10 to 12) | 38.2 s | 2.5 | 7 (7 to 7) | 5 (5 to 5) | 2 |"
    )
    assert success.report([line("lizard", 1, solved=True)]).endswith("| 11 s | 0.5 | 7 (7 to 7) | 5 (5 to 5) | - |")


def test_time_to_a_solution() -> None:
    """Half of the runs fail: after 6.64 of them, 10 s each, 99 % have had one that did not."""
    half = [{"solved": seed % 2 == 0, "seconds": 10.0} for seed in range(8)]
    assert success.tts99(half, "seconds") == pytest.approx(66.4, abs=0.05)
    assert success.tts99([{"solved": True, "seconds": second} for second in (1, 5, 3)], "seconds") == 5
    assert success.tts99([{"solved": False, "seconds": 1}], "seconds") == float("inf")
