"""An option of a request is declared once: all interfaces, documents, files and actions take it from there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from difflogic.serve.store import mount

PROGRAM = """
import difflogic.config.request as request
from difflogic.config.fields import section
from difflogic.config.limits import COUNT


@section
class Extended(request.TrainRequest):
    patience: int = request.option("Wait so many turns", COUNT, default=7, group="run", of_trials=True)


request.TrainRequest = Extended  # as if it were declared there: nothing else has been imported yet

import json
import sys
from pathlib import Path

import click
import httpx
from difflogic import fit
from difflogic.cli.main import COMMANDS, group
from difflogic.devices.open import place
from difflogic.serve.worker import training
from difflogic.serve.worker.trial_jobs import TrialJobs
from difflogic.sweeps import Spec
from difflogic.sweeps.trial import Rung
from difflogic.train.observer import Observer
from difflogic.train.run_request import hardening_request, run_request, whole
from difflogic.train.session import Session
from difflogic.train.signals import Stop
from tests.serve.live import serving
from tests.train.tiny import tiny_config

sys.path.append("bin/lib")
import reference

context = click.Context(group)
helped = {name for name in COMMANDS if any(each.name == "patience" for each in group.get_command(context, name).params)}

init, is_over = Session.__init__, Session._is_over


def begin(self, request, *rest):
    init(self, request, *rest)
    self.patience = request.patience


Session.__init__ = begin
Session._is_over = lambda self: is_over(self) or self.epoch >= self.patience  # the effect of the option


class Once(Observer):
    def advanced(self, epoch):
        self.stop.ask("enough")


def cut(name, **options):
    once = Once()
    once.stop = Stop()
    fit(config, out=folder / name, engine="reference", observer=once, patience=5, **options)
    return fit(resume=folder / name).epoch


def worked(job):
    return training.train(live.store, live.store.job(job), engine, Observer())[1]["progress"]


folder, engine, config = Path(sys.argv[1]) / "runs", place("reference"), tiny_config(epochs=100)
single = fit(config, out=folder / "single", engine="reference", patience=5)
hardened = hardening_request(single.path, epochs=9, eval_interval=5, patience=5)
epochs = {
    "a single run": single.epoch,
    "attempts": fit(config, engine="reference", restarts=1, patience=5).epoch,
    "a resumed run": cut("cut"),
    "resumed attempts": cut("restarted", restarts=1),
    "harden": run_request(whole(hardened), engine).run.epoch,
}
with serving(Path(sys.argv[1]) / "store") as live, live.client() as client:
    made = client.post("/jobs", json={"config": config.to_dict(), "patience": 5}).json()["id"]
    epochs["a job"] = worked(made)
    spec = Spec.of(config=config, over={"seed": [1, 2]}, patience=5)
    TrialJobs(live.store, folder, "a" * 16).submit(Rung(spec, 0, {"seed": 1}, 0, None))
    epochs["a trial"] = worked(live.store.trials("a" * 16)[0].id)
    document = httpx.get(live.address + "/openapi.json").json()
    bodies = document["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    told = [each for each in client.get("/fields?of=request").json()["fields"] if each["path"] == "patience"]
    job = {"preset": "game-of-life", "patience": 9}
    kept = [client.post("/jobs", json=job).json()["request"]]
    kept.append(client.post("/jobs", json=job | {"sweep": {"over": {"seed": "0..1"}}}).json()["config"])
    refused = client.post("/jobs", json=job | {"patience": 0}).json()
spec = Spec.of(preset="game-of-life", over={"seed": "0..1"}, patience=5)
print(json.dumps({
    "epochs": epochs,
    "commands": sorted(helped),
    "document": [each["schema"]["properties"].get("patience") for each in bodies.values()][0],
    "form": told,
    "kept": [each.get("patience") for each in kept],
    "refused": refused["error"]["message"],
    "reference": ["Wait so many turns" in page for page in (reference.commands_page("Train"), reference.http_page())],
    "sweep": [Spec.from_dict(spec.to_dict()).request.patience, spec.to_dict()["patience"]],
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("said"))]
    root, allowed = Path(__file__).parents[2], {**os.environ, mount.ALLOW: "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=allowed)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_option_takes_effect_in_every_interface(found: dict[str, Any]) -> None:
    """It ends each of the runs at epoch 5."""
    roads = ("a single run", "attempts", "a resumed run", "resumed attempts", "harden", "a job", "a trial")
    assert found["epochs"] == dict.fromkeys(roads, 5)


def test_added_option_is_in_every_interface(found: dict[str, Any]) -> None:
    """In the commands, the API and its document, the form, the queue, a sweep, and the reference."""
    assert found["commands"] == ["submit", "sweep", "train", "train-checkerboard", "train-policy"]
    assert found["document"] == {"type": "integer", "minimum": 1, "maximum": 2**31, "default": 7,
                                 "description": "Wait so many turns [7]."}  # fmt: skip
    assert [(each["about"], each["limits"], each["usual"]) for each in found["form"]] == [
        ("Wait so many turns.", "an integer between 1 and 2147483648", "7")
    ]
    assert found["kept"] == [9, 9]
    assert found["refused"] == "`patience` must be an integer between 1 and 2147483648, got 0."
    assert found["reference"] == [True, True]
    assert found["sweep"] == [5, 5]
