"""The notebooks under examples run from the first cell to the last, and what they show can be shown.

Their cells are plain Python without magics, so they are executed here as such: a Jupyter kernel would be three more
packages and a process of its own, and would execute the same lines.
"""

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))


def executed(notebook: Path) -> tuple[dict[str, Any], list[Any]]:
    """The names that its cells leave behind, and what each cell ends with, as the notebook would show it."""
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            body = ast.parse("".join(cell["source"])).body
            if isinstance(last := body[-1], ast.Expr):
                body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
            exec(compile(ast.fix_missing_locations(ast.Module(body, [])), notebook.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(names["_"])
    return names, shown


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    names, shown = executed(notebook)
    pages = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert pages
    assert all("<" in page for page in pages)
    number = notebook.name[0]
    if number == "1":
        assert names["states"].shape == (41, 1, 24, 24, 8)
        assert "<iframe" in pages[-1]
    elif number == "2":
        assert names["run"].solved
        assert (names["states"][-1, 0, :, :, 0] == names["bits"]).all()
        assert {"heart/heart.html", "heart/heart.h"} <= {str(file) for file in Path("heart").iterdir()}
    else:
        *_, proof, other, files = shown
        assert len(names["small"].netlist.gates) == 3
        assert all(verdict.equal and verdict.proves for verdict in proof.verdicts)
        assert other is False
        assert all((Path("rule110") / file).exists() for file in files)
