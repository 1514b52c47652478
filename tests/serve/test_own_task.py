"""Tasks in Python as jobs: none that the operator does not allow, and nothing of one is loaded before that."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.cli.commands.serve import tasks
from difflogic.config import presets, registered
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.errors import ConfigError
from difflogic.runs.plots import picture_png
from difflogic.serve.api.routes import about
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.submission import Submission, of_automata
from difflogic.serve.errors import ApiError
from difflogic.serve.store.jobs import JobRequest
from difflogic.train.trainer import Trainer
from tests.own_tasks import PLAIN, install

NAME = "my-package:fill"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "site", "my-package", {"plain_fill": PLAIN}, fill="plain_fill:Fill")


def submitted(settings: ServeSettings, uploads: dict[str, Path] | None = None, **request: Any) -> Submission:
    return of_automata(JobRequest.from_dict(request), uploads or {}, settings)


def test_task_that_is_not_allowed_is_refused_and_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = presets.get(NAME).to_dict()
    monkeypatch.setattr(registered, "find", None)
    (tmp_path / "target.png").write_bytes(picture_png(np.zeros((8, 8, 3), dtype=np.uint8)))
    picture: dict[str, Any] = {"uploads": {"target": tmp_path / "target.png"}}
    for request in ({"preset": NAME}, {"config": config}, {"preset": "My.Package:fill"}):
        for files in (picture, {}):
            with pytest.raises(ApiError, match=r"does not allow the task in Python .*, only none"):
                submitted(ServeSettings(), **files, **request)
    with pytest.raises(ApiError, match="omit plugin"):
        submitted(ServeSettings(tasks=frozenset({NAME})), config=config, set={"plugin.name": "other:task"})


def test_allowed_task_becomes_a_job_that_is_trained() -> None:
    made = submitted(ServeSettings(tasks=tasks(NAME)), preset=NAME, set={"task.side": 5})
    config = Config.from_dict(made.spec.config or {})
    assert config.plugin.settings["side"] == 5
    assert Trainer(config, open_engine("reference")).run(epochs=1).config == config.with_(train={"epochs": 1})
    for many in ({"preset": NAME, "set": {"data.samples": 10**8}},
                 {"config": {**config.to_dict(), "data": {"samples": 10**8}}}):  # fmt: skip
        with pytest.raises(ApiError, match=r"data\.samples must be at most 65536"):
            submitted(ServeSettings(tasks=tasks(NAME)), **many)
    with pytest.raises(ApiError, match="side must be an integer between 3 and 8"):
        submitted(ServeSettings(tasks=tasks(NAME)), preset=NAME, set={"task.side": 50})
    assert {NAME, "lizard"} <= {each["name"] for each in about._presets(frozenset({NAME}))}


def test_an_operator_names_tasks_that_are_there() -> None:
    assert tasks("") == frozenset()
    with pytest.raises(ConfigError, match="Unknown task 'my-package:none'"):
        tasks(f"{NAME}, my-package:none")
