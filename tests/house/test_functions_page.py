"""The page about devices and functions runs from the first block to the last."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/functions.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def missing(block: str) -> str | None:
    """The library of others that a block imports and that is not here."""
    found = re.search(r"^import (torch|jax)$", block, re.MULTILINE)
    return found[1] if found and importlib.util.find_spec(found[1]) is None else None


def test_every_block_runs() -> None:
    names: dict[str, object] = {}
    for block in BLOCKS:
        if missing(block) is None:
            exec(block, names)
    assert len(names["losses"]) == 60  # type: ignore[arg-type]
    assert "y" in names


@pytest.mark.parametrize(("module", "library"), [("torch", "torch"), ("jax", "jax")])
def test_what_to_install_is_said(module: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from difflogic.errors import MissingPackagesError

    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"difflogic.{module}", raising=False)
    with pytest.raises(MissingPackagesError, match=rf"difflogic.{module} needs {library}, which comes with the extra"):
        importlib.import_module(f"difflogic.{module}")
