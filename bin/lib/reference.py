"""Generate the pages of docs/reference from the code; docs/reference contains only their introductions.

`bin/docs` adds the pages to the site. `tests/house/test_reference.py` compares the pages with the code, without mkdocs.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

import difflogic
from difflogic import errors
from difflogic.cli import main as cli
from difflogic.cli.options import TrainingCommand
from difflogic.config.fields import KINDS, Table, plain
from difflogic.config.policy import AgentConfig, ClassifierConfig
from difflogic.config.schema import Config

COMMANDS = {
    f"reference/commands/{page}.md": group
    for page, group in zip(("train", "runs", "circuits", "server", "measure"), cli.GROUPS, strict=True)
}
"""Group of commands on each page, by the path of the page."""
SCHEMAS = Path(__file__).resolve().parents[2] / "docs/reference/schemas"


def table(headers: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table in Markdown; cells have no line ends, and bars outside of code are escaped."""

    def cell(text: str) -> str:
        parts = " ".join(text.split()).split("`")
        return "`".join(part if index % 2 else part.replace("|", "\\|") for index, part in enumerate(parts))

    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return [f"| {headers} |", "|---" * (headers.count("|") + 1) + "|", *lines] if lines else []


def sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")


def _paragraphs(text: str) -> list[str]:
    """Convert click's help to Markdown; a block that begins with a backspace becomes preformatted text."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        is_verbatim = block.startswith("\b")
        lines += ["", "```text", *block.splitlines()[1:], "```"] if is_verbatim else ["", *_escaped(block).splitlines()]
    return lines


def commands(group: str | None = None) -> dict[str, click.Command]:
    """Return the commands of a group, or all commands, by their full names, including subcommands."""
    context = click.Context(cli.group, info_name="difflogic")
    commands: dict[str, Any] = {}
    for name in cli.COMMANDS if group is None else cli.GROUPS[group]:
        commands[name] = command = cli.group.get_command(context, name)
        commands |= {f"{name} {inner}": subcommand for inner, subcommand in getattr(command, "commands", {}).items()}
    return commands


def commands_index() -> str:
    """Return the commands of each group, with links to their pages."""
    lines = []
    for path, group in COMMANDS.items():
        page = path.removeprefix("reference/")
        lines += ["", f"## {group}", ""]
        rows = (
            (f"[`difflogic {name}`]({page}#difflogic-{name})", about) for name, (_, about) in cli.GROUPS[group].items()
        )
        lines += table("command | what it does", rows)
    return "\n".join(lines) + "\n"


def commands_page(group: str) -> str:
    lines = []
    for name, command in commands(group).items():
        context = click.Context(command, info_name=f"difflogic {name}", show_default=True, terminal_width=90)
        lines += ["", f"## difflogic {name}", *_paragraphs(inspect.cleandoc(command.help or ""))]
        lines += ["", "```text", command.get_usage(context), "```", ""]
        options = {"": [option for option in command.params if isinstance(option, click.Option)]}
        for title, part in (command.sections(context) if isinstance(command, TrainingCommand) else options).items():
            records = (option.get_help_record(context) for option in part if "--help" not in option.opts)
            rows = ((f"`{names.replace(', ', '`, `')}`", _escaped(about)) for names, about in filter(None, records))
            lines += [*([f"**{title}**", ""] if title else []), *table("option | what it does", rows), ""]
    return "\n".join(lines) + "\n"


def sections(kind: type, path: str = "", about: str = "") -> Iterator[tuple[str, type, str]]:
    """Yield path, class and description of every table of a configuration, depth first."""
    yield path, kind, about
    for name, inner in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(inner):
            about = next(str(field.metadata["about"]) for field in dataclasses.fields(kind) if field.name == name)
            yield from sections(inner, f"{path}.{name}".lstrip("."), about)


def fields(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, description, values and default of every field that is not a table."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if not dataclasses.is_dataclass(inner := hints[field.name]):
            limits = field.metadata.get("limits")
            values = limits.words if limits else _words(inner)
            default = "required" if field.default is dataclasses.MISSING else f"`{json.dumps(plain(field.default))}`"
            yield field.name, sentence(str(field.metadata["about"])), values, default


def _words(kind: Any) -> str:
    if kind is Table:
        return "a table"
    return KINDS[kind] if kind in KINDS else "a list, each " + _words(kind.__args__[0])


def configuration_page() -> str:
    lines = []
    commands = {Config: "train", AgentConfig: "train-policy", ClassifierConfig: "train --data FILE --label COLUMN"}
    for title, (kind, command) in zip(("Automata", "Agents", "Classifiers"), commands.items(), strict=True):
        lines += [f"## {title}", "", f"The configuration of `difflogic {command}`.", ""]
        for path, section, words in sections(kind):
            if path:
                lines += [f"### `[{path}]` {{#{title.lower()}-{path.replace('.', '-')}}}", "", sentence(words), ""]
            rows = ((f"`{field}`", *map(_escaped, about), default) for field, *about, default in fields(section))
            lines += [*table("field | what it is | values | default", rows), ""]
    return "\n".join(lines)


def error_classes(kind: type[errors.DifflogicError] = errors.DifflogicError) -> list[type[errors.DifflogicError]]:
    """Return all error classes; each class precedes its subclasses."""
    below = [error for error in kind.__subclasses__() if error.__module__ == "difflogic.errors"]
    return [kind, *(inner for error in below for inner in error_classes(error))]


def errors_page() -> str:
    rows = []
    for kind in error_classes():
        cause = sentence((kind.__doc__ or "").split("\n\n")[0])
        rows.append((f"`{kind.__name__}`", cause, str(kind.exit_code), f"`{kind.__bases__[0].__name__}`"))
    return "\n".join(table("error | when | exit code | is a", rows))


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of a server, without starting one."""
    from difflogic.serve.api.app import create_app
    from difflogic.serve.api.settings import ServeSettings
    from difflogic.serve.api.tokens import Tokens
    from difflogic.serve.store.store import Store

    with tempfile.TemporaryDirectory() as folder, closing(Store.open(Path(folder) / "store", durable=False)) as store:
        return create_app(store, Tokens({"docs": "0" * 32}), ServeSettings()).openapi()


TYPES = {"binary": "file", "string": "text", "array": "list", "boolean": "true or false"}
LIMITS = {
    f"{start}{what}": words
    for start, words in (("min", "at least"), ("max", "at most"))
    for what in ("imum", "Items", "Length")
}
LIMITS |= {"exclusiveMinimum": "above", "exclusiveMaximum": "below", "pattern": "like"}
"""Words for limits of numbers, lists and texts, by the names of the limits in JSON Schema."""


def in_words(schema: Mapping[str, Any]) -> str:
    """Return a description of the values that a schema allows; a reference to a named schema becomes its name."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join("null" if value is None else str(value) for value in schema["enum"])
    if (choices := schema.get("anyOf", schema.get("oneOf"))) is not None:
        return " or ".join(map(in_words, choices))
    if "const" in schema:
        return str(schema["const"])
    kinds = schema.get("type", "any JSON")
    kind, *others = [kinds] if isinstance(kinds, str) else kinds
    words = TYPES.get(schema.get("format", ""), TYPES.get(kind, kind))
    if isinstance(inside := schema.get("items", schema.get("additionalProperties")), dict):
        words += f" of {in_words(inside)}"
    words += "".join(f", {limit} {schema[name]}" for name, limit in LIMITS.items() if name in schema)
    return " or ".join([words, *others])


def _row(name: str, is_required: bool, schema: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"`{name}`" + "*" * is_required, in_words(schema), _escaped(about.get("description", ""))


def _properties(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    for name, inner in schema.get("properties", {}).items():
        yield _row(f"{path}{name}", name in schema.get("required", ()), inner, inner)
        yield from _properties(inner.get("anyOf", [inner])[0], f"{path}{name}.")
        if isinstance(inner.get("items"), dict):
            yield from _properties(inner["items"], f"{path}{name}[].")


def http_page() -> str:
    """Return the page of the HTTP API: addresses grouped by tags, then the objects of requests and replies."""
    document = openapi()
    groups: dict[str, list[str]] = {}
    refusals: dict[str, str] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            part = groups.setdefault(operation["tags"][0], [])
            part += ["", f"### `{method.upper()} {path}`", *_operation(operation)]
            refusals |= {s: reply["description"] for s, reply in operation["responses"].items() if s >= "400"}
    lines = table("status | meaning", ((status, _escaped(refusals[status])) for status in sorted(refusals)))
    for tag, part in groups.items():
        lines += ["", f"## {tag.capitalize()}", *part]
    lines += ["", "## Objects"]
    for name, schema in document["components"]["schemas"].items():
        lines += ["", f"### {name}", "", _escaped(schema.get("description", "")), ""]
        lines += table("field | values | what it is", _properties(schema))
    return "\n".join(lines) + "\n"


def _operation(operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines with the description, the parameters, the request body and the replies of an address."""
    yield from _paragraphs(operation.get("description") or operation["summary"])
    for place in ("path", "query", "header"):
        parameters = (parameter for parameter in operation.get("parameters", ()) if parameter["in"] == place)
        rows = (_row(each["name"], each.get("required", False), each["schema"], each) for each in parameters)
        yield from ("", *table(f"in the {place} | values | what it is", rows))
    yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"- Takes `{kind}`: {in_words(content['schema'])}."
        if kind == "application/json" and "properties" in content["schema"]:  # a schema without a name
            yield from ("", *table("field | values | what it is", _properties(content["schema"])), "")
    for status, reply in operation["responses"].items():
        forms = [in_words(part["schema"]) for part in reply.get("content", {}).values() if part.get("schema")]
        if status < "400":
            yield f"- Answers {status}" + (f": {'; '.join(forms)}." if forms else ".")
    yield f"- May be refused with {', '.join(sorted(status for status in operation['responses'] if status >= '400'))}."


def python_page() -> str:
    """Return the page of the Python API: directives for mkdocstrings, which reads the docstrings."""
    lines = []
    for name in public_names():
        thing = getattr(difflogic, name)
        path = thing.__name__ if name == "presets" else f"{thing.__module__}.{thing.__qualname__}"
        lines += [f"::: {path}", "    options:", "      heading_level: 2", f"      heading: difflogic.{name}", ""]
    for path in ("engine.api.Engine", "engine.api.Model", "model.netlist.Netlist"):
        lines += [f"::: difflogic.{path}", "    options:", "      heading_level: 2", ""]
    return "\n".join(lines)


def public_names() -> list[str]:
    return [name for name in difflogic.__all__ if name != "__version__"]


def schemas_page() -> str:
    lines = []
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        name, schema = path.name.removesuffix(".schema.json"), json.loads(path.read_text(encoding="utf-8"))
        lines += ["", f"## {name}", "", f"{schema['description']} [Schema](schemas/{path.name}).", ""]
        lines += table("field | values | what it is", _properties(schema))
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_index,
    **{path: partial(commands_page, group) for path, group in COMMANDS.items()},
    "reference/configuration.md": configuration_page,
    "reference/errors.md": errors_page,
    "reference/http.md": http_page,
    "reference/python.md": python_page,
    "reference/schemas.md": schemas_page,
}
