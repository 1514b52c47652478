"""The generated reference has every command, option, field, error, address and public name; the site has every page."""

import re

import click
import pytest

import difflogic
from difflogic.config.policy import AgentConfig, ClassifierConfig
from difflogic.config.schema import Config
from tests.house.made_pages import CHECKOUT, reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the written and the generated text of each page, by name."""
    found = {}
    for name, page in reference.PAGES.items():
        found[name.removeprefix("reference/")] = (CHECKOUT / "docs" / name).read_text(encoding="utf-8") + page()
    return found


def test_reference_lists_options_of_every_command(pages):
    text = "".join(page for name, page in pages.items() if name.startswith("commands/"))
    parts = re.split(r"^## difflogic (.+)$", text, flags=re.MULTILINE)
    documented = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert documented.keys() == reference.commands().keys() >= {"train", "jobs export"}
    assert re.findall(r"#difflogic-(.+?)\)", pages["commands.md"]) == [name for name in documented if " " not in name]
    assert "**Where it runs**\n\n| option" in documented["train-checkerboard"]
    for name, command in reference.commands().items():
        options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        missing = [word for option in options for word in option.opts if f"`{word}" not in documented[name]]
        assert missing == [], name
        repeated = [option.name for option in options if option.multiple and "repeated" not in (option.help or "")]
        assert repeated == [], f"{name} does not say that they may be repeated"
        assert len(documented[name].split("```text")[0].split()) > 3, f"{name} says what it does"


@pytest.mark.parametrize("kind", [Config, AgentConfig, ClassifierConfig])
def test_reference_lists_every_configuration_field(pages, kind):
    found = {(path, name) for path, section, _ in reference.sections(kind) for name, *_ in reference.fields(section)}
    assert len(found) > 30
    page = pages["configuration.md"]
    assert {path for path, _ in found if path and f"### `[{path}]`" not in page} == set()
    assert {name for _, name in found if f"| `{name}` |" not in page} == set()


def test_reference_lists_every_error_and_exit_code(pages):
    assert {"CircuitError", "StoreError"} <= {each.__name__ for each in reference.error_classes()}
    for each in reference.error_classes():
        row = rf"^\| `{each.__name__}` \| .+ \| {each.exit_code} \| `{each.__base__.__name__}` \|$"
        assert re.search(row, pages["errors.md"], re.MULTILINE)
        assert f"| `{each.exit_code}` | " in pages["errors.md"]


def test_reference_lists_every_address(pages):
    for path, operations in reference.openapi()["paths"].items():
        assert all(f"### `{method.upper()} {path}`" in pages["http.md"] for method in operations)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"$ref": "#/components/schemas/Job"}, "Job"),
        (
            {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]},
            "integer, at least 1, at most 9 or null",
        ),
        ({"enum": ["a", None]}, "a | null"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, "list of text, at least 1"),
        ({"type": "string", "maxLength": 5, "pattern": "^x$"}, "text, at most 5, like ^x$"),
        ({"type": "string", "format": "binary"}, "file"),
        ({"type": ["number", "null"], "exclusiveMinimum": 0}, "number, above 0 or null"),
        ({}, "any JSON"),
    ],
)
def test_reference_describes_schemas(about, words):
    assert reference.in_words(about) == words


def test_reference_lists_every_public_name(pages):
    shown = re.findall(r"heading: difflogic\.(\w+)", pages["python.md"])
    assert shown == reference.public_names()


MOVED = {
    "how-to/pictures-and-rules.md": "how-to/images-and-rules.md",
    "how-to/train-in-a-page.md": "how-to/in-browser-training.md",
    "tutorial/from-training-to-a-film.md": "tutorial/train-test-and-render.md",
    "tutorial/own-picture.md": "tutorial/own-image.md",
}
"""Earlier addresses of pages, and their present ones."""


def test_menu_has_every_page():
    menu = set(re.findall(r": ([\w/-]+\.md)$", (CHECKOUT / "mkdocs.yml").read_text(), re.MULTILINE))
    written = {str(path.relative_to(CHECKOUT / "docs")) for path in (CHECKOUT / "docs").rglob("*.md")}
    elsewhere = dict(re.findall(r'"([\w/.]+\.md)": "([\w/-]+\.md)"', (CHECKOUT / "bin/lib/site.py").read_text()))
    assert menu == (written | set(elsewhere.values())) - MOVED.keys() >= reference.PAGES.keys() | set(MOVED.values())
    assert all((CHECKOUT / origin).is_file() for origin in elsewhere)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_moved_page_redirects_to_its_new_address(old, new):
    refresh = re.search(r'http-equiv="refresh" content="0; url=([^"]+)\.html"', (CHECKOUT / "docs" / old).read_text())
    assert refresh
    assert str((CHECKOUT / "docs" / old).parent / refresh[1]) == str((CHECKOUT / "docs" / new).with_suffix(""))


def test_citation_has_this_version():
    text = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {difflogic.__version__}\n" in text
    assert "\nlicense: Apache-2.0\n" in text
