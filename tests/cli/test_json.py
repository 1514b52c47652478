"""`--json` says what it prints: lines that are objects, or one document."""

import json

import pytest

from tests.cli.conftest import Said


@pytest.mark.parametrize(
    ("arguments", "lines"), [(["doctor", "lizard"], False), (["tune", "--reset"], True), (["presets"], True)]
)
def test_help_of_json_describes_the_output(arguments: list[str], lines: bool, said: Said) -> None:
    words = "One JSON object per line" if lines else "One JSON document"
    assert f"{words}, and nothing else." in " ".join(said(arguments[0], "--help").out.split())
    out = said(*arguments, "--json").out
    for each in out.splitlines() if lines else [out]:
        assert isinstance(json.loads(each), dict if lines else list)
