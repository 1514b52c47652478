"""The page's train step beside the engine's: both train the same, and both are timed."""

import pytest

from benchmarks import page_steps
from tests.javascript import node


@pytest.mark.exhaustive
def test_both_are_timed_once_they_train_the_same() -> None:
    node.needs()
    ours, page = page_steps.measured("game-of-life", 8, 1)
    assert (ours["contender"], ours["ratio_to_engine"]) == ("gpu", 1)
    assert page["contender"] == "page in Node"
    assert page["median_ms"] > 0


def test_what_trains_to_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    node.needs()
    monkeypatch.setattr(page_steps, "of_the_page", lambda *given: ([1.0, 1.0], 1.0))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        page_steps.measured("game-of-life", 2, 1)
