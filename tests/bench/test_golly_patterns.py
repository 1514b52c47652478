"""Patterns of Golly's package: the comparison with `bgolly`."""

import pytest

from benchmarks import golly_patterns
from difflogic.core import patterns
from tests.programs import needs


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["Loops/Langtons-Loops", "Generations/Delta", "Life/Bounded-Grids/torus"])
def test_pattern_runs_as_bgolly_runs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bgolly")
    path = golly_patterns.PATTERNS / f"{name}.rle"
    assert golly_patterns.result(path) == "equal"
    other = patterns.read(path).states.copy()
    other[-1, -1] ^= 1
    monkeypatch.setattr(golly_patterns, "of_golly", lambda *_: other)
    assert golly_patterns.result(path) == "DIFFERENT"
