"""One description of what happens, shown as lines, above a bar and as JSON."""

import io
import json
import re

import pytest
from rich.console import Console

from difflogic.cli.screen.sinks import Bar, Event, JsonLines, Lines

SAVED = Event("checkpoint", {"epoch": 3})
WARNING = Event("notice", {"text": "slow"}, ["slow"], is_warning=True)
LOGGED = Event("epoch", {"epoch": 3}, ["Epoch 3", 4, "\x1b[2J\u202e"])


@pytest.mark.parametrize("sink", [Lines, lambda: Bar("epoch")])
def test_lines_show_the_text(sink, capsys: pytest.CaptureFixture[str]) -> None:
    with sink() as shown:
        for event in (SAVED, WARNING, LOGGED):
            shown.show(event)
    captured = capsys.readouterr()
    assert captured.out.split() == ["Epoch", "3", "4", r"\x1b[2J\u202e"]
    assert captured.err == "Warning: slow\n"


def test_json_lines_show_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonLines() as shown:
        for event in (SAVED, WARNING, LOGGED):
            shown.show(event)
        shown.advance(3, 9)
    captured = capsys.readouterr()
    assert captured.err == ""
    shown = [{"event": "checkpoint", "epoch": 3}, {"event": "notice", "text": "slow"}, {"event": "epoch", "epoch": 3}]
    assert [json.loads(line) for line in captured.out.splitlines()] == shown


def test_bar_is_one_line_with_the_last_evaluation() -> None:
    told, shown = io.StringIO(), Bar("epoch")
    shown._bar.live.console = Console(file=told, force_terminal=True, color_system=None, width=80)
    with shown:
        for epoch in range(1000, 1003):
            shown.show(Event("epoch", {"epoch": epoch}, [f"Epoch {epoch}: much"], brief=f"{epoch / 11:.2f} % right"))
            shown.advance(epoch, 20000, "123.4 epochs/s")
        shown._bar.refresh()
    assert "much" not in told.getvalue()
    line = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", told.getvalue()).strip())[-1]
    assert line.startswith("epoch  1002/20000 ")
    assert "91.09 % right 123.4 epochs/s " in line
    assert line.endswith(" left")
    assert len(line) <= 80


def test_bar_restarts_with_another_attempt() -> None:
    with Bar("epoch") as shown:
        for done, total in ((0, 100), (60, 100), (0, 40), (10, 40)):
            shown.advance(done, total)
        [task] = shown._bar.tasks
    assert (task.completed, task.total) == (10, 40)


@pytest.mark.parametrize(
    ("colored", "encoding"), [(True, "utf-8"), (False, "utf-8"), (True, "cp1252"), (True, "cp437")]
)
def test_image_is_above_the_bar_if_there_are_colours(colored: bool, encoding: str) -> None:
    told, shown = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True), Bar("epoch")
    system = "truecolor" if colored else None
    shown._bar.live.console = Console(file=told, force_terminal=True, color_system=system, width=80)
    with shown:
        shown.advance(3, 9)
        for picture in ("the first", "too soon for another"):
            shown.show_image(lambda picture=picture: picture)
        shown._bar.refresh()
    told.seek(0)
    seen = told.read()
    assert ("the first" in seen) == (colored and encoding == "utf-8")
    assert "too soon" not in seen
