"""Counts of work, compared with the layout and the paper's numbers."""

import itertools

import pytest

from difflogic.bench.cases import all_cases
from difflogic.bench.work import work_of
from difflogic.config import presets
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from tests.train.tiny import tiny_config


def test_the_checkerboard() -> None:
    """4608 gate evaluations per cell and step, 512 cells, 20 steps."""
    work = work_of(presets.checkerboard(small=False))
    assert work.soft_evaluations == 4608 * 512 * 20 == 47_185_920
    assert work.hard_evaluations == 17 * work.soft_evaluations, "34 grids instead of 2"


@pytest.mark.parametrize("config", [presets.checkerboard(small=True), tiny_config()], ids=["small", "tiny"])
def test_instances_are_those_of_the_layout(config) -> None:
    layout = flat_layout(Circuit.initial(config.model, config.seed))
    cells = config.task.height * config.task.width * config.train.batch
    work = work_of(config)
    assert work.soft_evaluations == layout.instances * cells * config.task.steps
    assert work.nodes == layout.nodes * cells * config.task.steps
    assert work.states == config.model.channels * cells * config.task.steps


def test_kept_nodes_are_traffic() -> None:
    work = work_of(tiny_config())
    assert work.traffic(keeps_nodes=True) - work.traffic(keeps_nodes=False) == 4 * (2 * work.nodes - work.states)


@pytest.mark.parametrize(("group", "points"), [("grid", 3), ("batch", 3), ("population", 4)])
def test_curves_grow_by_four(group: str, points: int) -> None:
    work = [case.evaluations for case in all_cases() if case.group == group]
    assert len(work) == points
    assert all(new == 4 * old for old, new in itertools.pairwise(work))
