"""What a form has to know to offer every field: the fields of a configuration, and the formats of an export."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

from difflogic.config import Config

KINDS = {bool: "boolean", int: "integer", float: "number", str: "text"}
"""Of a field that is no list."""


def fields() -> list[dict[str, Any]]:
    """Every field of a configuration, in its order, as FieldReply."""
    return list(_fields(Config, ""))


def _fields(section: type, path: str) -> Iterator[dict[str, Any]]:
    kinds = typing.get_type_hints(section)
    for field in dataclasses.fields(section):
        kind = kinds[field.name]
        if dataclasses.is_dataclass(kind):
            yield from _fields(typing.cast(type, kind), f"{path}{field.name}.")
            continue
        limits = field.metadata["limits"]
        names = list(limits.names) if limits else []
        yield {
            "path": path + field.name,
            "kind": KINDS.get(kind, "list"),
            "about": field.metadata["about"],
            "limits": limits.words if limits and not names else None,
            "names": names,
        }


def formats() -> list[dict[str, str]]:
    """The formats of an export, as FormatReply."""
    from difflogic.circuits.export.formats import FORMATS

    return [{"name": name, "about": form.summary} for name, form in FORMATS.items()]
