"""The exported names are documented: arguments, results, errors, and an example that runs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.engine.api import Engine
from difflogic.evaluation import evaluate, suite
from difflogic.model.circuit import Circuit
from difflogic.model.netlist import Netlist
from tests.house.made_pages import reference
from tests.train.tiny import tiny_config

NAMED = {name: getattr(difflogic, name) for name in reference.public_names() if name != "presets"}
NAMED |= {"Engine": Engine, "Netlist": Netlist}
FUNCTIONS = {name: thing for name, thing in NAMED.items() if not inspect.isclass(thing)}
FUNCTIONS |= {f"Trainer.{name}": getattr(difflogic.Trainer, name) for name in ("run",)}
FUNCTIONS |= {f"Circuit.{name}": getattr(Circuit, name) for name in ("from_arrays", "initial", "feed_forward")}
FUNCTIONS |= {f"Engine.{name}": getattr(Engine, name) for name in ("rollout", "loss_and_gradients", "train_step")}
OF_PROCESSES = ("sweep", "resume_sweep")
"""They begin processes, so that a script calls them below `if __name__ == "__main__":`, which a docstring cannot."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the names that examples may use: a small `config`, an `engine`, a `circuit`, and the `folder` of a run."""
    folder = tmp_path_factory.mktemp("docstrings") / "run"
    engine, config = difflogic.open_engine("reference"), tiny_config(epochs=2)
    run = difflogic.Trainer(config, engine).run(out=folder)
    known = {"config": config, "engine": engine, "folder": folder, "circuit": run.circuit}
    return {"difflogic": difflogic, "np": np, "Path": Path, **known}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_docstring_examples_run(name: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "TESTS", (*suite.TESTS[:5],))
    thing = NAMED[name]
    of_module = vars(importlib.import_module(thing.__module__))
    # Without four spaces before it the site shows an example as a quotation.
    assert not re.search(r"^>>>", inspect.getdoc(thing) or "", re.MULTILINE)
    tests = [each for each in doctest.DocTestFinder().find(thing, name, globs=of_module | names) if each.examples]
    assert tests or name in OF_PROCESSES
    for test in tests:
        said: list[str] = []
        assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_docstring_describes_arguments_and_result(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    parameters = [each for each in inspect.signature(FUNCTIONS[name]).parameters if each not in ("self", "cls")]
    told = text.partition("Args:\n")[2]
    assert [each for each in parameters if f"    {each}: " not in told] == []
    assert "Returns:\n" in text
