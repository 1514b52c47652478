"""The documents are true: commands and options exist, links have targets, public names are listed."""

import re
import shlex

import click
import pytest

import difflogic
from difflogic.cli import main as cli
from tests.house.made_pages import CHECKOUT

DOCUMENTS = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("*/README.md"), *CHECKOUT.glob("docs/**/*.md")]
README = "".join(document.read_text() for document in CHECKOUT.glob("README.md"))
PAGES = "".join(document.read_text() for document in CHECKOUT.glob("docs/**/*.md"))
WORKFLOWS = "".join(path.read_text() for path in CHECKOUT.glob(".github/workflows/*.yml"))
TEXT = re.sub(r"\\\n *", "", README + PAGES)

CONTEXT = click.Context(cli.group, info_name="difflogic")
COMMANDS = {name: cli.group.get_command(CONTEXT, name) for name in cli.group.list_commands(CONTEXT)}

COMMAND = re.compile(r"^(?: {4}|\$ )?(?:bin/)?difflogic (.+?)(?: && .*)?$", re.MULTILINE)


def example_lines() -> list[str]:
    """Every line of the README and the pages that calls the command, without its trailing comment."""
    return sorted({shlex.join(shlex.split(line, comments=True)) for line in COMMAND.findall(TEXT)})


def test_main_job_is_an_example():
    assert "train-checkerboard --gpu --epochs 500" in example_lines()


@pytest.mark.parametrize("line", example_lines())
def test_example_parses(line):
    words = shlex.split(line)
    command = COMMANDS[words.pop(0)] if words[0] in COMMANDS else cli.group
    if command is not cli.group and isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    _, rest, _ = command.make_parser(click.Context(command, parent=CONTEXT)).parse_args(words)
    assert rest == []


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_documented(name):
    assert f"difflogic {name}" in README + PAGES
    command = COMMANDS[name]
    assert command.help
    undescribed = [option.name for option in command.params if isinstance(option, click.Option) and not option.help]
    assert undescribed == []


@pytest.mark.parametrize("script", sorted(set(re.findall(r"(?<!\.venv/)\bbin/[a-z]+", README + PAGES + WORKFLOWS))))
def test_script_exists(script):
    assert (CHECKOUT / script).is_file()


@pytest.mark.parametrize("name", [name for name in difflogic.__all__ if name != "__version__"])
def test_public_name_is_documented(name):
    assert re.search(rf"\b{name}\b", README + PAGES)
    assert getattr(difflogic, name) is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_links_have_targets(document):
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())
    paths = [(document.parent / link).resolve() for link in links if "://" not in link]
    assert [path for path in paths if not path.exists()] == []


def test_changelog_has_this_version():
    changelog = (CHECKOUT / "CHANGELOG.md").read_text()
    assert f"## {difflogic.__version__}" in changelog or "## Unreleased" in changelog
