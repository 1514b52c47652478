"""The target on a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from difflogic.cli.screen.preview import Preview
from difflogic.config import presets
from difflogic.config.schema import Config


def shown(config: Config, encoding: str = "utf-8", **options: Any) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    settings = {"force_terminal": True, "color_system": None, "width": 80, **options}
    console = Console(file=file, legacy_windows=False, _environ={}, **settings)
    console.print(Preview(config), markup=False, highlight=False, soft_wrap=True)
    file.seek(0)
    return file.read()


def small(*rows: str) -> Config:
    return presets.colored_g().with_(task={"height": len(rows), "width": len(rows[0]), "picture": rows})


def test_half_blocks_show_two_pixels() -> None:
    title = "Target: picture, 4 cells wide, 3 high, 5 on, 5 colours"
    assert shown(small(".1.2", "..47", "1...")).splitlines() == [title, " ▀▄█", "▀   "]


def test_preview_has_colours() -> None:
    out = shown(small("1.3", "24.", "7.."), color_system="truecolor")
    assert "\x1b[38;2;255;0;0;48;2;0;255;0m▀" in out
    assert "\x1b[38;2;48;48;48;48;2;0;0;255m▀" in out
    assert "\x1b[38;2;255;255;0;48;2;48;48;48m▀" in out


def test_preview_without_colours_or_blocks() -> None:
    assert "\x1b" not in shown(presets.colored_g(), color_system="truecolor", no_color=True)
    for encoding in ("ascii", "cp1252", "cp437"):  # of a pipe, and of consoles of Windows
        assert shown(small("1.3", "24.", "7.."), encoding=encoding).splitlines()[1:] == ["1.3", "24.", "7.."]


def test_preview_on_a_narrow_terminal_names_the_file() -> None:
    assert "see target.png" in " ".join(shown(presets.lizard(), width=19).split())
    assert "█" not in shown(presets.lizard(), width=19)
    assert "█" in shown(presets.lizard(), width=20)


@pytest.mark.parametrize(
    ("rule", "words"),
    [("B3/S23", "one generation of B3/S23"), ("0f" * 64, "one generation of a rule given as a table")],
)
def test_preview_of_a_rule_has_no_image(rule: str, words: str) -> None:
    config = presets.game_of_life().with_(task={"rule": rule})
    assert shown(config) == f"Target: {words}\n"
    assert str(Preview(config)) == f"Target: {words}"
