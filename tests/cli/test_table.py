"""Tables on terminals of any width: nothing is cut, no word is broken."""

import re
import sys

import pytest

from difflogic.cli.screen import table
from difflogic.config import presets
from tests.cli.conftest import Said

HEADERS = ("run", "what it is", "epochs", "status")
LONG = ("a-run-of-a-name-that-is-rather-long", "prose that may be wrapped between any two words", "12/120", "complete")
ROWS = [LONG, ("b", "short", "7/7", "")]


def printed(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    table.show(HEADERS, ROWS, "title")
    out = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert [line for line in out.splitlines() if len(line) > width] == []
    return out


@pytest.mark.parametrize("width", [40, 60, 79, 90, 95, 200])
def test_words_are_never_cut(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = printed(width, capsys, monkeypatch)
    words = re.sub(r"[┏━┳┓┃┡╇┩│└─┴┘:]", " ", out).split()
    for row in [HEADERS[1:], *ROWS]:
        for cell in row:
            assert set(cell.split()) <= set(words)
    assert "…" not in out


def test_width_selects_the_layout(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow, lines = (printed(width, capsys, monkeypatch) for width in (200, 95, 79))
    assert len(wide.splitlines()) == 7
    assert len(narrow.splitlines()) == 8, "the prose takes two lines"
    long = [LONG[0], f"  what it is: {LONG[1]}", "  epochs: 12/120  status: complete"]
    assert lines.splitlines() == ["title", *long, "b", "  what it is: short  epochs: 7/7"]


def test_terminal_without_width_gets_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "1")
    table.show(HEADERS, ROWS)
    assert "complete" in capsys.readouterr().out


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_presets_fit_any_width(width: str, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", width)
    out = said("presets").out
    assert all(name in out for name in presets.PRESETS)
    assert all(len(line) <= int(width) for line in re.sub(r"\x1b\[\d*m", "", out).splitlines())
