"""`--precision`: it belongs to the run, nearly halves what is kept, and the CPU engine does not know it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Said

HALF = ("--precision", "f16-storage")


@pytest.mark.usefixtures("quick_kernels")
def test_it_is_kept_in_the_configuration_of_the_run(call: Call) -> None:
    assert call("--epochs", 1, *HALF, "--out", "run", engine="gpu").code == 0
    assert tomllib.loads(Path("run/config.toml").read_text())["train"]["precision"] == "f16-storage"


def test_it_is_not_changed_on_the_way(call: Call) -> None:
    assert call("--epochs", 1, "--out", "run").code == 0
    refused = call("--epochs", 2, "--resume", "run", *HALF)
    assert refused.code == 2
    assert "--resume continues a run as it was configured: drop --precision." in refused.errors


def test_the_cpu_engine_refuses(call: Call) -> None:
    refused = call("--epochs", 1, *HALF, engine="cpu")
    assert refused.code == 2
    assert "but the cpu engine computes them again: ask for --gpu, or leave the precision at float32." in refused.errors


def test_planned_memory_shows_half(said: Said) -> None:
    kept = []
    for precision in ("float32", "f16-storage"):
        options = ("--set", f"train.precision={precision}")
        kept.append(json.loads(said("doctor", "--json", *options).out)[0]["buffers"]["kept"])
    assert 9 * kept[0] == 16 * kept[1]
