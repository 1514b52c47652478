"""Every block of Python on a page is executed by some test; here are those of the pages that have none of their own."""

import ast
import contextlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.config.request import TRAIN_FIELDS, TrainRequest
from tests.house.made_pages import CHECKOUT
from tests.train.tiny import tiny_config

ELSEWHERE = {
    "docs/explanation/coming-from.md": "tests/house/test_functions_page.py",
    "docs/how-to/functions.md": "tests/house/test_functions_page.py",
    "docs/how-to/python.md": "tests/house/test_readme.py",
    "docs/how-to/tensor.md": "tests/tensor/test_page.py",
    "examples/README.md": "tests/house/test_example.py",
}
PAGES = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("*/README.md"), *CHECKOUT.glob("docs/**/*.md")]
BLOCKS = [
    (str(path.relative_to(CHECKOUT)), block)
    for path in PAGES
    for block in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
]
HERE = [(page, block) for page, block in BLOCKS if page not in ELSEWHERE]


FUNCTIONS = {name: getattr(difflogic, name) for name in difflogic.__all__ if callable(getattr(difflogic, name))}
FUNCTIONS["run"] = partial(difflogic.Trainer.run, None)
OPTIONS = {each.name for each in fields(TrainRequest)} | {"seed", "test", *TRAIN_FIELDS}


def calls(page: Path) -> Iterator[ast.Call]:
    for span in re.findall(r"`([^`\n]+\([^`\n]*)`", re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))):
        with contextlib.suppress(SyntaxError):
            yield from (each for each in ast.walk(ast.parse(span, mode="eval")) if isinstance(each, ast.Call))


def test_calls_in_sentences_fit_their_signatures():
    for call in (call for page in PAGES if page.name != "CHANGELOG.md" for call in calls(page)):
        if (name := ast.unparse(call.func).rpartition(".")[2]) in FUNCTIONS:
            names = {each.arg: None for each in call.keywords}
            bound = inspect.signature(FUNCTIONS[name]).bind_partial(*call.args, **names).arguments
            assert bound.get("options", bound.get("fields", {})).keys() <= OPTIONS, ast.unparse(call)


def test_skipped_pages_are_executed_by_other_tests():
    assert {page for page, _ in BLOCKS} >= ELSEWHERE.keys()
    assert [page for page, test in ELSEWHERE.items() if Path(page).name not in (CHECKOUT / test).read_text()] == []


@pytest.mark.parametrize(("page", "block"), HERE, ids=[page for page, _ in HERE])
def test_code_block_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "tensorboard" in block and importlib.util.find_spec("tensorboardX") is None:
        pytest.skip("needs the extra `tensorboard`")
    x = np.random.default_rng(0).integers(0, 2, (20, 4, 4))
    names: dict[str, Any] = {"difflogic": difflogic, "x": x, "y": np.stack([1 - x, x], axis=1), "mask": np.ones((4, 4))}
    names |= {"config": tiny_config(epochs=2), "engine": difflogic.open_engine("reference"), "folder": tmp_path / "run"}
    # The same on the engine that is everywhere, and for two epochs.
    block = block.replace('open_engine("auto")', 'open_engine("reference")').replace("epochs=100", "epochs=2")
    block = block.replace('within="60s"', 'epochs=2, engine="reference"')
    exec(block.replace("fit(data=samples)", 'fit(data=samples, epochs=2, engine="reference")'), names)
    assert "run" in names or (tmp_path / "soup.npy").exists()
