"""Choice of cases, and their work compared with the layout and the paper's numbers."""

import itertools

import pytest

from difflogic.bench.cases import all_cases, select
from difflogic.bench.work import work_of
from difflogic.config import presets
from difflogic.errors import UsageError
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from tests.train.tiny import tiny_config


def names(*patterns: str, quick: bool = False) -> list[str]:
    return [case.name for case in select(patterns, quick)]


def test_names_are_unique() -> None:
    every = [case.name for case in all_cases()]
    assert len(set(every)) == len(every)


def test_what_takes_minutes_is_asked_for_by_name() -> None:
    asked = {case.name for case in all_cases()} - set(names())
    assert asked == {"huge/1024", "population/64", *names("arrays"), *names("candidates")}
    assert names("huge") == ["huge/1024"]
    assert names("*") == [case.name for case in all_cases()]


def test_what_is_compared_takes_turns() -> None:
    groups: dict[str, set[str]] = {}
    for case in all_cases():
        groups.setdefault(case.turn_group, set()).add(case.name)
    assert groups["grid"] == {"grid/16", "grid/32", "grid/64"}
    assert {"train/checkerboard", "logged/checkerboard", "train/lizard"} <= groups["steps"]
    assert groups["huge/1024"] == {"huge/1024"}


def test_by_name_group_and_pattern() -> None:
    assert names("train/checkerboard") == ["train/checkerboard"]
    assert names("grid", "hard") == ["hard/checkerboard", "grid/16", "grid/32", "grid/64"]
    assert names("*/checkerboard-small") == ["train/checkerboard-small"]
    assert set(names(quick=True)) < set(names())
    assert names("grid/64", quick=True) == ["grid/64"]


def test_unknown() -> None:
    sentence = r"^Unknown case 'no/such': expected one of train/checkerboard, .*feed-forward/4x16000\.$"
    with pytest.raises(UsageError, match=sentence):
        select(["train", "no/such"], quick=False)


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
