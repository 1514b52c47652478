"""The pages about functions, and about other projects, run from the first block to the last."""

import importlib.util
import re
from pathlib import Path

import pytest

from difflogic.circuits.synthesis import resubstitution
from tests.sampled import sampled

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {"how-to/functions.md": "losses", "explanation/coming-from.md": "circuit"}
"""And a name that its blocks make."""


def missing(block: str) -> str | None:
    """The library of others that a block imports and that is not here."""
    found = re.search(r"^import (torch|jax)$", block, re.MULTILINE)
    return found[1] if found and importlib.util.find_spec(found[1]) is None else None


@pytest.mark.parametrize(("page", "made"), sampled(PAGES.items(), [("explanation/coming-from.md", "circuit")]))
def test_every_block_runs(page: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten walks: circuits are proved after the first moves of a walk as after all of them."""
    monkeypatch.setattr(resubstitution, "WORK", 0)
    text, names = (DOCS / page).read_text(encoding="utf-8"), dict[str, object]()
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        if missing(block) is None:
            exec(block, names)
    assert made in names


@pytest.mark.parametrize(("module", "library"), [("torch", "torch"), ("jax", "jax")])
def test_missing_package_error_names_the_extra(module: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from difflogic.errors import MissingPackagesError

    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"difflogic.{module}", raising=False)
    with pytest.raises(MissingPackagesError, match=rf"difflogic.{module} requires {library}, part of the extra"):
        importlib.import_module(f"difflogic.{module}")
