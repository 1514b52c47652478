"""Table of equal results: what counts as equal, how close the rest is, and what has not been measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import same_bits
from benchmarks.same_bits import Outcome, compared, section
from benchmarks.store import Line, load
from tests.javascript import node

LOSSES, LOGITS, FRAMES = np.array([4, 2], np.float32), np.eye(2, 16, dtype=np.float32), np.ones((4, 2), np.uint8)
ONE = Outcome("gpu", "naga", "llvmpipe", LOSSES, LOGITS, 3, FRAMES)
HERE = {"machine": {"processor": "P", "cores": 2}}


def rows(*lines: Line) -> list[str]:
    return section([each | HERE for each in lines]).splitlines()[4:]


def test_equal_is_every_bit() -> None:
    (row, _) = rows(compared(replace(ONE, compiler="Tint"), ONE))
    assert row == "| gpu | Tint | llvmpipe | gpu, naga, llvmpipe | equal | equal | equal |"


def test_what_is_close_is_told_in_numbers() -> None:
    logits = ONE.logits.copy()
    logits[0, 0] += 0.25
    other = replace(ONE, driver="none", losses=np.array([4, 2.5], np.float32), logits=logits)
    assert (
        "| equal | close: 2.5e-01 of it | close: 3 % differ, by at most 2.5e-01; the same gates |"
        in rows(compared(other, ONE))[0]
    )


def test_a_bit_of_the_circuit_shows() -> None:
    hard = ONE.hard.copy()
    hard[0, 0] = 0
    for other in (replace(ONE, hard=hard), replace(ONE, wrong=4)):
        assert "| **DIFFERENT** |" in rows(compared(other, ONE))[0]


def test_cards_are_open_until_one_is_measured() -> None:
    line = compared(ONE, ONE)
    assert "open: not measured" in rows(line)[-1]
    assert "open" not in rows(line | {"software": False})[-1]


def test_the_page_shows_what_is_kept() -> None:
    assert Path(same_bits.PAGE).read_text(encoding="utf-8") == same_bits.page()
    assert all(line["hard_equal"] for line in load("same_bits"))


def test_a_recording_holds_all_that_it_begins_with() -> None:
    data = same_bits.recorded()
    for name in ("trained", "hard"):
        assert not any(contents is True for *_, contents in data[name]["buffers"])


@pytest.mark.exhaustive
def test_another_compiler_trains_to_the_same_bits_on_the_same_driver() -> None:
    """wgpu with naga, and a recording played by Dawn with Tint."""
    node.needs()
    driver = "llvmpipe"
    if not same_bits.DRIVERS[driver].exists():
        pytest.skip(f"this system keeps {driver} elsewhere")
    line = compared(same_bits.in_node(driver), same_bits.native(*same_bits.NAGA, driver))
    assert line["hard_equal"]
    assert line["losses_equal"]
    assert line["logits_equal"]
