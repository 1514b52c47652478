"""The axes of a sweep: a field of the configuration, and the values that trials have in it.

optimizer.lr=0.02:0.2:log     any number between, by its logarithm; without `:log` evenly, `:0.01` in such steps
model.kernels=4,8,16          one of these
seed=0..31                    one of these whole numbers; `0..30..2` every second
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from difflogic.config.document import Document
from difflogic.config.fields import Limits, convert, hint, plain, shown
from difflogic.errors import UsageError

SEED = "seed"
"""The axis that is never searched: seeds are what a setting is repeated with."""
MOST_VALUES = 100_000

_NUMBER = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COUNT = re.compile(r"\s*([-+]?\d{1,12})\.\.([-+]?\d{1,12})(?:\.\.(\d{1,12}))?\s*")
_RANGE = re.compile(rf"\s*({_NUMBER}):({_NUMBER})(?::(log|{_NUMBER}))?\s*")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included: all that the field takes, or in steps."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __str__(self) -> str:
        rest = ":log" if self.log else "" if self.step is None else f":{self.step!r}"
        return f"{self.low!r}:{self.high!r}{rest}"


@dataclass(frozen=True)
class Axis:
    """A field by its path, and what trials have there: values, or a range."""

    path: str
    values: tuple[Any, ...] = ()
    range: Range | None = None
    is_whole: bool = False
    """Whether the field of a range holds whole numbers."""

    @property
    def told(self) -> str | list[Any]:
        """As a specification holds it."""
        return str(self.range) if self.range is not None else plain(list(self.values))


def parse(over: str, base: Document) -> Axis:
    """`PATH=VALUES`, as the command line has it. Raises UsageError."""
    path, equals, text = over.partition("=")
    if not equals or not path.strip():
        raise UsageError(f"--over takes FIELD=VALUES, say optimizer.lr=0.02:0.2:log or seed=0..31, got {shown(over)}.")
    return axis(path.strip(), text, base)


def axis(path: str, given: Any, base: Document) -> Axis:
    """The axis of a field of `base`; what is given is text as `parse` takes it, or a list of values.

    Raises UsageError for a field that is not there, a range without numbers, and values that the field does not take.
    """
    kind, limits = _field(path, base)
    made = _parsed(path, given)
    found = Axis(path, is_whole=kind is int, range=made) if isinstance(made, Range) else Axis(path, tuple(made))
    if found.range is not None:
        _check_range(found.range, path, kind, given)
    ends = found.values if found.range is None else (found.range.low, found.range.high)
    values = tuple(_taken(kind, limits, value, path) for value in ends)
    if len({repr(value) for value in values}) < len(values):
        raise UsageError(f"{path} has a value twice: {given}.")
    return found if found.range is not None else dataclasses.replace(found, values=values)


def _parsed(path: str, given: Any) -> Range | Sequence[Any]:
    if not isinstance(given, str):
        values = list(given) if isinstance(given, list | tuple | range) else [given]
    elif found := _COUNT.fullmatch(given):
        first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
        values = list(range(first, min(last, first + MOST_VALUES * max(1, step)) + 1, step)) if step else []
    elif found := _RANGE.fullmatch(given):
        third = found[3]
        width = None if third in (None, "log") else float(third)
        return Range(float(found[1]), float(found[2]), third == "log", width)
    else:
        values = _listed(given)
    if not values:
        raise UsageError(
            f"{path} has no values: expected LOW..HIGH with LOW below HIGH, or a list, got {shown(given)}."
        )
    if len(values) > MOST_VALUES:
        raise UsageError(f"{path} has more than {MOST_VALUES} values: give fewer, or a range LOW:HIGH.")
    return values


def _listed(text: str) -> list[Any]:
    """Values between commas as TOML writes them; what is not TOML is text, since shells strip quotes."""
    try:
        return list(tomllib.loads(f"value = [{text}]")["value"])
    except (tomllib.TOMLDecodeError, RecursionError):
        return [_single(each.strip()) for each in text.split(",") if each.strip()]


def _single(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _check_range(found: Range, path: str, kind: Any, given: Any) -> None:
    if kind not in (int, float):
        raise UsageError(f"{path} is no number, so it has no range: list its values, got {shown(given)}.")
    if not found.low < found.high:
        raise UsageError(f"The range of {path} is empty: expected LOW:HIGH with LOW below HIGH, got {given}.")
    if found.log and found.low <= 0:
        raise UsageError(
            f"The range of {path} begins at {found.low:g}: a logarithm needs numbers above 0, got {given}."
        )
    if found.step is not None and not 0 < found.step <= found.high - found.low:
        raise UsageError(f"The steps of {path} must be above 0 and fit into its range, got {given}.")
    if kind is int and any(each % 1 for each in (found.low, found.high, found.step or 0)):
        raise UsageError(f"{path} is a whole number: give its range in whole numbers, got {given}.")


def _taken(kind: Any, limits: Limits | None, value: Any, path: str) -> Any:
    """The value as the field holds it. Raises ConfigError."""
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    made = convert(kind, value, path, limits)
    if limits is not None and not limits.holds(made):
        raise UsageError(f"{path} must be {limits.words}, got {shown(value)}.")
    return made


def _field(path: str, base: Document) -> tuple[Any, Limits | None]:
    """The type and the limits of a field. Raises UsageError, which names the nearest one."""
    known = dict(_fields(type(base)))
    if path in known:
        return known[path]
    inside = [each for each in known if each.startswith(f"{path}.")]
    if inside:
        raise UsageError(f"{path} is a section: sweep a field of it, say {inside[0]}.")
    # `train.lr` was meant for the section that has an `lr`: nearer than any path that only sounds alike.
    same = [each for each in known if each.rpartition(".")[2] == path.rpartition(".")[2]]
    near = f" (did you mean {same[0]}?)" if same else hint(path, known)
    raise UsageError(f"There is no field {shown(path)} to sweep{near}: `difflogic presets NAME` lists all.")


def _fields(cls: type, where: str = "") -> Iterator[tuple[str, tuple[Any, Limits | None]]]:
    hints = typing.get_type_hints(cls)
    for each in dataclasses.fields(cls):
        kind = hints[each.name]
        if dataclasses.is_dataclass(kind):
            yield from _fields(typing.cast(type, kind), f"{where}{each.name}.")
        elif each.name != "name":
            yield f"{where}{each.name}", (kind, each.metadata.get("limits"))
