"""An option of a request is declared once: whoever takes, tells or keeps options learns of it from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
from difflogic.cli.main import COMMANDS, group
from difflogic.sweeps import Spec
from tests.serve.live import serving

sys.path.append("bin/lib")
import reference

context = click.Context(group)
helped = {name for name in COMMANDS if any(each.name == "patience" for each in group.get_command(context, name).params)}
with serving(Path(sys.argv[1])) as live, live.client() as client:
    document = httpx.get(live.address + "/openapi.json").json()
    bodies = document["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]
    told = [each for each in client.get("/fields?of=request").json()["fields"] if each["path"] == "patience"]
    job = {"preset": "game-of-life", "patience": 9}
    kept = [client.post("/jobs", json=job).json()["request"]]
    kept.append(client.post("/jobs", json=job | {"sweep": {"over": {"seed": "0..1"}}}).json()["config"])
    refused = client.post("/jobs", json=job | {"patience": 0}).json()
spec = Spec.of(preset="game-of-life", over={"seed": "0..1"}, patience=5)
print(json.dumps({
    "commands": sorted(helped),
    "document": [each["schema"]["properties"].get("patience") for each in bodies.values()][0],
    "form": told,
    "kept": [each.get("patience") for each in kept],
    "refused": refused["error"]["message"],
    "reference": ["Wait so many turns" in page() for page in (reference.commands_page, reference.http_page)],
    "sweep": [Spec.from_dict(spec.to_dict()).request.patience, spec.to_dict()["patience"]],
}))
"""


def test_an_option_that_is_added_is_found_everywhere(tmp_path: Path) -> None:
    """In the commands, the API and its document, the form, the queue, a sweep, and the reference."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "store")]
    root, allowed = Path(__file__).parents[2], {**os.environ, mount.ALLOW: "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=allowed)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["commands"] == ["submit", "sweep", "train", "train-checkerboard", "train-policy"]
    assert found["document"] == {"type": "integer", "minimum": 1, "maximum": 2**31, "default": 7,
                                 "description": "Wait so many turns [7]."}  # fmt: skip
    assert [(each["about"], each["limits"], each["usual"]) for each in found["form"]] == [
        ("Wait so many turns.", "a whole number between 1 and 2147483648", "7")
    ]
    assert found["kept"] == [9, 9]
    assert found["refused"] == "`patience` must be a whole number between 1 and 2147483648, got 0."
    assert found["reference"] == [True, True]
    assert found["sweep"] == [5, 5]
