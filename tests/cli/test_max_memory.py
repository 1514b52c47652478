"""`--max-memory`: it reaches the plan, and is refused where no memory is planned."""

import pytest

from tests.cli.conftest import Call

pytestmark = pytest.mark.usefixtures("quick_kernels")


@pytest.mark.exhaustive
def test_max_memory_limits_the_plan(call: Call) -> None:
    result = call("--epochs", 1, "--max-memory", 0.001, engine="gpu")
    assert result.code == 1
    assert "The smallest plan needs" in result.errors
    assert "allow at least" in result.errors


def test_engine_without_plans_refuses_max_memory(call: Call) -> None:
    result = call("--epochs", 1, "--max-memory", 10)
    assert result.code == 2
    assert "--max-memory only limits the GPU engine, but the reference engine is selected" in result.errors
