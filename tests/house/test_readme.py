"""The page about Python runs, and the tables of results are those of the results files."""

import re

import pytest

from benchmarks import images, policies, presets, report, success
from tests.house.made_pages import CHECKOUT

PYTHON = (CHECKOUT / "docs/how-to/python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PYTHON, flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=range(len(BLOCKS)))
def test_python_of_the_readme_runs(code):
    names: dict[str, object] = {}
    # the same code on the engine that is everywhere
    exec(code.replace('open_engine("auto")', 'open_engine("reference")'), names)
    if "run" in names:
        assert "evaluation grids" in names["run"].summary
    if "gradients" in names:
        assert [layer.shape for layer in names["gradients"]["update"]] == [(4, 16), (1, 16)]
        assert names["states"].shape == (4, 1, 5, 7, 1)


def test_there_are_examples():
    assert len(BLOCKS) == 2


def test_tables_of_speed_and_presets_and_the_numbers_of_the_readme_are_generated():
    for path, text in (report.pages() | presets.pages()).items():
        assert path.read_text(encoding="utf-8") == text


def test_readme_lists_untested_systems():
    assert sorted(name for name, lines in report.kept().items() if lines) == sorted(
        path.stem for path in (CHECKOUT / "benchmarks/results").glob("*.jsonl")
    )
    words = " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())
    assert report.untried(report.kept()).removesuffix(".") in words
    install = (CHECKOUT / "docs/how-to/install.md").read_text(encoding="utf-8")
    untried = sum(name in report.untried(report.kept()) for name in ("Windows", "macOS"))
    assert install.count("It has not been tested on") == untried


def test_table_of_agents_has_the_newest_results():
    assert policies.report() in (CHECKOUT / "docs/how-to/policies.md").read_text(encoding="utf-8")


def test_table_of_image_classifiers_has_the_newest_results():
    assert images.report() in images.PAGE.read_text(encoding="utf-8")


def test_table_of_successes_has_the_newest_results():
    table = success.report(success.load(success.RESULTS / success.FILE))
    assert table in success.PAGE.read_text(encoding="utf-8")
