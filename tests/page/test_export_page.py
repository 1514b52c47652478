"""The file that trains: what it holds, how large it is, and how it is asked for."""

import gzip
import json
import re
from pathlib import Path

import pytest

import difflogic
from difflogic.circuits.export.drawing import SYMBOLS
from difflogic.circuits.export.text import template
from difflogic.cli.main import main
from difflogic.config import presets, recipes
from difflogic.errors import UsageError
from difflogic.page import plans
from difflogic.page.bundle import joined
from difflogic.page.export import training_page

MOST = 250_000
"""Bytes of a page with all presets, as a server sends it."""
MOST_OF_SCRIPTS = 200_000
"""Characters of all scripts that stand around what trains, before anything packs them."""


def test_page_with_all_presets_is_small_and_opens_on_own_image() -> None:
    assert len(gzip.compress(training_page().encode())) < MOST
    assert plans.names()[0] in plans.OWN


def test_drawings_name_gates_alike() -> None:
    (text,) = re.findall(r"const SYMBOLS = \{\n(.*?),\n\};", template("drawing.js"), re.DOTALL)
    symbols = json.loads(re.sub(r"(\d+):", r'"\1":', f"{{{text}}}"))
    assert {int(gate): (name, tuple(inverted)) for gate, (name, inverted) in symbols.items()} == SYMBOLS


def test_it_is_the_same_file_each_time_and_names_no_other() -> None:
    page = training_page(["checkerboard-small", "draw-small"])
    assert page == training_page(["checkerboard-small", "draw-small"])
    elsewhere = r"(?:src|href)=\"(?!data:)|url\(|https?://(?!www\.w3\.org/2000/svg)|\bfetch\(|\bimport\("
    assert not re.search(elsewhere, page)


@pytest.mark.parametrize("entry", ["page/face.js", "serve/web/main.js"])
def test_scripts_are_joined_into_one_that_imports_none(entry: str) -> None:
    script = joined(entry)
    assert not re.search(r"^(import|export)\b|</script|<!--", script, re.MULTILINE)
    for path in (Path(difflogic.__file__).parent / "serve" / "web").glob("*.js"):
        assert script.count(path.read_text(encoding="utf-8").partition("\n")[0]) in ({1} if "web" in entry else {0, 1})
    assert len(script) < MOST_OF_SCRIPTS


@pytest.mark.parametrize("name", plans.PRESETS)
def test_it_trains_by_the_numbers_of_the_command(name: str) -> None:
    expected = recipes.applied("robust", presets.get(name)).with_(train={"eval_interval": 10})
    later = round(plans.UNGUIDED * expected.search.begin)
    assert plans.page_config(name) == expected.with_(model={"candidates": 1}, search={"begin": later})


@pytest.mark.parametrize(("name", "side"), plans.OWN.items())
def test_a_visitors_picture_is_searched_as_early_as_by_the_command(name: str, side: int) -> None:
    assert plans.page_config(name) == recipes.applied("robust", plans._own(side)).with_(train={"eval_interval": 10})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["cartpole"], "Unsupported preset 'cartpole'"),
        (["lizzard"], "did you mean lizard"),
        ([], "Expected one or more different presets, got none"),
        (["draw", "draw"], "different presets, got draw, draw"),
    ],
)
def test_what_it_cannot_hold_is_refused(given: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        difflogic.training_page(given)


def test_the_command_writes_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    assert main(["export-page", "draw-small", "--out", str(file)]) == 0
    assert file.read_text() == training_page(["draw-small"])
    assert re.search(r"page\.html: \d+ kB, \d+ kB compressed", capsys.readouterr().out)
    assert main(["export-page", "game-of-life", "--out", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
