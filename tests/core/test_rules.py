"""Rules as tables of 512 entries."""

import numpy as np
import pytest

from difflogic.core import rules
from difflogic.core.wiring import NEIGHBOURHOODS
from difflogic.errors import ConfigError


def test_life_counts_neighbours():
    entries = rules.table("B3/S23")
    for patch, entry in zip(rules.patches(), entries, strict=True):
        neighbours = int(patch.sum()) - int(patch[4])
        assert entry == (neighbours == 3 or (neighbours == 2 and patch[4] == 1))


def test_a_table_is_its_own_hexadecimal_digits():
    entries = rules.table("b36/s23")
    digits = np.packbits(entries).tobytes().hex()
    assert np.array_equal(rules.table(digits), entries)
    assert rules.table("8" + "0" * 127).tolist() == [1] + [0] * 511


def test_without_birth_or_survival_all_dies():
    assert not rules.table("B/S").any()


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ("b3/s23", "B3/S23"),
        ("B63/s32", "B36/S23"),
        ("b/s", "B/S"),
        ("AB" * 64, "ab" * 64),
        ("b2/s43h", "B2/S34H"),
        ("B31/s10v", "B13/S01V"),
        ("110", "W110"),
        ("w030", "W30"),
    ],
)
def test_one_way_to_write_a_rule(rule, written):
    assert rules.canonical(rule) == written
    assert np.array_equal(rules.table(rule), rules.table(written))


@pytest.mark.parametrize(
    "rule", ["", "B3", "B9/S2", "B33/S2", "23/3", "B3/S23/C4", "0" * 127, "g" * 128, "256", "W", "-1", "B7/SH", "B5/SV"]
)
def test_what_is_no_rule(rule):
    with pytest.raises(ConfigError, match="is not a rule: a rule is written B3/S23"):
        rules.table(rule)


@pytest.mark.parametrize(("rule", "neighbourhood"), [("B2/S34H", "hex"), ("b13/s01v", "von-neumann"), ("110", "line")])
def test_a_rule_reads_the_cells_of_its_neighbourhood(rule, neighbourhood):
    assert rules.neighbourhood(rule) == neighbourhood
    assert tuple(rules.read_cells(rules.table(rule))) == NEIGHBOURHOODS[neighbourhood]
    assert rules.neighbourhood("ab" * 64) is None


def test_hexagons_count_six_neighbours():
    for patch, entry in zip(rules.patches(), rules.table("B2/S34H"), strict=True):
        neighbours = int(patch[[0, 1, 3, 5, 7, 8]].sum())
        assert entry == (neighbours in (3, 4) if patch[4] else neighbours == 2)


def test_rule_110_from_one_cell():
    """The first rows of its picture, as Wolfram prints them."""
    row = np.array([[0, 0, 0, 0, 0, 1]], dtype=np.uint8)
    shown = ["".join(map(str, row[0]))]
    for _ in range(5):
        row = rules.apply(rules.table("110"), row, periodic=False)
        shown.append("".join(map(str, row[0])))
    assert shown == ["000001", "000011", "000111", "001101", "011111", "110001"]


@pytest.mark.parametrize("periodic", [False, True])
def test_a_generation_of_an_asymmetric_rule(periodic):
    entries = np.zeros(512, dtype=np.uint8)
    entries[rules.patches()[:, 3] == 1] = 1  # a cell becomes its left neighbour
    grid = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=np.uint8)
    expected = [[0, 1, 0], [int(periodic), 0, 0], [0, 0, 0]]
    assert rules.apply(entries, grid, periodic).tolist() == expected


def test_a_blinker_turns():
    grid = np.zeros((2, 5, 5), dtype=np.uint8)
    grid[0, 2, 1:4] = grid[1, 1:4, 2] = 1
    assert np.array_equal(rules.apply(rules.table("B3/S23"), grid, periodic=False), grid[::-1])
