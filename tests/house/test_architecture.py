"""The page about the architecture is true: bin/check enforces its layers, and its names exist."""

import importlib
import re
import tomllib

import pytest

from difflogic.errors import MissingPackagesError
from tests.house.made_pages import CHECKOUT

PAGE = (CHECKOUT / "docs/explanation/architecture.md").read_text()
PAGES = {path.name: path.read_text() for path in (CHECKOUT / "docs").rglob("*.md")}
NAMES = sorted({(page, name) for page, text in PAGES.items() for name in re.findall(r"`(difflogic(?:\.\w+)+)`", text)})


def test_architecture_page_lists_the_enforced_layers():
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    enforced = [re.sub(r"[()]", "", layer) for layer in contracts[0]["layers"]]
    drawn = re.findall(r"^ ?\d+  (\S+(?: [|:] \S+)*)  ", PAGE, re.MULTILINE)
    assert drawn == enforced


@pytest.mark.parametrize(("page", "name"), NAMES)
def test_names_on_the_architecture_page_exist(page, name):
    try:
        found, rest = difflogic_module(name)
    except MissingPackagesError as error:
        pytest.skip(str(error))
    for attribute in rest:
        found = getattr(found, attribute)


def difflogic_module(name):
    """The deepest module of a dotted name, and the attributes that follow."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            return importlib.import_module(".".join(words[:length])), words[length:]
        except ModuleNotFoundError:
            continue
    raise AssertionError(f"{name} is no module")
