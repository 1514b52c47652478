"""`difflogic plan`: bytes by strategy, the choice, and what it says where nothing fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from difflogic.cli.commands import plan
from difflogic.cli.main import main
from difflogic.config import presets
from difflogic.engine import memory
from difflogic.engine.job import make_job
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import Device
from difflogic.gpu.planner import plan_for
from difflogic.model.circuit import Circuit
from tests.cli.conftest import Said

Rows = list[dict[str, object]]


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> Rows:
    assert main(["plan", "--json", *arguments]) == 0
    rows: Rows = json.loads(capsys.readouterr().out)
    assert [row["strategy"] for row in rows] == ["kept", "recomputed", "recomputed", "recomputed"]
    assert [row["states_apart"] for row in rows] == [1, 1, 2, 3]
    totals = [row["total_bytes"] for row in rows]
    assert totals == sorted(totals, reverse=True)
    assert sum(map(bool, (row["chosen"] for row in rows))) == 1
    return rows


def test_small_work_keeps_its_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    kept, again, *_ = planned(capsys)
    assert (kept["chosen"], again["chosen"]) == (True, False)
    assert kept["total_bytes"] > again["total_bytes"]
    for row in (kept, again):
        assert row["total_bytes"] == sum(row["buffers"].values())


def test_big_work_computes_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys, "--size", "256x256")[1]["chosen"]
    assert planned(capsys, "--batch", "64")[1]["chosen"]
    huge = planned(capsys, "--size", "1024x1024", "--batch", "1")
    assert huge[1]["total_bytes"] > 1e9 > huge[2]["total_bytes"]
    assert huge[2]["chosen"]


def test_a_memory_limit_decides(capsys: pytest.CaptureFixture[str], said: Said) -> None:
    assert planned(capsys, "--max-memory", "50")[1]["chosen"]
    assert "The smallest plan needs" in said("plan", "--max-memory", "5", code=1).err


def test_a_population_past_one_binding_is_planned_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys, "--population", "2")[0]["groups"] == 1
    row = planned(capsys, "--population", "64")[1]
    assert row["chosen"]
    assert row["groups"] * row["models_per_group"] >= 64
    assert row["groups"] > 1
    limited = planned(capsys, "--population", "64", "--max-memory", "600")[1]
    assert limited == row, "a limit that all groups together keep changes nothing"
    assert main(["plan", "--population", "64", "--max-memory", "100"]) == 1
    assert "groups of models, but --max-memory allows 100.0 MB" in capsys.readouterr().err


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_every_preset_is_planned_as_it_would_be_trained(preset: str) -> None:
    config = presets.get(preset)
    job = make_job(config, Circuit.initial(config.model, config.seed))
    device = Device(select_adapter(None))
    assert plan_for(device, [plan._sizes(config)]).buffer_bytes() == plan_for(device, [job]).buffer_bytes()


def test_what_is_planned(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lizard = planned(capsys, "lizard")
    file = tmp_path / "mine.toml"
    file.write_text(presets.lizard().to_toml())
    assert planned(capsys, "--config", str(file)) == lizard
    assert planned(capsys, "lizard", "--set", "train.batch=4") == planned(capsys, "lizard", "--batch", "4") != lizard
    assert planned(capsys, "--small") == planned(capsys, "checkerboard-small")
    assert planned(capsys, "lizard", "--size", "40x30")[0]["total_bytes"] > lizard[0]["total_bytes"]
    assert main(["plan", "game-of-life", "--size", "40x30"]) == 0


def test_text(said: Said) -> None:
    first, second, third, _ = said("plan", "--small").out.splitlines()
    assert first.startswith("kept         chosen")
    assert second.startswith("recomputed  ")
    assert third.startswith("recomputed/2")
    assert " MB " in first


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--size", "big"], "Invalid value for '--size': 'big' is not WIDTHxHEIGHT, say 64x64."),
        (["--size", "9x2"], "height must be a whole number between 3 and 65536, or 1 on a line, got 2."),
        (["lizard", "--size", "9x9"], "target picture has 20x20 cells: the grid must be at least as large, got 9x9."),
        (["lizard", "--small"], "give a PRESET, --config FILE or --small, not several."),
        (["lizart"], "There is no preset 'lizart' (did you mean lizard?)"),
        (["--population", "0"], "population must be a whole number of at least 1, got 0."),
        (["--batch", "0"], "batch must be a whole number between 1 and 2147483648, got 0."),
        (["--max-memory", "none"], "'none' is not a positive number of MB."),
        (["--max-memory", "inf"], "'inf' is not a positive number of MB."),
    ],
)
def test_bad_input(arguments: list[str], text: str, said: Said) -> None:
    assert text in said("plan", *arguments, code=2).err


def test_work_that_no_plan_can_hold(said: Said) -> None:
    assert "but this device binds at most" in said("plan", "--size", "2000x2000", code=1).err


def test_a_grid_past_the_machines_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(memory, "physical_memory", lambda: 10**9)
    assert main(["plan", "--size", "2000x2000"]) == 1
    assert "One model needs at least 1.3 GB, but this machine has 1.0 GB of memory" in capsys.readouterr().err
