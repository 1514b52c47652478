"""One description of what happens, shown as lines, above a bar and as JSON."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from difflogic.cli.screen.sinks import Bar, Event, JsonLines, Lines

SAVED = Event("checkpoint", {"epoch": 3})
WARNING = Event("notice", {"text": "slow"}, ["slow"], is_warning=True)
LOGGED = Event("epoch", {"epoch": 3}, ["Epoch 3", 4])


@pytest.mark.parametrize("sink", [Lines, lambda: Bar("epoch")])
def test_people_read_the_text(sink, capsys: pytest.CaptureFixture[str]) -> None:
    with sink() as shown:
        for event in (SAVED, WARNING, LOGGED):
            shown.show(event)
    captured = capsys.readouterr()
    assert captured.out.split() == ["Epoch", "3", "4"]
    assert captured.err == "Warning: slow\n"


def test_programs_read_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonLines() as shown:
        for event in (SAVED, WARNING, LOGGED):
            shown.show(event)
        shown.advance(3, 9)
    captured = capsys.readouterr()
    assert captured.err == ""
    assert [json.loads(line) for line in captured.out.splitlines()] == [
        {"event": "checkpoint", "epoch": 3}, {"event": "notice", "text": "slow"}, {"event": "epoch", "epoch": 3},
    ]  # fmt: skip


def test_a_bar_begins_anew_with_another_attempt() -> None:
    with Bar("epoch") as shown:
        for done, total in ((0, 100), (60, 100), (0, 40), (10, 40)):
            shown.advance(done, total)
        [task] = shown._bar.tasks
    assert (task.completed, task.total) == (10, 40)


@pytest.mark.parametrize("colored", [True, False])
def test_a_picture_stands_above_the_bar_where_there_are_colours(colored: bool) -> None:
    told, shown = io.StringIO(), Bar("epoch")
    system = "truecolor" if colored else None
    shown._bar.live.console = Console(file=told, force_terminal=True, color_system=system, width=80)
    with shown:
        shown.advance(3, 9)
        for picture in ("the first", "too soon for another"):
            shown.show_picture(lambda picture=picture: picture)
        shown._bar.refresh()
    assert ("the first" in told.getvalue()) == colored
    assert "too soon" not in told.getvalue()
