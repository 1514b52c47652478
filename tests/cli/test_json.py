"""`--json` says what it prints: lines that are objects, or one document."""

from __future__ import annotations

import json

import pytest

from difflogic.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["plan", "--small"], False),
        (["devices"], False),
        (["tune", "--reset"], True),
        (["presets"], True),
    ],
)
def test_help_says_what_is_printed(arguments: list[str], lines: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([arguments[0], "--help"]) == 0
    words = "One JSON object per line" if lines else "One JSON document"
    assert f"{words}, and nothing else." in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    for each in out.splitlines() if lines else [out]:
        assert isinstance(json.loads(each), dict if lines else list)
