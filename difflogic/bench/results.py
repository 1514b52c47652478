"""The results file: JSON of a version, and the question whether two of them can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflogic.errors import UsageError

FORMAT = 2

Line = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """What one run measured; `data` is the file."""

    data: dict[str, Any]

    @property
    def cases(self) -> list[Line]:
        """A line per case and engine."""
        found: list[Line] = self.data["cases"]
        return found

    @property
    def skipped(self) -> list[dict[str, str]]:
        """What was not measured, each with `case`, `engine`, `kind` and `why`."""
        found: list[dict[str, str]] = self.data["skipped"]
        return found

    @property
    def engines(self) -> dict[str, Line]:
        """By name: adapter, driver, rates."""
        found: dict[str, Line] = self.data["engines"]
        return found

    @property
    def wrong(self) -> bool:
        """Whether an engine computed something else than the reference."""
        return any(each["kind"] == "wrong" for each in self.skipped)

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1, allow_nan=False) + "\n"

    def save(self, path: Path) -> None:
        """Write the file; the folder must exist."""
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Raises UsageError where it is not a results file of this version."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read as a results file of difflogic bench: {error}.") from error
        if not isinstance(data, dict) or "format" not in data:
            raise UsageError(f"{path} is not a results file of difflogic bench: it has no format.")
        if data["format"] != FORMAT:
            raise UsageError(
                f"{path} has format {data['format']}, but this version reads format {FORMAT}: measure it again."
            )
        missing = {"machine", "engines", "cases", "skipped"} - set(data)
        if missing:
            raise UsageError(f"{path} is not a complete results file: {', '.join(sorted(missing))} missing.")
        return cls(data)
