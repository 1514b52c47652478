"""The errors' family tree, and the exit code each stands for."""

import inspect
import re

import pytest

from difflogic import errors

CLASSES: dict[str, type[errors.DifflogicError]] = dict(inspect.getmembers(errors, inspect.isclass))


def test_docstring_shows_the_tree_of_errors() -> None:
    parents = {}
    above = [""]
    for indent, name in re.findall(r"^    ([|+\- ]*)(\w+Error)\b", errors.__doc__ or "", flags=re.MULTILINE):
        depth = len(indent) // 4
        above = [*above[: depth + 1], name]
        parents[name] = above[depth]
    assert parents == {
        name: cls.__bases__[0].__name__ if cls is not errors.DifflogicError else "" for name, cls in CLASSES.items()
    }


@pytest.mark.parametrize("name", CLASSES)
def test_usage_errors_exit_with_2_and_others_with_1(name: str) -> None:
    cls = CLASSES[name]
    assert cls.exit_code == (2 if issubclass(cls, errors.UsageError) else 1)
