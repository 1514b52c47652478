"""The pages of docs/reference that are made from the code: nothing on them is typed a second time.

    .venv/bin/python bin/lib/reference.py               the names of the pages
    .venv/bin/python bin/lib/reference.py errors.md     one of them

`bin/docs` puts them into the site. `tests/house/test_reference.py` holds them to the code, without mkdocs.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
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


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown; line ends within cells go, and bars are escaped where they are not code."""

    def cell(text: str) -> str:
        parts = " ".join(text.split()).split("`")
        return "`".join(part if index % 2 else part.replace("|", "\\|") for index, part in enumerate(parts))

    lines = [headers, ["---"] * len(headers), *rows]
    return ["| " + " | ".join(map(cell, line)) + " |" for line in lines]


def sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


# --- the command line


def commands() -> dict[str, click.Command]:
    """Every command by its full name, those of groups too: `bench compare`."""
    context = click.Context(cli.group, info_name="difflogic")
    found: dict[str, Any] = {}
    for name in cli.group.list_commands(context):
        found[name] = command = cli.group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= {f"{name} {inner}": each for inner, each in command.commands.items()}
    return found


def commands_page() -> str:
    lines = [
        "# Command line",
        "",
        "`difflogic COMMAND --help` prints the same text. Every command ends with an [exit code](errors.md).",
    ]
    for name, command in commands().items():
        lines += ["", f"## difflogic {name}", *_paragraphs(inspect.cleandoc(command.help or "")), ""]
        context = click.Context(command, info_name=f"difflogic {name}")
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["```text", f"difflogic {name} {usage}".rstrip(), "```", ""]
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if options:
            lines += table(["option", "what it does"], (_option(each, context) for each in options))
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Click's help as Markdown: a backspace begins a block whose lines stay as they are."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        if block.startswith("\b"):
            lines += ["", "```text", *block.removeprefix("\b\n").splitlines(), "```"]
        else:
            lines += ["", *_escaped(block).splitlines()]
    return lines


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")


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
        inner = hints[field.name]
        if dataclasses.is_dataclass(inner):
            continue
        limits = field.metadata.get("limits")
        values = limits.words if limits else _words(inner)
        default = "required" if field.default is dataclasses.MISSING else f"`{json.dumps(plain(field.default))}`"
        yield field.name, sentence(str(field.metadata["about"])), values, default


def _words(kind: Any) -> str:
    if kind is Table:
        return "a table"
    if kind in KINDS:
        return KINDS[kind]
    (inner, *_) = kind.__args__
    return "a list, each " + _words(inner)


def configuration_page() -> str:
    lines = [
        "# Configuration",
        "",
        "A configuration is a TOML file. `difflogic init PRESET -o mine.toml` writes one in which every field is",
        "explained, `difflogic train --config mine.toml` reads it, and `--set SECTION.FIELD=VALUE` changes a field.",
        "A field that is not required may be left out.",
    ]
    for title, kind, about in (
        ("Automata", Config, "The configuration of `difflogic train`."),
        ("Agents", PolicyConfig, "The configuration of `difflogic train-policy`."),
    ):
        lines += ["", f"## {title}", "", about, "", *_fields_table(kind)]
        for path, section, words in sections(kind):
            lines += ["", f"### `[{path}]` {{#{title.lower()}-{path.replace('.', '-')}}}", "", sentence(words), ""]
            lines += _fields_table(section)
    return "\n".join(lines) + "\n"


def _fields_table(kind: type) -> list[str]:
    rows = [(f"`{name}`", _escaped(about), _escaped(values), default) for name, about, values, default in fields(kind)]
    return table(["field", "what it is", "values", "default"], rows) if rows else []


# --- errors


def error_classes() -> list[type[errors.DifflogicError]]:
    """Every error, a class before those that are made of it."""

    def below(kind: type[errors.DifflogicError]) -> Iterator[type[errors.DifflogicError]]:
        yield kind
        for each in kind.__subclasses__():
            if each.__module__ == "difflogic.errors":
                yield from below(each)

    return list(below(errors.DifflogicError))


EXIT_CODES = {
    "0": "The command did what was asked.",
    "1": "It failed. One sentence on standard error says why and what to do.",
    "2": "The request is wrong: an unknown option, a value beyond its limits, a file that cannot be read as one.",
    "130": "Ctrl-C ended it. A training saves a checkpoint first.",
    "143": "SIGTERM ended it. A training saves a checkpoint first.",
}


def errors_page() -> str:
    rows = [
        (f"`{each.__name__}`", f"`{each.__base__.__name__}`", str(each.exit_code), sentence(_first(each)))
        for each in error_classes()
    ]
    return "\n".join(
        [
            "# Errors and exit codes",
            "",
            *table(["exit code", "meaning"], ((f"`{code}`", words) for code, words in EXIT_CODES.items())),
            "",
            "In Python every deliberate error is a `difflogic.errors.DifflogicError`. Its message says",
            "what was expected, what came, and what to do.",
            "",
            *table(["error", "is a", "exit code", "when"], rows),
            "",
        ]
    )


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
    # JSON schema calls the limits of numbers, lists and texts by different names.
    least = schema.get("minimum", schema.get("minItems", schema.get("minLength")))
    most = schema.get("maximum", schema.get("exclusiveMaximum", schema.get("maxItems", schema.get("maxLength"))))
    if least is not None or most is not None:
        ends = (
            f"{least} to {most}"
            if None not in (least, most)
            else f"at least {least}"
            if most is None
            else f"at most {most}"
        )
        words += f", {ends}" + (" characters" if kind == "string" else "")
    return words + (f" like {schema['pattern']}" if "pattern" in schema else "")


def http_page() -> str:
    """Every address by its tag, then the objects that are taken and answered."""
    document = openapi()
    lines = [
        "# HTTP interface",
        "",
        "A server describes itself at `/docs`, and as an OpenAPI document at `/openapi.json`. Send",
        "`Authorization: Bearer TOKEN`. Fields with * are required.",
        "",
        'An answer with a status of 400 or more is `{"error": {"code", "message"}}`:',
        "",
    ]
    groups: dict[str, list[str]] = {}
    refusals: dict[str, str] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is not None:
                part = groups.setdefault(operation["tags"][0], [])
                part += ["", f"### `{method.upper()} {path}`", *_operation(operation)]
                refusals |= {s: each["description"] for s, each in operation["responses"].items() if s >= "400"}
    lines += table(["status", "meaning"], ((status, _escaped(words)) for status, words in sorted(refusals.items())))
    for tag, part in groups.items():
        lines += ["", f"## {tag.capitalize()}", *part]
    lines += ["", "## Objects"]
    for name, schema in document["components"]["schemas"].items():
        lines += ["", f"### {name}", "", _escaped(schema.get("description", "")), ""]
        wanted = set(schema.get("required", ()))
        rows = [
            (f"`{key}`" + ("*" if key in wanted else ""), in_words(each), _escaped(each.get("description", "")))
            for key, each in schema.get("properties", {}).items()
        ]
        lines += table(["field", "values", "what it is"], rows) if rows else []
    return "\n".join(lines) + "\n"


def _operation(operation: Mapping[str, Any]) -> list[str]:
    """What an address does, takes and answers."""
    lines = _paragraphs(operation.get("description") or operation["summary"])
    rows = [
        (f"`{each['name']}`" + ("*" if each.get("required") else ""), each["in"], in_words(each["schema"]),
         _escaped(each.get("description", "")))
        for each in operation.get("parameters", [])
    ]  # fmt: skip
    lines += ["", *table(["parameter", "in", "values", "what it is"], rows), ""] if rows else [""]
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
    for where in ("difflogic.engine.api.Engine", "difflogic.engine.api.Model", "difflogic.model.netlist.Netlist"):
        lines += [f"::: {where}", "    options:", "      heading_level: 2", ""]
    return "\n".join(lines)


def public_names() -> list[str]:
    return [name for name in difflogic.__all__ if name != "__version__"]


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas by the file that each describes."""
    return {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(SCHEMAS.glob("*.schema.json"))
    }


def schemas_page() -> str:
    lines = [
        "# JSON files, field by field",
        "",
        "Each table is made from a JSON Schema, by which programs can check a file. What the files are for is said",
        "on the page of [the run folder](run-folder.md). Fields with * are always there.",
    ]
    for name, schema in schemas().items():
        lines += ["", f"## {name}", "", f"{schema['description']} [Schema](schemas/{name}.schema.json).", ""]
        lines += table(["field", "values", "what it is"], _properties(schema, ""))
    return "\n".join(lines) + "\n"


def _properties(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    wanted = set(schema.get("required", ()))
    for name, inner in schema.get("properties", {}).items():
        values = inner.get(
            "const", " or ".join(map(str, inner["enum"])) if "enum" in inner else inner.get("type", "any")
        )
        values = " or ".join(values) if isinstance(values, list) else str(values)
        yield f"`{path}{name}`" + ("*" if name in wanted else ""), values, _escaped(inner.get("description", ""))
        yield from _properties(inner, f"{path}{name}.")
        yield from _properties(
            inner.get("items", {}) if isinstance(inner.get("items"), dict) else {}, f"{path}{name}[]."
        )


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "errors.md": errors_page,
    "http.md": http_page,
    "python.md": python_page,
    "schemas.md": schemas_page,
}


def main(arguments: Sequence[str]) -> int:
    for name in arguments or PAGES:
        print(PAGES[name]() if arguments else name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
