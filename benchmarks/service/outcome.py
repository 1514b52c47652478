"""Outcome of faults injected into the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """Kind of an injected fault, and all deviations from the expected results."""

    kind: str
    events: int = 0
    """Number of kills or faults that interrupted work."""
    jobs: int = 0
    wrong: list[str] = field(default_factory=list)
    """Descriptions of jobs that failed, or that differ from an undisturbed run."""
    seconds: float = 0.0
    detected_s: list[float] = field(default_factory=list)
    """Seconds from each fault until the service detected the loss of the worker."""
    phases: dict[str, int] = field(default_factory=dict)
    """Number of faults by the phase of the job at that time."""
    reasons: list[str] = field(default_factory=list)
    """Reasons of failures that the jobs reported."""
    reconnects: int | None = None
    """Number of times that clients reconnected."""

    def hit(self, phase: str | None) -> None:
        """Count a fault in this phase of a job."""
        self.events += 1
        self.phases[str(phase)] = self.phases.get(str(phase), 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as a line for a results file."""
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
