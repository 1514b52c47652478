"""Axes of a sweep: each is a field of the configuration with the values or the range that trials use.

optimizer.lr=0.02:0.2:log     range, sampled log-uniformly; without `:log` uniformly, with `:0.01` in steps of 0.01
model.kernels=4,8,16          list of values
seed=0..31                    integers 0 to 31; with `0..30..2` every second integer
"""

import re
from dataclasses import dataclass
from typing import Any

from difflogic.config.document import Document, parsed, toml_value
from difflogic.config.fields import convert, hint, leaves, plain, shown
from difflogic.config.limits import Limits
from difflogic.errors import ConfigError, UsageError

SEED = "seed"
"""Name of the axis that is not searched, since trials that differ only in the seed repeat a setting."""
MOST_VALUES = 100_000

_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COUNT = re.compile(r"\s*([-+]?\d{1,12})\.\.([-+]?\d{1,12})(?:\.\.(\d{1,12}))?\s*")
_RANGE = re.compile(rf"\s*({_NUMBER}):({_NUMBER})(?::(log|{_NUMBER}))?\s*")


@dataclass(frozen=True)
class Axis:
    """Axis of a sweep: the path of a field with its values or, if `values` is empty, a range that includes its ends."""

    path: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    is_log: bool = False
    is_whole: bool = False


def axis(path: str, given: Any, base: Document) -> Axis:
    """Return the axis of field `path` of `base`; `given` is text as in the module docstring, or a list of values.

    Raises UsageError for an unknown field, an empty range or unsupported values, or ConfigError for a wrong type.
    """
    kind, limits = _field(path, base)
    if isinstance(given, str) and (match := _RANGE.fullmatch(given)):
        low, high, third = float(match[1]), float(match[2]), match[3]
        step = None if third in (None, "log") else float(third)
        result = Axis(path, (), low, high, step, third == "log", kind is int)
        for number in (low, high, low if step is None else low + step):
            _taken(kind, limits, number, path)
        _check_range(result, given)
        return result
    values = tuple(_taken(kind, limits, value, path) for value in _values(path, given))
    if len(set(map(repr, values))) < len(values):
        raise UsageError(f"Expected different values for {path}, got {given}.")
    return Axis(path, values)


def _values(path: str, given: Any) -> list[Any]:
    """Return the values of a list, of `0..31`, or of comma-separated TOML, in which words may lack quotes."""
    if not isinstance(given, str):
        values = list(given) if isinstance(given, list | tuple | range) else [given]
    elif match := _COUNT.fullmatch(given):
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        values = list(range(first, min(last, first + MOST_VALUES * max(1, step)) + 1, step)) if step else []
    else:
        try:
            values = parsed(f"value = [{given}]")["value"]
        except ConfigError:
            values = [toml_value(word, path) for word in given.split(",") if word.strip()]
    if not values:
        raise UsageError(
            f"Expected values for {path}, a list or LOW..HIGH with LOW not above HIGH, got {shown(given)}."
        )
    if len(values) > MOST_VALUES:
        raise UsageError(f"Expected at most {MOST_VALUES} values for {path}: give fewer, or a range LOW:HIGH.")
    return values


def _check_range(checked: Axis, given: str) -> None:
    path, step = checked.path, checked.step
    if not checked.low < checked.high:
        raise UsageError(f"Expected a range LOW:HIGH with LOW below HIGH for {path}, got {given}.")
    if checked.is_log and checked.low <= 0:
        raise UsageError(f"Expected a range of numbers above 0 for {path}, since it is logarithmic, got {given}.")
    if step is not None and not 0 < step <= checked.high - checked.low:
        raise UsageError(f"Expected a step above 0 and at most HIGH - LOW for {path}, got {given}.")


def _taken(kind: Any, limits: Limits | None, value: Any, path: str) -> Any:
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    converted = convert(kind, plain(value), path, limits)
    if limits is not None and not limits.holds(converted):
        raise UsageError(f"{path} must be {limits.words}, got {shown(value)}.")
    return converted


def _field(path: str, base: Document) -> tuple[Any, Limits | None]:
    fields = {name: (kind, field.metadata.get("limits")) for name, kind, field in leaves(type(base))}
    del fields["name"]
    if path in fields:
        return fields[path]
    if inside := [name for name in fields if name.startswith(f"{path}.")]:
        raise UsageError(f"Expected a field, but {path} is a section: sweep one of its fields, such as {inside[0]}.")
    # A user who writes `train.lr` means the `lr` of another section.
    same = [name for name in fields if name.rpartition(".")[2] == path.rpartition(".")[2]]
    near = f" (did you mean {same[0]}?)" if same else hint(path, fields)
    raise UsageError(f"Unknown field {shown(path)}{near}: `difflogic presets NAME` lists all fields.")
