"""Writer of commented TOML files: the fields of a configuration that differ from defaults, with explanations."""

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import Any

import tomli_w

from difflogic.config.document import Document
from difflogic.config.fields import Section, Table, plain

WIDTH = 100


def commented(config: Document, opening: str, task: Section | None = None) -> str:
    """Return `config` as TOML for `from_toml`, without fields that have their defaults.

    `opening` is the first comment. If `task` is a task in Python, all of its settings are written and explained.
    """
    about = "Format version of this file."
    fields = {field.name for field in dataclasses.fields(config)}
    form = {name: value for name, value in config.to_dict().items() if name not in fields}
    lines = [*_comment(opening), "", *_comment(about), tomli_w.dumps(form).rstrip("\n"), *_table(config, "", task)]
    return "\n".join(lines) + "\n"


def _table(section: Section, path: str, task: Section | None) -> Iterator[str]:
    # In TOML a value after `[model.update]` would be a field of that table, so values come before tables.
    fields = [field for field in dataclasses.fields(section) if getattr(section, field.name) != field.default]
    tables = [field for field in fields if isinstance(getattr(section, field.name), Section | Table)]
    for field in fields:
        if field not in tables:
            yield from _value(field, getattr(section, field.name))
    for table in tables:
        name = f"{path}{table.name}"
        yield from ["", *_comment(f"{table.metadata['about']}."), f"[{name}]"]
        inside = getattr(section, table.name)
        if isinstance(inside, Section):
            yield from _table(inside, f"{name}.", task)
        elif task is not None:
            for setting in dataclasses.fields(task):
                yield from _value(setting, getattr(task, setting.name))
        elif inside:
            yield tomli_w.dumps(inside).rstrip("\n")


def _value(field: dataclasses.Field[Any], value: Any) -> Iterator[str]:
    about, limits = field.metadata["about"], field.metadata["limits"]
    text = tomli_w.dumps({field.name: plain(value)}).rstrip("\n")
    notes = [limits.words] if limits is not None and not limits.names else []
    if not isinstance(value, tuple):
        notes.append(f"preset: {text.partition(' = ')[2]}")
    yield from _comment(about + (f" ({'; '.join(notes)})." if notes else "."))
    if "picture" in field.name or "\n" not in text:
        yield text
    elif isinstance(value, tuple) and isinstance(value[0], tuple):
        yield from [f"{field.name} = [", *(f"    {list(row)}," for row in value), "]"]  # rows of numbers
    else:
        first, *items, last = map(str.strip, text.splitlines())
        yield textwrap.fill(f"{first}{' '.join(items).removesuffix(',')}{last}", WIDTH, subsequent_indent="    ")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
