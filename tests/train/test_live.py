"""Display of a notebook: training in progress, and runs and circuits at the end of a cell."""

import html
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import difflogic
from difflogic.circuits.export import formats
from tests.train.tiny import EPOCHS, tiny_config


@pytest.fixture
def displays(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    made: list[list[str]] = []

    def display(shown: str, display_id: bool = False) -> Any:
        made.append([shown])
        return SimpleNamespace(update=made[-1].append)

    shell, drawn = ModuleType("IPython"), ModuleType("IPython.display")
    vars(shell).update(get_ipython=lambda: SimpleNamespace(kernel=True), version_info=(9, 0))
    vars(drawn).update(display=display, HTML=str)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", drawn)
    return made


def test_notebook_shows_training_and_its_result(displays: list[list[str]]) -> None:
    run = difflogic.Trainer(tiny_config(), difflogic.open_engine("reference")).run()
    (states,) = displays
    assert f"{EPOCHS}/{EPOCHS}" in re.sub("<[^>]*>", "", states[-1])
    for shown in (states[-1], run._repr_html_()):
        assert "data:image/gif;base64,R0lGOD" in shown
        assert "data:image/png;base64,iVBORw" in shown
    assert html.escape(run.summary) in run._repr_html_()

    found = difflogic.simplify(run.netlist)
    assert found.ok
    assert found.netlist.visible == run.config.task.loss_channels
    (page,) = re.findall('srcdoc="([^"]*)"', found.netlist._repr_html_() or "")
    assert html.unescape(page) == formats.export(found.netlist, "circuit", "html")["circuit.html"]
    assert "<iframe" in (run.circuit._repr_html_() or "")


def test_layer_is_shown_as_text() -> None:
    assert difflogic.Circuit.feed_forward([4, 4], seed=0)._repr_html_() is None
