"""The pages of docs/reference that are made from the code: nothing on them is typed a second time.

`bin/docs` puts them into the site. `tests/house/test_reference.py` holds them to the code, without mkdocs.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import difflogic
from difflogic import errors
from difflogic.cli import main as cli
from difflogic.config.fields import KINDS, Table, plain
from difflogic.config.policy import PolicyConfig
from difflogic.config.schema import Config

SCHEMAS = Path(__file__).resolve().parents[2] / "docs/reference/schemas"


def table(headers: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown; line ends within cells go, and bars are escaped where they are not code."""

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
    """Click's help as Markdown: a backspace begins a block whose lines stay as they are."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        kept = block.startswith("\b")
        lines += ["", "```text", *block.splitlines()[1:], "```"] if kept else ["", *_escaped(block).splitlines()]
    return lines


# --- the command line


def commands() -> dict[str, click.Command]:
    """Every command by its full name, those of groups too: `bench compare`."""
    context = click.Context(cli.group, info_name="difflogic")
    found: dict[str, Any] = {}
    for name in cli.group.list_commands(context):
        found[name] = command = cli.group.get_command(context, name)
        found |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


def commands_page() -> str:
    text = "`difflogic COMMAND --help` prints the same text. Every command ends with an [exit code](errors.md)."
    lines = ["# Command line", "", text]
    for name, command in commands().items():
        context = click.Context(command, info_name=f"difflogic {name}")
        usage = " ".join([context.info_name or "", *command.collect_usage_pieces(context)])
        lines += ["", f"## difflogic {name}", *_paragraphs(inspect.cleandoc(command.help or ""))]
        lines += ["", "```text", usage, "```", ""]
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        lines += table("option | what it does", (_option(each, context) for each in options))
    return "\n".join(lines) + "\n"


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    """Names with the value that they take; what it does, with its choices and default."""
    choices = [str(each) for each in option.type.choices] if isinstance(option.type, click.Choice) else []
    value = "" if option.is_flag or option.count or choices else f" {option.make_metavar(context)}"
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts)).removesuffix("`") + f"{value}`"
    notes = [f"One of {', '.join(choices)}."] if choices else []
    notes += ["Required."] if option.required else []
    notes += ["May be repeated."] if option.multiple and "may be repeated" not in (option.help or "").lower() else []
    default = option.to_info_dict()["default"]
    notes += [f"Default: `{default}`."] if type(default) in (int, float, str) and default not in ("", False) else []
    return names, " ".join([_escaped(sentence(option.help or "")), *notes])


# --- configurations


def sections(kind: type, path: str = "") -> Iterator[tuple[str, type, str]]:
    """Every table of a configuration, depth first: its path, its class, and what it is for."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = hints[field.name]
        if dataclasses.is_dataclass(inner):
            yield f"{path}{field.name}", inner, str(field.metadata.get("about", ""))
            yield from sections(inner, f"{path}{field.name}.")


def fields(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, meaning, values and default of every field that is no table of its own."""
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


CONFIGURATION = """# Configuration

A configuration is a TOML file. `difflogic init PRESET -o mine.toml` writes one in which every field is
explained, `difflogic train --config mine.toml` reads it, and `--set SECTION.FIELD=VALUE` changes a field.
A field that is not required may be left out."""


def configuration_page() -> str:
    lines = [CONFIGURATION]
    for title, kind, command in (("Automata", Config, "train"), ("Agents", PolicyConfig, "train-policy")):
        lines += ["", f"## {title}", "", f"The configuration of `difflogic {command}`.", "", *_fields_table(kind)]
        for path, section, words in sections(kind):
            lines += ["", f"### `[{path}]` {{#{title.lower()}-{path.replace('.', '-')}}}", "", sentence(words), ""]
            lines += _fields_table(section)
    return "\n".join(lines) + "\n"


def _fields_table(kind: type) -> list[str]:
    rows = ((f"`{name}`", _escaped(about), _escaped(values), default) for name, about, values, default in fields(kind))
    return table("field | what it is | values | default", rows)


# --- errors


def error_classes(kind: type[errors.DifflogicError] = errors.DifflogicError) -> list[type[errors.DifflogicError]]:
    """Every error, a class before those that are made of it."""
    below = [each for each in kind.__subclasses__() if each.__module__ == "difflogic.errors"]
    return [kind, *(inner for each in below for inner in error_classes(each))]


EXIT_CODES = {
    "0": "The command did what was asked.",
    "1": "It failed. One sentence on standard error says why and what to do.",
    "2": "The request is wrong: an unknown option, a value beyond its limits, a file that cannot be read as one.",
    "130": "Ctrl-C ended it. A training saves a checkpoint first.",
    "143": "SIGTERM ended it. A training saves a checkpoint first.",
}


ERRORS = """In Python every deliberate error is a `difflogic.errors.DifflogicError`. Its message says
what was expected, what came, and what to do.
"""


def errors_page() -> str:
    codes = ((f"`{code}`", words) for code, words in EXIT_CODES.items())
    rows = (
        (f"`{each.__name__}`", f"`{each.__bases__[0].__name__}`", str(each.exit_code), sentence(_first(each)))
        for each in error_classes()
    )
    lines = ["# Errors and exit codes", "", *table("exit code | meaning", codes), "", ERRORS]
    return "\n".join([*lines, *table("error | is a | exit code | when", rows)]) + "\n"


def _first(thing: Any) -> str:
    return (thing.__doc__ or "").strip().split("\n\n")[0]


# --- the service's interface


def openapi() -> dict[str, Any]:
    """The OpenAPI document of a server, made without starting one."""
    from difflogic.serve.api.app import create_app
    from difflogic.serve.api.settings import ServeSettings
    from difflogic.serve.api.tokens import Tokens
    from difflogic.serve.store.store import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", durable=False)
        try:
            return create_app(store, Tokens({"docs": "0" * 32}), ServeSettings()).openapi()
        finally:
            store.close()


METHODS = ("get", "post", "put", "patch", "delete")
TYPES = {"binary": "file", "string": "text", "array": "list", "boolean": "true or false"}
LEAST, MOST = ("minimum", "minItems", "minLength"), ("maximum", "exclusiveMaximum", "maxItems", "maxLength")
"""What JSON schema calls the limits of numbers, lists and texts."""


def in_words(schema: Mapping[str, Any]) -> str:
    """The values that a schema takes; a schema with a name by that."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join("null" if value is None else str(value) for value in schema["enum"])
    if (each := schema.get("anyOf", schema.get("oneOf"))) is not None:
        return " or ".join(map(in_words, each))
    if "const" in schema:
        return str(schema["const"])
    kind = schema.get("type", "any JSON")
    words = TYPES.get(schema.get("format", ""), TYPES.get(kind, kind))
    if isinstance(inside := schema.get("items", schema.get("additionalProperties")), dict):
        words += f" of {in_words(inside)}"
    least, most = (next((schema[name] for name in names if name in schema), None) for names in (LEAST, MOST))
    if least is not None or most is not None:
        words += (
            f", at least {least}" if most is None else f", at most {most}" if least is None else f", {least} to {most}"
        )
        words += " characters" if kind == "string" else ""
    return words + (f" like {schema['pattern']}" if "pattern" in schema else "")


HTTP = """# HTTP interface

A server describes itself at `/docs`, and as an OpenAPI document at `/openapi.json`. Send
`Authorization: Bearer TOKEN`. Fields with * are required.

An answer with a status of 400 or more is `{"error": {"code", "message"}}`:
"""


def http_page() -> str:
    """Every address by its tag, then the objects that are taken and answered."""
    document = openapi()
    groups: dict[str, list[str]] = {}
    refusals: dict[str, str] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is not None:
                part = groups.setdefault(operation["tags"][0], [])
                part += ["", f"### `{method.upper()} {path}`", *_operation(operation)]
                refusals |= {s: each["description"] for s, each in operation["responses"].items() if s >= "400"}
    lines = [HTTP, *table("status | meaning", ((status, _escaped(refusals[status])) for status in sorted(refusals)))]
    for tag, part in groups.items():
        lines += ["", f"## {tag.capitalize()}", *part]
    lines += ["", "## Objects"]
    for name, schema in document["components"]["schemas"].items():
        wanted = schema.get("required", ())
        rows = (_row(key, key in wanted, in_words(each), each) for key, each in schema.get("properties", {}).items())
        lines += ["", f"### {name}", "", _escaped(schema.get("description", "")), ""]
        lines += table("field | values | what it is", rows)
    return "\n".join(lines) + "\n"


def _row(name: str, is_wanted: bool, values: str, about: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"`{name}`" + "*" * is_wanted, values, _escaped(about.get("description", ""))


def _operation(operation: Mapping[str, Any]) -> list[str]:
    """What an address does, takes and answers."""
    rows = (
        (name, each["in"], values, about)
        for each in operation.get("parameters", [])
        for name, values, about in [_row(each["name"], each.get("required", False), in_words(each["schema"]), each)]
    )
    lines = [*_paragraphs(operation.get("description") or operation["summary"]), ""]
    lines += [*shown, ""] if (shown := table("parameter | in | values | what it is", rows)) else []
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"- Takes `{kind}`: {in_words(content['schema'])}.")
    for status, answer in operation["responses"].items():
        forms = [in_words(each["schema"]) for each in answer.get("content", {}).values() if each.get("schema")]
        if status < "400":
            lines.append(f"- Answers {status}" + (f": {'; '.join(forms)}." if forms else "."))
    refused = [status for status in operation["responses"] if status >= "400"]
    return [*lines, f"- May be refused with {', '.join(refused)}."] if refused else lines


# --- Python, and the formats of files


def python_page() -> str:
    """Directives for mkdocstrings: it reads the docstrings."""
    lines = ["# Python", "", "The names of `import difflogic`. Each is loaded when it is first used.", ""]
    for name in public_names():
        thing = getattr(difflogic, name)
        where = thing.__name__ if name == "presets" else f"{thing.__module__}.{thing.__qualname__}"
        lines += [f"::: {where}", "    options:", "      heading_level: 2", f"      heading: difflogic.{name}", ""]
    for where in ("engine.api.Engine", "engine.api.Model", "model.netlist.Netlist"):
        lines += [f"::: difflogic.{where}", "    options:", "      heading_level: 2", ""]
    return "\n".join(lines)


def public_names() -> list[str]:
    return [name for name in difflogic.__all__ if name != "__version__"]


FILES = """# JSON files, field by field

Each table is made from a JSON Schema, by which programs can check a file. What the files are for is said
on the page of [the run folder](run-folder.md). Fields with * are always there."""


def schemas_page() -> str:
    lines = [FILES]
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        name, schema = path.name.removesuffix(".schema.json"), json.loads(path.read_text(encoding="utf-8"))
        lines += ["", f"## {name}", "", f"{schema['description']} [Schema](schemas/{path.name}).", ""]
        lines += table("field | values | what it is", _properties(schema, ""))
    return "\n".join(lines) + "\n"


def _properties(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name, inner in schema.get("properties", {}).items():
        values = inner.get("const", inner.get("enum", inner.get("type", "any")))
        words = " or ".join(map(str, values)) if isinstance(values, list) else str(values)
        yield _row(f"{path}{name}", name in schema.get("required", ()), words, inner)
        yield from _properties(inner, f"{path}{name}.")
        if isinstance(inner.get("items"), dict):
            yield from _properties(inner["items"], f"{path}{name}[].")


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "errors.md": errors_page,
    "http.md": http_page,
    "python.md": python_page,
    "schemas.md": schemas_page,
}
