"""Choosing cases."""

import pytest

from difflogic.bench.cases import all_cases, select
from difflogic.errors import UsageError


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
