"""`--max-memory`: it reaches the plan, and is refused where no memory is planned."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Call

pytestmark = pytest.mark.usefixtures("quick_kernels")


def test_it_decides_the_plan(call: Call) -> None:
    refused = call("--epochs", 1, "--max-memory", 0.001, engine="gpu")
    least = re.findall(r"allow at least ([\d.]+) MB", refused.errors)
    kept = {}
    for name, limit in {"free": [], "least": ["--max-memory", *least]}.items():
        result = call("--epochs", 1, *limit, "--out", name, engine="gpu")
        assert result.code == 0, result.errors
        kept[name] = json.loads(Path(name, "manifest.json").read_text())["engine"]["variant"]["keep"]
    assert kept == {"free": True, "least": False}


def test_too_little_is_one_sentence(call: Call) -> None:
    result = call("--epochs", 1, "--max-memory", 0.001, engine="gpu")
    assert result.code == 1
    assert "The smallest plan needs" in result.errors
    assert "allow at least" in result.errors


def test_an_engine_without_plans_refuses_it(call: Call) -> None:
    result = call("--epochs", 1, "--max-memory", 10)
    assert result.code == 2
    assert "--max-memory limits what the GPU engine takes, but the reference engine runs" in result.errors
