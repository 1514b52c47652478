"""Runs that were written before `[train]` had sections beside it: shown, resumed, lent from, evaluated and exported.

`tests/data/README.md` says what is in the archive.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from difflogic.config import old_form
from difflogic.config.schema import Config
from difflogic.config.train import GrowthConfig, HardeningConfig, OptimizerConfig, PoolConfig, ScheduleConfig
from difflogic.runs import checkpoint
from difflogic.system import files
from tests.cli.conftest import Call
from tests.train.tiny import assert_same_run

ARCHIVE = Path(__file__).parents[1] / "data" / "runs_before_sections.zip"
NOTICE = (
    "difflogic: a configuration of an earlier version was read under today's names of its fields: `difflogic init` "
    "writes a file with all of them.\n"
)
ENGINE = ("--engine", "reference")


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path) -> None:
    """The folders grown, pooled and restarted; nothing has been told yet."""
    zipfile.ZipFile(ARCHIVE).extractall(tmp_path)
    old_form._notice.cache_clear()


@pytest.mark.parametrize(
    ("run", "epoch"), [("grown", "epoch 10 of 12"), ("pooled", "epoch 8 of 12"), ("restarted", "attempt 1")]
)
def test_they_are_shown(run: str, epoch: str, difflogic: Call) -> None:
    code, out, errors = difflogic("show", run)
    assert (code, errors) == (0, NOTICE)
    assert epoch in out


def test_they_are_listed(difflogic: Call) -> None:
    code, out, _ = difflogic("runs", ".")
    assert code == 0
    assert all(run in out for run in ("grown", "pooled", "restarted"))


def test_every_field_is_in_its_place(difflogic: Call) -> None:
    grown, pooled = (checkpoint.load(Path(run)).config for run in ("grown", "pooled"))
    assert grown == Config.load(Path("grown/config.toml"))
    assert grown.optimizer == OptimizerConfig(clip=50.0, clip_by="norm")
    assert grown.schedule == ScheduleConfig(share=0.5, begin=4, end=8)
    assert (grown.initial.logit, grown.initial.narrow_drop, grown.initial.noise) == (2.0, 0.5, 0.5)
    assert grown.hardening == HardeningConfig(share=0.6, begin=2, end=8)
    assert grown.growth == GrowthConfig(until=(3, 6), sides=(3, 4), steps=(1, 2))
    assert (grown.search.begin, grown.train.fire_rate, grown.train.eval_interval) == (9, 0.7, 4)
    assert pooled.optimizer == OptimizerConfig(weight_decay=0.02, epsilon=1e-6, beta1=0.8)
    assert pooled.pool == PoolConfig(size=6, reset=2)


@pytest.mark.parametrize("run", ["grown", "pooled"])
def test_they_go_on_bit_for_bit(run: str, difflogic: Call) -> None:
    """As the same run whose checkpoint was written anew, in today's form."""
    again = Path("again")
    again.mkdir()
    for path in Path(run).iterdir():
        (again / path.name).write_bytes(path.read_bytes())
    files.write_atomically(again / checkpoint.NAME, checkpoint.read(Path(run)).encode())
    assert difflogic("train", "--resume", run, *ENGINE).code == 0
    assert difflogic("train", "--resume", again, *ENGINE).code == 0
    assert_same_run(Path(run), again)
    manifest = json.loads(Path(run, "manifest.json").read_text())
    assert (manifest["config"]["format"], manifest["epoch"]) == (2, 12)


def test_a_search_ends_as_it_did(difflogic: Call) -> None:
    """It counts in whole numbers, alike on every processor: its end was kept when the run was written."""
    assert difflogic("train", "--resume", "grown", *ENGINE).code == 0
    logits = checkpoint.load(Path("grown")).state.logits
    assert hashlib.sha256(logits.tobytes()).hexdigest()[:16] == "d4361c9e6b482667"


def test_an_attempt_goes_on(difflogic: Call) -> None:
    code, _, errors = difflogic("train", "--resume", "restarted", *ENGINE)
    assert (code, errors.count(NOTICE)) == (0, 1)
    written = json.loads(Path("restarted/restarts.json").read_text())
    assert written["config"]["format"] == old_form.FORMAT
    assert len(written["attempts"]) > 1


def test_attempts_of_the_first_format_are_shown_and_go_on(difflogic: Call) -> None:
    """It said little: of the budget, and how far each attempt came."""
    attempt = {"folder": "attempt-1", "seed": 23, "epochs": 20, "solved": False}
    Path("restarted/restarts.json").write_text(json.dumps({"epochs": 60, "attempts": [attempt]}))
    assert "attempt 1: interrupted at epoch 20" in difflogic("show", "restarted").out
    assert difflogic("runs", ".").code == 0
    assert difflogic("train", "--resume", "restarted", *ENGINE).code == 0
    written = json.loads(Path("restarted/restarts.json").read_text())
    assert [(each["status"], each["epoch"]) for each in written["attempts"]] == [("complete", 60)]


def test_they_lend_their_circuit(difflogic: Call) -> None:
    options = ("--init-from", "pooled", *ENGINE, "--epochs", 1, "--out", "new")
    code, _, errors = difflogic("train", "--config", "grown/config.toml", *options)
    assert (code, errors.count(NOTICE)) == (0, 1)
    assert Path("new/config.toml").read_text().startswith("format = 2\n")


@pytest.mark.parametrize("given", ["grown", "pooled", "grown/circuit.json"])
def test_they_are_exported(given: str, difflogic: Call) -> None:
    assert difflogic("export", given, "--format", "numpy", "--out", "exports").code == 0
    assert list(Path("exports").iterdir())


def test_they_are_evaluated(difflogic: Call) -> None:
    code, out, _ = difflogic("evaluate", "grown", "--quick", *ENGINE, "--json")
    assert (code, json.loads(out)["name"]) == (0, "grown")
