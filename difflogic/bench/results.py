"""Results files of benchmarks in a versioned JSON format, and comparisons of these files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflogic.errors import UsageError

FORMAT = 2

Line = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """Results of one benchmark run; `data` is the JSON data of the results file."""

    data: dict[str, Any]

    @property
    def cases(self) -> list[Line]:
        """Rows of the results, one per case and engine."""
        return list(self.data["cases"])

    @property
    def skipped(self) -> list[dict[str, str]]:
        """Entries for cases that were not measured, each with `case`, `engine`, the reason `why` and its `kind`."""
        return list(self.data["skipped"])

    @property
    def engines(self) -> dict[str, Line]:
        """Mapping from engine names to descriptions with adapter, driver and rates."""
        return dict(self.data["engines"])

    def shown(self, engine: str) -> str:
        """Return the name of an engine for display, with `(software)` for a software GPU."""
        kind = self.engines.get(engine, {})
        return f"{engine} (software)" if kind.get("engine") == "gpu" and kind.get("software") else engine

    def lists(self, kind: str) -> bool:
        """Return whether any case was skipped for a reason of `kind`, such as `wrong` or `stopped`."""
        return any(each["kind"] == kind for each in self.skipped)

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: Path) -> Results:
        """Load a results file. Raises UsageError if it is not a results file, or damaged, or of another version."""
        try:
            data = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not a readable results file of `difflogic bench`: {error}.") from error
        if not isinstance(data, dict) or "format" not in data:
            raise UsageError(f"{path} is not a results file of `difflogic bench`: it has no field `format`.")
        if data["format"] != FORMAT:
            raise UsageError(
                f"{path} has format {data['format']}, but this version reads format {FORMAT}: measure again."
            )
        missing = {"machine", "engines", "cases", "skipped"} - set(data)
        if missing:
            raise UsageError(f"{path} is not a complete results file: it lacks {', '.join(sorted(missing))}.")
        if wrong := _damage(data):
            raise UsageError(f"{path} is damaged: {wrong}. Measure again.")
        return cls(data)


TIMES = ("median_ms", "min_ms", "max_ms")
"""Names of a row's time fields, which a comparison requires to be positive, as it does the field of the work."""


def _work(line: Line) -> str:
    """Return the name of the field that contains a case's work: `flop` for arrays, otherwise `gate_evaluations`."""
    return "flop" if "flop" in line else "gate_evaluations"


def _damage(data: dict[str, Any]) -> str | None:
    """Return a description of the first error in a results file's data, or None if a comparison can use the data."""
    engines, cases = data["engines"], data["cases"]
    if not (isinstance(data["machine"], dict) and isinstance(engines, dict) and isinstance(cases, list)):
        return "the machine, the engines or the cases are none"
    for index, line in enumerate(cases):
        if not (isinstance(line, dict) and isinstance(line.get("case"), str)):
            return f"its case {index} has no name"
        if not (isinstance(line.get("engine"), str) and isinstance(engines.get(line["engine"]), dict)):
            return f"the engine of {line['case']} is not described"
        if bad := [name for name in (*TIMES, _work(line)) if not _is_positive(line.get(name))]:
            return f"{', '.join(bad)} of {line['case']} should be a positive number"
    return None


def _is_positive(value: object) -> bool:
    # In Python, True is an int, and JSON data may contain Infinity.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


MACHINE = {"processor": "processor", "cores": "number of cores", "system": "system"}
ENGINE = {"adapter": "adapter", "backend": "backend", "driver": "driver"}


@dataclass(frozen=True)
class Ratio:
    """Comparison of the times in two files for the same case and engine."""

    case: str
    engine: str
    old_ms: float
    new_ms: float
    clear: bool
    """True if the ranges of old and new times (fastest to slowest round) do not overlap."""

    @property
    def ratio(self) -> float:
        """Speedup, the old median time divided by the new median time."""
        return self.old_ms / self.new_ms


def compare(old: Results, new: Results) -> list[Ratio]:
    """Compare all cases that both files contain. Raises UsageError, which names the reason, for incomparable files."""
    _check_same(old.data["machine"], new.data["machine"], MACHINE, "")
    # Cases in only one of the files are ignored.
    both = {(line["case"], line["engine"]): line for line in old.cases}
    pairs = [(both[key], line) for line in new.cases if (key := (line["case"], line["engine"])) in both]
    if not pairs:
        raise UsageError("The files cannot be compared: no case was measured on the same engine in both.")
    for name in dict.fromkeys(line["engine"] for _, line in pairs):
        _check_same(old.engines[name], new.engines[name], ENGINE, f" of engine {name}")
    return [_ratio(one, other) for one, other in pairs]


def _check_same(old: Line, new: Line, fields: dict[str, str], where: str) -> None:
    for field, words in fields.items():
        if old.get(field) != new.get(field):
            raise UsageError(
                f"The files cannot be compared: the {words}{where} is {old.get(field)!r} in the first and "
                f"{new.get(field)!r} in the second."
            )


def _ratio(old: Line, new: Line) -> Ratio:
    # The definition of a case may have changed between versions of the package.
    if (work := _work(old)) != _work(new) or old[work] != new[work]:
        raise UsageError(
            f"The files cannot be compared: {old['case']} has {old[work]} {work.replace('_', ' ')} in the first and "
            f"{new[_work(new)]} in the second."
        )
    # Comparing only medians would report any drift of the machine's speed as a change.
    clear = old["max_ms"] < new["min_ms"] or new["max_ms"] < old["min_ms"]
    return Ratio(old["case"], old["engine"], old["median_ms"], new["median_ms"], clear)
