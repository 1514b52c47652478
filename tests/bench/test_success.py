"""The study of success: what is drawn, chosen, counted and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import success
from difflogic.errors import UsageError


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
