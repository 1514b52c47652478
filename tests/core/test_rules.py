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


def test_table_is_its_hexadecimal_digits():
    entries = rules.table("b36/s23")
    digits = np.packbits(entries).tobytes().hex()
    assert np.array_equal(rules.table(digits), entries)
    assert rules.table("8" + "0" * 127).tolist() == [1] + [0] * 511


def test_rule_without_birth_and_survival_kills_all_cells():
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
        (" b3s23 ", "B3/S23"),
        ("23/3", "B3/S23"),
        ("S23/b3", "B3/S23"),
        ("B2ceikn/S12", "B2-a/S12"),
        ("b2-a3i8/S2i3-a4e8", "B2-a3i8/S2i3-a4e8"),
        ("MAPHmlphg==", "B2/S013V"),
        ("b3/s23:p30,20", "B3/S23"),
    ],
)
def test_equal_rules_have_one_canonical_name(rule, written):
    assert rules.parse(rule).name == written
    assert np.array_equal(rules.table(rule), rules.table(written))


@pytest.mark.parametrize(
    "rule",
    [
        *["", "B3", "B9/S2", "B33/S2", "b3/b2", "23b3", "B1a/S", "B5z/S", "B2aa/S", "B2k/SH", "B3/S23/1", "MAPAB"],
        *["0" * 127, "g" * 128, "256", "W", "-1", "B7/SH", "B5/SV"],
    ],
)
def test_text_that_is_no_rule_is_refused(rule):
    with pytest.raises(ConfigError, match="is not a rule: expected B3/S23"):
        rules.table(rule)


@pytest.mark.parametrize(("rule", "neighbourhood"), [("B2/S34H", "hex"), ("b13/s01v", "von-neumann"), ("110", "line")])
def test_rule_reads_cells_of_its_neighbourhood(rule, neighbourhood):
    assert rules.parse(rule).neighbourhood == neighbourhood
    assert tuple(rules.read_cells(rules.table(rule))) == NEIGHBOURHOODS[neighbourhood]
    assert rules.parse("ab" * 64).neighbourhood is None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("/2/3", ("B2/S/C3", 3, False, True, None)),
        ("23/3/8", ("B3/S23/C8", 8, False, True, None)),
        ("b2/s345/4:P30,20", ("B2/S345/C4", 4, False, False, (20, 30))),
        ("LifeHistory", ("B3/S23History", 7, True, True, None)),
        ("b36/s23history:T9", ("B36/S23History", 7, True, True, (9, 9))),
    ],
)
def test_states_and_grid_come_from_the_notation(rule, expected):
    held = rules.parse(rule)
    assert (held.name, held.states, held.has_history, held.periodic, held.size) == expected
    with pytest.raises(ConfigError, match=f"of {held.states} states"):
        rules.table(rule)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("R5,C0,M1,S34..58,B34..45,NM", "is Larger than Life, which reads cells up to 5 away"),
        ("MS,D0;8;4;3;2;5;9;7;1;6;10;11;12;13;14;15", "is a Margolus rule"),
        ("3D5..7/6", "is a rule of three dimensions"),
        ("B3/S23:K30*,20", "is on a Klein bottle"),
        ("B3/S23:C30,20", "is on a cross-surface"),
        ("WireWorld:S30", "is on a sphere"),
        ("B3/S23:T30+5,20", "is on a shifted torus"),
        ("B3/S23:T0,20", "is on a grid without an end"),
        ("23/3/257", "has 257 states"),
    ],
)
def test_notation_of_other_programs_is_refused_by_name(rule, reason):
    with pytest.raises(ConfigError, match=f"{reason}.*: difflogic reads rules of the 3x3 neighbourhood"):
        rules.parse(rule)


@pytest.mark.parametrize("seed", range(4))
def test_random_table_keeps_its_notation(seed):
    """Through MAP, and with equal values for each of Hensel's classes through letters."""
    random = np.random.default_rng(seed)
    entries = random.integers(0, 2, 512, dtype=np.uint8)
    isotropic = random.integers(0, 2, (2, 9, 128), dtype=np.uint8)[tuple(rules._classes("").T)]
    assert rules.name(entries)[:3] == "MAP"
    assert rules.name(isotropic)[0] == "B"
    for each in (entries, isotropic):
        np.testing.assert_array_equal(rules.table(rules.name(each)), each)


def test_letters_equal_hensels():
    """One patch of each letter whose classes look alike, as bgolly moves them."""
    masks = {"3j": 14, "3k": 98, "3n": 13, "4j": 106, "4k": 99, "4n": 71, "4t": 105, "4w": 78, "4y": 101}
    for name, mask in masks.items():
        assert rules.table(f"B{name}/S")[mask] == rules.table(f"B/S{name}")[mask | 1 << 4] == 1


def test_hexagons_count_six_neighbours():
    for patch, entry in zip(rules.patches(), rules.table("B2/S34H"), strict=True):
        neighbours = int(patch[[0, 1, 3, 5, 7, 8]].sum())
        assert entry == (neighbours in (3, 4) if patch[4] else neighbours == 2)


def test_rule_110_grows_from_one_cell():
    """The first rows are those that Wolfram prints."""
    row = np.array([[0, 0, 0, 0, 0, 1]], dtype=np.uint8)
    shown = ["".join(map(str, row[0]))]
    for _ in range(5):
        row = rules.apply(rules.table("110"), row, periodic=False)
        shown.append("".join(map(str, row[0])))
    assert shown == ["000001", "000011", "000111", "001101", "011111", "110001"]


@pytest.mark.parametrize("periodic", [False, True])
def test_asymmetric_rule_gives_expected_generation(periodic):
    entries = np.zeros(512, dtype=np.uint8)
    entries[rules.patches()[:, 3] == 1] = 1  # a cell becomes its left neighbour
    grid = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype=np.uint8)
    expected = [[0, 1, 0], [int(periodic), 0, 0], [0, 0, 0]]
    assert rules.apply(entries, grid, periodic).tolist() == expected


def test_blinker_oscillates():
    grid = np.zeros((2, 5, 5), dtype=np.uint8)
    grid[0, 2, 1:4] = grid[1, 1:4, 2] = 1
    assert np.array_equal(rules.apply(rules.table("B3/S23"), grid, periodic=False), grid[::-1])
