"""`difflogic doctor`: what it lists, how it takes bad news, and the memory that a training would take."""

import getpass
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import difflogic
from difflogic.bench.plans import sizes
from difflogic.config import presets
from difflogic.devices import selftest
from difflogic.devices.selftest import Check
from difflogic.engine.job import make_job
from difflogic.gpu import adapter as adapters
from difflogic.gpu.adapter import NO_ADAPTER, list_adapters, select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.planner import plan_for
from difflogic.model.circuit import Circuit
from difflogic.system.processor import processor_name
from tests.cli.conftest import Said

GOOD = [Check("device", True, "opens")]
BAD = [*GOOD, Check("gradients", False, "not so")]


pytestmark = pytest.mark.usefixtures("cache")  # the invented results must not reach the tests that train


def test_list_names_every_device_without_testing(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "self_test", lambda _: pytest.fail("--list tests nothing"))
    out = said("doctor", "--list").out
    for adapter in list_adapters():
        assert f"gpu:{adapter.index}: {adapter.name}" in out
        assert adapter.backend in out
        assert f"max-storage-buffer-binding-size = {adapter.limits['max-storage-buffer-binding-size']}" in out
    assert "hardware" in out or "software" in out
    assert f"cpu: {processor_name()}\n" in out
    listed = json.loads(said("doctor", "--list", "--json").out)["devices"]
    assert [entry["device"] for entry in listed] == [str(device) for device in difflogic.Device.all()]
    assert listed[-2] == {"device": "cpu", "name": processor_name(), "kind": "processor"}
    first = listed[0]
    assert first["kind"] == ("software" if first["type"] == "CPU" else "hardware")
    assert first["limits"] == dict(list_adapters()[0].limits)
    assert "handle" not in first


@pytest.mark.exhaustive
def test_doctor_tests_the_adapter(said: Said) -> None:
    report = json.loads(said("doctor", "--adapter", "0", "--json").out)
    assert report["healthy"]
    (device,) = report["devices"]
    assert [check["name"] for check in device["checks"]] == [
        *("device", "long loops", "NaN test", "workgroup memory"),
        *("forward", "gradients", "hard circuit", "determinism", "training"),
    ]


@pytest.mark.parametrize(("checks", "code", "line"), [(GOOD, 0, "ok"), (BAD, 1, "FAIL")])
def test_doctor_prints_the_result_of_each_test(checks, code, line, monkeypatch, said: Said) -> None:
    monkeypatch.setattr(selftest, "self_test", lambda _: checks)
    out = said("doctor", "--adapter", "0", code=code).out
    assert f"{line}  {checks[-1].name}: {checks[-1].detail}" in out.replace("ok    ", "ok  ")
    assert ("Some tests failed" in out) == (code == 1)


@pytest.mark.parametrize(("arguments", "code"), [((), 1), (("--list",), 0)])
def test_doctor_fails_without_an_adapter(arguments: tuple[str, ...], code: int, monkeypatch, said: Said) -> None:
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    out = said("doctor", *arguments, code=code).out
    assert out.endswith(f"{NO_ADAPTER}\n")
    assert [line.partition(":")[0] for line in out.splitlines()[2::3]][:2] == ["cpu", "reference"]


@pytest.fixture
def somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an owner; returns the home."""
    home = tmp_path / "people" / "mary-ann"
    (home / "clients/acme/cache").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr(getpass, "getuser", lambda: "mary-ann")
    monkeypatch.setattr(platform, "node", lambda: "ocelot.acme.example")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-built-by-mary-ann")
    names = {"NUMBA_CACHE_DIR": str(home / "clients/acme/cache"), "NUMBA_NUM_THREADS": "2", "DIFFLOGIC_TOKEN": "s3cret",
             "DIFFLOGIC_SERVER": "http://jobs.acme.example", "ACME_PASSWORD": "swordfish"}  # fmt: skip
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    return home


def test_report_has_facts_without_private_names(somebody: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    paths = [somebody / "venv/bin/python", "/srv/acme/lib/libvulkan.so", r"C:\Users\mary-ann\driver.dll"]
    told = [Check(f"check {index}", False, f"ended ({path}: on ocelot)") for index, path in enumerate(paths)]
    monkeypatch.setattr(selftest, "self_test", lambda adapter: [*GOOD, *told])
    out = said("doctor", "--adapter", "0", "--report", code=1).out
    private = ("mary", "acme", "ocelot", "people", "s3cret", "swordfish", "pytest-of")
    assert [word for word in private if word in out.lower()] == []
    adapter = list_adapters()[0]
    for words in (
        *(f"difflogic    {difflogic.__version__}", f"numpy {np.__version__}", platform.python_version()),
        *("DIFFLOGIC_TOKEN is set", "NUMBA_CACHE_DIR is a path", "NUMBA_NUM_THREADS=2", "built-by-<user>"),
        *("of code, in NUMBA_CACHE_DIR: does not exist yet", adapter.name, adapter.driver, "max-buffer-size"),
        *("CPU engine   compiled from its sources", "libvulkan.so", "driver.dll"),
        *("ok    device: opens", "FAIL  check 0: ended (.../python: on <host>)"),
    ):
        assert words in out


def test_report_works_without_user_and_cpu_engine(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr(getpass, "getuser", Mock(side_effect=KeyError("getpwuid(): uid not found: 12345")))
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory.")))
    monkeypatch.setitem(sys.modules, "difflogic.cpu.codegen.compiled", None)
    monkeypatch.setattr(adapters, "list_adapters", lambda: ())
    out = said("doctor", "--report", code=1).out
    assert "of code, in NUMBA_CACHE_DIR: cannot be read (ModuleNotFoundError" in out
    assert out.strip().endswith(NO_ADAPTER)


def planned(said: Said, *arguments: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(said("doctor", "--json", *arguments).out)
    assert [row["strategy"] for row in rows] == ["kept"] + ["recomputed"] * (len(rows) - 1)
    apart = [row["states_apart"] for row in rows]
    assert (apart[:2], apart) == ([1, 1], sorted(apart))
    totals = [row["total_bytes"] for row in rows]
    assert totals == sorted(totals, reverse=True)
    assert [row["chosen"] for row in rows].count(True) == 1
    assert totals == [sum(row["buffers"].values()) for row in rows]
    return rows


def chosen(rows: list[dict[str, Any]]) -> int:
    return [row["chosen"] for row in rows].index(True)


def test_memory_is_listed_by_strategy(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A software adapter may take an eighth of the machine's memory before some is saved at a cost."""
    monkeypatch.setattr("difflogic.gpu.planner.physical_memory", lambda: 8 << 30)
    small = planned(said, "checkerboard-small")
    assert chosen(planned(said, "checkerboard-small", "--set", "task.steps=4")) == 0
    assert chosen(planned(said, "--batch", "64")) == 1
    sides = ("--set", "task.height=672", "--set", "task.width=672", "--set", "task.steps=48", "--batch", "1")
    huge = planned(said, *sides)
    assert huge[1]["total_bytes"] > 1 << 30 > huge[2]["total_bytes"]
    assert chosen(huge) == 2
    with monkeypatch.context() as larger:
        larger.setattr("difflogic.gpu.planner.physical_memory", lambda: 16 << 30)
        assert chosen(planned(said, *sides)) == 1
    assert chosen(planned(said, "--max-memory", "50")) == 1
    assert "The smallest plan needs" in said("doctor", "--max-memory", "5", code=1).err
    file = tmp_path / "mine.toml"
    file.write_text(presets.checkerboard(small=True).to_toml())
    assert planned(said, "--config", file) == small
    lines = said("doctor", "checkerboard-small").out.splitlines()
    assert lines[0] == "checkerboard-small, device memory:"
    assert [line.split()[0] for line in lines[2:4]] == ["kept", "recomputed"]
    assert lines[4].split()[0] == "recomputed/2"


@pytest.mark.exhaustive
def test_memory_of_a_large_population_is_split_into_groups(said: Said) -> None:
    assert planned(said, "--population", "2")[0]["groups"] == 1
    rows = planned(said, "--population", "64")
    row = rows[chosen(rows)]
    assert row["groups"] * row["models_per_group"] >= 64
    assert row["groups"] > 1
    assert planned(said, "--population", "64", "--max-memory", "2000") == rows, "a limit that all groups keep"
    assert f"for each of {row['groups']} groups" in said("doctor", "--population", "64").out
    errors = said("doctor", "--population", "64", "--max-memory", "100", code=1).err
    assert "groups of models, but --max-memory allows 100.0 MB" in errors


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_planned_memory_equals_that_of_training(preset: str) -> None:
    config = presets.get(preset)
    job = make_job(config, Circuit.initial(config.model, config.seed))
    device = GpuDevice(select_adapter(None))
    assert plan_for(device, [sizes(config)]).buffer_bytes() == plan_for(device, [job]).buffer_bytes()


def test_memory_of_a_run_is_planned(run: Path, said: Said) -> None:
    assert said("doctor", run).out.startswith("tiny, device memory:")
    assert said("doctor", run, "--set", "seed=3", code=2).err.startswith("Error: here is a run and has its own")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["lizart"], 2, "Unknown preset 'lizart' (did you mean lizard?)"),
        (["runs/none"], 2, f"No run folder or checkpoint file at runs{os.sep}none."),
        (["lizard", "--set", "task.width=9"], 2, "picture has 20x20 cells, but the grid has 9x20"),
        (["--population", "0"], 2, "population must be an integer of at least 1, got 0."),
        (["--batch", "0"], 2, "batch must be an integer between 1 and 2147483648, got 0."),
        (["--max-memory", "none"], 2, "'none' is not a positive number of MB."),
        (["--adapter", "no such thing"], 1, "No GPU adapter matches 'no such thing'"),
        (["--report", "--json"], 2, "give one of them"),
        (["lizard", "--report"], 2, "--list and --report cannot be used with PRESET"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], code: int, text: str, said: Said) -> None:
    assert text in said("doctor", *arguments, code=code).err
