"""Two results files side by side, where that means something."""

from __future__ import annotations

from dataclasses import dataclass

from difflogic.bench.results import Line, Results
from difflogic.errors import UsageError

MACHINE = {"processor": "processor", "cores": "number of cores", "system": "system"}
ENGINE = {"adapter": "adapter", "backend": "backend", "driver": "driver"}


@dataclass(frozen=True)
class Ratio:
    """One case on one engine in both files."""

    case: str
    engine: str
    old_ms: float
    new_ms: float
    clear: bool
    """False where the two ranges, from the fastest round to the slowest, overlap."""

    @property
    def ratio(self) -> float:
        """How many times as fast the new one is."""
        return self.old_ms / self.new_ms


def compare(old: Results, new: Results) -> list[Ratio]:
    """The cases that both have. Raises UsageError, naming the difference, where they cannot be compared."""
    _check(old.data["machine"], new.data["machine"], MACHINE, "")
    both = {(line["case"], line["engine"]): line for line in old.cases}
    pairs = [(both[key], line) for line in new.cases if (key := (line["case"], line["engine"])) in both]
    if not pairs:
        raise UsageError("The files cannot be compared: no case was measured on the same engine in both.")
    for name in dict.fromkeys(line["engine"] for _, line in pairs):
        _check(old.engines[name], new.engines[name], ENGINE, f" of engine {name}")
    return [_ratio(one, other) for one, other in pairs]


def _check(old: Line, new: Line, fields: dict[str, str], where: str) -> None:
    for field, words in fields.items():
        if old.get(field) != new.get(field):
            raise UsageError(
                f"The files cannot be compared: the {words}{where} is {old.get(field)!r} in the first and "
                f"{new.get(field)!r} in the second."
            )


def _ratio(old: Line, new: Line) -> Ratio:
    if old["gate_evaluations"] != new["gate_evaluations"]:
        raise UsageError(
            f"The files cannot be compared: {old['case']} is {old['gate_evaluations']} gate evaluations in the first "
            f"and {new['gate_evaluations']} in the second."
        )
    clear = old["max_ms"] < new["min_ms"] or new["max_ms"] < old["min_ms"]
    return Ratio(old["case"], old["engine"], old["median_ms"], new["median_ms"], clear)
