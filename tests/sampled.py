"""Parameters of which `bin/test` tries a sample."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], quick: Container[Any]) -> list[Any]:
    """Return the cases for `parametrize`; those outside `quick` are marked `exhaustive`."""
    rest = ((case if isinstance(case, tuple) else (case,), case in quick) for case in cases)
    return [pytest.param(*case, marks=() if is_quick else pytest.mark.exhaustive) for case, is_quick in rest]


def exhaustive(*cases: tuple[Any, ...]) -> list[Any]:
    """Return the cases for `parametrize`, each marked `exhaustive`."""
    return sampled(cases, ())
