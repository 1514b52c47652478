"""Outcome of faults injected into the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """Injected fault, and deviations from the expected result."""

    kind: str
    events: int = 0
    """Kills or faults that hit something at work."""
    jobs: int = 0
    wrong: list[str] = field(default_factory=list)
    """Jobs that did not end well, or differ from an undisturbed run, with what differs."""
    seconds: float = 0.0
    detected_s: list[float] = field(default_factory=list)
    """Seconds from the event until the job was taken from the worker."""
    phases: dict[str, int] = field(default_factory=dict)
    """Phases of the jobs at the time of the fault."""
    reasons: list[str] = field(default_factory=list)
    """Reasons that the jobs reported."""
    reconnects: int | None = None
    """Number of times that clients reconnected."""

    def hit(self, phase: str | None) -> None:
        """It happened in this phase of a job."""
        self.events += 1
        self.phases[str(phase)] = self.phases.get(str(phase), 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """A line for a results file."""
        line: dict[str, Any] = {"case": self.kind, "events": self.events, "jobs": self.jobs, "wrong": len(self.wrong)}
        line["seconds"] = round(self.seconds, 1)
        if self.phases:
            line["phases"] = self.phases
        if self.reconnects is not None:
            line["reconnects"] = self.reconnects
        if self.detected_s:
            ordered = sorted(self.detected_s)
            line |= {"detected_median_s": round(ordered[len(ordered) // 2], 2), "detected_max_s": round(ordered[-1], 2)}
        return line
