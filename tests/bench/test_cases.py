"""Choosing cases."""

from __future__ import annotations

import pytest

from difflogic.bench.cases import all_cases, select
from difflogic.errors import UsageError


def names(*patterns: str, quick: bool = False) -> list[str]:
    return [case.name for case in select(patterns, quick)]


def test_names_are_unique() -> None:
    assert len(set(names())) == len(all_cases()) == len(names())


def test_by_name_group_and_pattern() -> None:
    assert names("train/checkerboard") == ["train/checkerboard"]
    assert names("grid", "hard") == ["hard/checkerboard", "grid/16", "grid/32", "grid/64"]
    assert names("*/checkerboard-small") == ["train/checkerboard-small"]


def test_quick_is_fewer_unless_asked_for() -> None:
    assert set(names(quick=True)) < set(names())
    assert names("grid/64", quick=True) == ["grid/64"]


def test_unknown() -> None:
    with pytest.raises(UsageError, match=r"^No case 'no/such': expected one of train/checkerboard, .*population/16\.$"):
        select(["train", "no/such"], quick=False)
