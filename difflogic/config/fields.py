"""Declaration of configuration fields with their meanings and limits, and conversion of plain data to fields.

`field("meaning", LIMITS)` declares a field once. The check, the error message and the comment that `difflogic init`
writes follow from this declaration.
"""

import contextlib
import dataclasses
import difflib
import itertools
import reprlib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from difflogic.config.limits import Limits
from difflogic.errors import ConfigError
from difflogic.system.brief import brief

T = typing.TypeVar("T")
KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
"""Mapping from types to their descriptions in error messages."""
# Values in a file may have any length, so error messages shorten the values that they quote.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 200
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxdict = 20


def shown(value: Any) -> str:
    """Return the shortened `repr` of a value, for messages."""
    return str(value) if hasattr(type(value), "parse") else _SHOWN.repr(value)


def native(value: Any) -> Any:
    """Convert a NumPy number or array to Python numbers; return any other value unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" else value


def require(condition: bool, message: str) -> None:
    """Raise ConfigError with `message` unless `condition` is true."""
    if not condition:
        raise ConfigError(message)


def require_ascending(name: str, numbers: tuple[int, ...], least: int, most: int, noun: str = "CA steps") -> None:
    """Raise ConfigError unless the `numbers` of the field `name` ascend and are between `least` and `most`."""
    require(
        all(a < b for a, b in itertools.pairwise(numbers)) and all(least <= number <= most for number in numbers),
        f"{name} must be ascending {noun} between {least} and {most}, got {list(numbers)}.",
    )


@dataclass(frozen=True, repr=False)
class Section:
    """Base class of the tables of a configuration: frozen dataclasses that check the limits of their fields."""

    path = ""
    """Prefix of field names in messages, such as `pool.`; empty if the names are clear without it, such as `epochs`."""

    __repr__ = brief

    def __init_subclass__(cls, path: str = "") -> None:
        cls.path = path or cls.path

    def called(self, name: str) -> str:
        """Return the name of a field as messages show it, with the section's prefix."""
        return f"{self.path}{name}"

    def __post_init__(self) -> None:
        """Convert NumPy values to Python values. Raises ConfigError if a field is out of range."""
        for field in dataclasses.fields(self):
            original = getattr(self, field.name)
            limits, value = field.metadata.get("limits"), native(original)
            if value is not original:
                object.__setattr__(self, field.name, value)
            if limits is not None and value is not None and not limits.allows(value):
                meant = hint(value, limits.names) if isinstance(value, str) else ""
                raise ConfigError(f"{self.called(field.name)} must be {limits.words}, got {shown(value)}{meant}.")


def field(
    about: str, limits: Limits | None = None, *, default: Any = dataclasses.MISSING, kw_only: bool = False
) -> Any:
    """Declare a field of a section, with its meaning (one sentence without the full stop) and its limits."""
    return dataclasses.field(default=default, metadata={"about": about, "limits": limits}, kw_only=kw_only)


@typing.dataclass_transform(frozen_default=True, field_specifiers=(field,))
def section(cls: type[T]) -> type[T]:
    """Make a subclass of `Section` a frozen dataclass whose fields are visible to type checkers."""
    return dataclass(frozen=True, repr=False)(cls)


def hint(word: str, names: Iterable[str]) -> str:
    """Return ` (did you mean NAME?)` with the most similar of `names`, or an empty text if none is similar."""
    # A wrong suggestion costs more time than no suggestion.
    near = difflib.get_close_matches(word, list(map(str, names)), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


class Table(dict[str, Any]):
    """Table with arbitrary fields, hashable since it is never changed after its creation."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


def plain(value: Any) -> Any:
    """Convert sections to dicts and tuples to lists, recursively, for TOML and JSON."""
    if isinstance(value, Section):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def merged(data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `data` updated with `fields`; tables inside tables are merged recursively."""
    result = dict(data)
    for name, value in fields.items():
        inside = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if inside else value
    return result


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return nested tables for a dotted path: `{"train": {"epochs": 3}}` for `train.epochs` and 3."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def by_path(data: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Flatten nested tables: `{"train": {"epochs": 3}}` becomes `{"train.epochs": 3}`."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        inside = isinstance(value, Mapping) and value
        flat |= by_path(value, f"{path}{name}.") if inside else {f"{path}{name}": value}
    return flat


def in_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """Invert `by_path`: return nested tables. Raises ConfigError for a path with both a value and inner fields."""
    tables: dict[str, Any] = {}
    for path, value in data.items():
        *parts, name = path.split(".")
        inside: Any = tables
        for part in parts:
            inside = inside.setdefault(part, {}) if isinstance(inside, dict) else inside
        # If `train` and `train.lr` both had values, the result would depend on their order.
        if not isinstance(inside, dict) or name in inside:
            raise ConfigError(f"{path} has a value, and so has a table around it or a field inside it: give only one.")
        inside[name] = value
    return tables


def leaves(cls: type, path: str = "") -> Iterator[tuple[str, Any, dataclasses.Field[Any]]]:
    """Yield the path, type and dataclass field of each field in the section class `cls` and in its nested sections."""
    kinds = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kind = kinds[field.name]
        if dataclasses.is_dataclass(kind):
            yield from leaves(typing.cast(type, kind), f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", kind, field


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, cached since looking them up is slow."""
    return typing.get_type_hints(cls)


REMOVED = ("train.precision",)
"""Paths of fields that version 0.1.0 wrote and later versions ignore."""


def build(cls: type, data: Any, where: str = "") -> Any:
    """Make the dataclass `cls` from a dict. Raises ConfigError; `where`, such as `train.`, begins names in messages."""
    if not isinstance(data, dict):  # `require` would format its message for valid data, too
        raise ConfigError(f"{where.removesuffix('.') or 'The configuration'} must be a table, got {shown(data)}.")
    data = {name: value for name, value in data.items() if f"{where}{name}" not in REMOVED}
    # Unknown names are reported before missing ones, since a missing name is most often misspelled.
    hints = hints_of(cls)
    for name in data:
        if name not in hints:
            raise ConfigError(
                f"Unknown field {where}{name}{_nearest(name, where, hints)}: expected {', '.join(hints)}."
            )
    fields = {f.name: f for f in dataclasses.fields(cls)}
    missing = [name for name, f in fields.items() if f.default is dataclasses.MISSING and name not in data]
    if missing:
        named = [f"[{where}{name}]" if dataclasses.is_dataclass(hints[name]) else f"{where}{name}" for name in missing]
        raise ConfigError(f"Missing fields: {', '.join(named)}. `difflogic init` writes a file with all fields.")
    # Limits only provide words for messages here; the section checks them.
    return cls(**{name: convert(hints[name], value, f"{where}{name}", fields[name].metadata.get("limits"))
                  for name, value in data.items()})  # fmt: skip


def _nearest(name: str, where: str, hints: Mapping[str, Any]) -> str:
    """Return a hint (see `hint`): the path of `name` in a nested table, otherwise a similar name in this table."""
    inside = [f"{where}{key}.{name}" for key, kind in hints.items()
              if dataclasses.is_dataclass(kind) and name in typing.get_type_hints(kind)]  # fmt: skip
    return f" (did you mean {inside[0]}?)" if inside else hint(name, hints)


def convert(kind: Any, value: Any, where: str, limits: Limits | None = None) -> Any:
    """Convert plain data to the type of a field; `where` and `limits` are for messages. Raises ConfigError."""
    value = native(value)
    if isinstance(kind, types.UnionType):  # `int | None`: an optional value may be null in JSON
        if value is None or (dataclasses.is_dataclass(value) and isinstance(value, kind)):
            return value
        kind = kind.__args__[0]
    if hasattr(kind, "parse") and not isinstance(value, kind):  # a type with a text form, such as a time limit
        require(isinstance(value, str), f"{where} must be text, got {shown(value)}.")
        return kind.parse(value)
    if dataclasses.is_dataclass(kind):
        is_built = isinstance(value, typing.cast(type, kind))
        return value if is_built else build(typing.cast(type, kind), value, f"{where}.")
    kind = Table if typing.get_origin(kind) is Mapping else kind
    # The only other generic type is tuple[item, ...], since configurations are hashed, and lists cannot be.
    if isinstance(kind, types.GenericAlias):
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} must be a list, got {shown(value)}.")
        return tuple(convert(kind.__args__[0], item, f"each of {where}") for item in value)
    if kind is Table:
        require(isinstance(value, dict), f"{where} must be a table, got {shown(value)}.")
        return Table(value)
    return _plain_value(kind, value, where, limits)


def _plain_value(kind: Any, value: Any, where: str, limits: Limits | None) -> Any:
    if typing.get_origin(kind) is typing.Literal:
        if value not in typing.get_args(kind):
            raise ConfigError(f"{where} must be one of {', '.join(typing.get_args(kind))}, got {shown(value)}.")
        return value
    # TOML distinguishes 1 from 1.0, but users do not. In Python, True is an int.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer too large for a float is rejected below
            return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where} must be {limits.words if limits else KINDS.get(kind, 'text')}, got {shown(value)}.")
    return value
