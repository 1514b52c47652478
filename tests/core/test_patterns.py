"""Pattern files: the same cells in every format, the rule that a file states, and what is refused."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.config import picture_file
from difflogic.core import patterns
from difflogic.errors import DataError

GLIDER = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
BODY = "bob$2bo$3o!"


def plain_text(cells: np.ndarray) -> str:
    return "\n".join(["!Name: a", *("".join(".O"[cell] for cell in row) for row in cells)])


def life_105(cells: np.ndarray) -> str:
    """Two blocks, the lower half first."""
    half = len(cells) // 2
    blocks = [(half - 9, cells[half:]), (-9, cells[:half])]
    rows = [(f"#P -4 {top}", *("".join(".*"[cell] for cell in row) for row in block)) for top, block in blocks]
    return "\n".join(["#Life 1.05", "#D a", "#R 23/36", *sum(rows, ())])


def life_106(cells: np.ndarray) -> str:
    return "\n".join(["#Life 1.06", *(f"{column - 4} {row - 9}" for row, column in np.argwhere(cells))])


def macrocell(cells: np.ndarray, leaf: int = 8) -> str:
    """A quadtree in whose leaves are cells of two states, or with `leaf` 2 of many."""
    lines = ["[M2] (a 1.0)", "#R B36/S23"]

    def node(square: np.ndarray) -> int:
        if not square.any():
            return 0
        half = len(square) // 2
        if len(square) == leaf:
            rows = ["".join(".*"[cell] for cell in row).rstrip(".") + "$" for row in np.minimum(square, 1)]
            lines.append("".join(rows) if leaf == 8 else "1 " + " ".join(map(str, square.ravel())))
        else:
            quarters = [
                node(square[row : row + half, column : column + half]) for row in (0, half) for column in (0, half)
            ]
            lines.append(" ".join(map(str, [len(square).bit_length() - 1, *quarters])))
        return len(lines) - 2

    side = 1 << max(4, int(max(cells.shape) - 1).bit_length())
    node(np.pad(cells, [(0, side - extent) for extent in cells.shape]))
    return "\n".join(lines)


WRITERS = {plain_text: "", life_105: "23/36", life_106: "", macrocell: "B36/S23"}


@pytest.mark.parametrize("write", WRITERS)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([0.05, 0.5, 1]), st.integers(0, 2**32 - 1))
def test_pattern_returns_from_every_format(tmp_path_factory, write, height, width, share, seed) -> None:
    cells = (np.random.default_rng(seed).random((height, width)) < share).astype(np.uint8)
    path = tmp_path_factory.mktemp("pattern") / "a"
    path.write_text(write(cells))
    found = patterns.read(path)
    if write is not plain_text:  # formats that place each cell have no empty border
        rows, columns = (np.flatnonzero(cells.any(axis=axis)) for axis in (1, 0))
        cells = cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else cells[:0, :0]
    np.testing.assert_array_equal(found.states, cells)
    assert found.rule == WRITERS[write]


def test_macrocell_reads_many_states(tmp_path: Path) -> None:
    cells = np.random.default_rng(3).integers(1, 255, (9, 5))
    (tmp_path / "a").write_text(macrocell(cells, leaf=2).replace("B36/S23", "Mine"))
    np.testing.assert_array_equal(patterns.read(tmp_path / "a").states, cells)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"#N Glider\n#C rule = B1/S1\nx = 3, y = 3, rule = B3/S23\n{BODY}\nwhatever follows", "B3/S23"),
        (f"#C caf\xe9\nx=0,y=0,rule=23/3\r\n{BODY}", "23/3"),
        ("#r 23/3\nx = 3, y = 2\nb\no\nb$2\n\n#C x\n b o $ 3o", "23/3"),
        (BODY, ""),
        (f"#C{'-' * 70000}\nx = 3, y = 3, rule = B2/S/C3\n.A.$2.A$3A!", "B2/S/C3"),
        ("!Name: Glider\r\n.O.\r\n..O\r\nOOO\r\n\r\n", ""),
        (".O\n..O\nOOO", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_pattern_is_recognized_by_content(text: str, rule: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding, "ignore"))
    found = patterns.read(path)
    assert (found.states.tolist(), *found[1:]) == (GLIDER, rule, None)


def test_rle_names_states_of_two_letters(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x = 4, y = 2\nApAqAyO$\n")
    assert patterns.read(tmp_path / "a").states.tolist() == [[1, 25, 49, 255], [0] * 4]


@pytest.mark.parametrize(
    ("header", "place", "is_periodic"),
    [
        ("x = 3, y = 3, rule = B3/S23:P30,20", (9, 14), False),
        ("x = 3, y = 3, rule = B3/S23:T30,20", (9, 14), True),
        ("#CXRLE Pos=-15,-10 Gen=3\nx = 3, y = 3, rule = B3/S23:P30,20", (0, 0), False),
    ],
)
def test_bounded_rule_gives_size_and_boundary(header: str, place: tuple, is_periodic: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{header}\n{BODY}")
    states, rule, boundary = patterns.read(tmp_path / "a")
    assert (states.shape, rule, boundary) == ((20, 30), "B3/S23", is_periodic)
    np.testing.assert_array_equal(np.argwhere(states), np.argwhere(GLIDER) + place)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", f" is not a pattern: expected {patterns.FORMATS}."),
        ("#C only comments\n", " is not a pattern: expected"),
        ("x = 3, y = 3\nbob$\n2bz$3o!", "line 3, character 3: expected a count and a state, $ or !, got 'z$3o!'."),
        ("x = 3, y = 3\nbob$2", "line 2, character 5: expected a count and a state, $ or !, got '2'."),
        ("x = 3, y = 3\n999999999999o!", "line 2, character 1: expected a count and a state, $ or !, got '9999"),
        ("x = 3, y = 3, rule = B3/S23\n2AB!", "the pattern has state 2, but the rule B3/S23 has states 0 to 1."),
        ("x = 3, y = 3, rule = B2/S/C3\n2AC!", "the pattern has state 3, but the rule B2/S/C3 has states 0 to 2."),
        ("x = 3, y = 3, rule = 345/3/9\n2AH!", "the pattern has state 8, but a cell of 3 channels has states 0 to 7."),
        ("x = 3, y = 3\n2ApA!", "the pattern has state 25, but a cell of 3 channels has states 0 to 7."),
        ("x = 3, y = 3\nyP!", "expected states from 0 to 255, got 256."),
        ("x = 99999, y = 99999\no!", " cells, got 99999x99999."),
        (f"x = 9, y = 3, rule = B3/S23:T6,6\n{BODY}", "9x3 cells does not fit into the grid of its rule B3/S23:T6,6."),
        ("!\n.x", "expected rows of . and O, got 'x'."),
        ("#Life 1.06\n1 2 3", "expected 2 integers, got '1 2 3'."),
        ("[M2]\n$$*$\n4 1 2 0 0", "expected the level of a node and four earlier nodes, got '4 1 2 0 0'."),
        ("[M2]\n$$*$\n63 1 0 0 0", "expected the level of a node and four earlier nodes, got '63 1 0 0 0'."),
        ("[M2]\n1 1 0 0 1\n" + "".join(f"{n} {n - 1} 0 0 {n - 1}\n" for n in range(2, 40)), "at most 4,194,304 runs"),
    ],
)
def test_malformed_pattern_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(text)
    with pytest.raises(DataError) as caught:
        patterns.read(tmp_path / "bad", channels=3)
    assert complaint in str(caught.value).removeprefix(f"{tmp_path / 'bad'}")


@given(st.binary(max_size=60), st.sampled_from([b"", b"x = 9, y = 9\n", b"#Life 1.05\n#P", b"#Life 1.06\n", b"[M2]\n"]))
def test_any_bytes_give_a_pattern_or_an_error(tmp_path_factory, data: bytes, head: bytes) -> None:
    path = tmp_path_factory.mktemp("pattern") / "a"
    path.write_bytes(head + data)
    with contextlib.suppress(DataError):
        assert patterns.read(path).states.ndim == 2


@pytest.mark.parametrize(("tags", "colors"), [("o", 2), ("o", 8), ("ABC", 8), ("ABCDEFG", 8), ("AHIXpAqO", 64)])
def test_pattern_bits_hold_its_states(tags: str, colors: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"x = 0, y = 0\n{tags}!")
    bits, states = picture_file.load(path, colors).bits, patterns.read(path).states
    white = np.ones((1, 1, bits.shape[2]))
    np.testing.assert_array_equal(bits, white if tags == "o" else patterns.bits_of(states, bits.shape[2]))
    assert picture_file.load(path).bits.shape[2] == (1 if tags == "o" else bits.shape[2])
