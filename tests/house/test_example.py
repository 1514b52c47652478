"""The worked example runs from the first block to the last, and leaves what it says."""

import re
import shlex
from typing import Any

import pytest
from PIL import Image

from difflogic.cli.main import main
from difflogic.runs import film
from tests.house.made_pages import CHECKOUT

pytestmark = pytest.mark.exhaustive

EXAMPLE = (CHECKOUT / "examples/README.md").read_text(encoding="utf-8")
STEP = re.compile(r"^```python\n(.*?)^```|^ {4}difflogic ([^\n]+)$", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def names(painted: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the names that the example's Python defines; its files are in `folder`."""
    folder = tmp_path_factory.mktemp("example")
    found: dict[str, Any] = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for code, line in STEP.findall(EXAMPLE):
            if code:
                exec(code, found)
            else:
                assert main(shlex.split(line)) == 0, line
    return found


def test_example_runs_every_line():
    steps = STEP.findall(EXAMPLE)
    assert [bool(code) for code, _ in steps].count(True) == EXAMPLE.count("```python") == 4
    assert len(steps) - 4 == sum(line.startswith("    difflogic ") for line in EXAMPLE.splitlines())


def test_example_learns_the_rule(names):
    accuracy = names["evaluation"]["accuracy"].values["accuracy"]
    assert accuracy > 0.95
    assert names["large"].values["accuracy"] > 0.95


def test_example_counts_the_gates(names):
    assert sum(layer.gates for layer in names["evaluation"].layers) == 3040
    assert sum(layer.active for layer in names["evaluation"].layers) > 0


@pytest.mark.parametrize(("name", "steps"), [("healing.gif", 80), ("channels.apng", 20), ("asynchronous.gif", 60)])
def test_example_writes_animations(names, name, steps):
    with Image.open(names["folder"] / name) as picture:
        durations = []
        for index in range(picture.n_frames):
            picture.seek(index)
            durations.append(picture.info["duration"])
    assert sum(durations) == steps * film.FRAME_MS + film.LAST_FRAME_MS


@pytest.mark.parametrize("name", ["gates.png", "strip.png"])
def test_example_writes_images(names, name):
    with Image.open(names["folder"] / name) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 2


def test_example_writes_a_complete_report(names):
    text = (names["folder"] / "report.html").read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>")
    assert (names["folder"] / "runs/board/evaluation.json").exists()
