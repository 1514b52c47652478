"""Events of a sweep, in fields and in words, for any sink."""

from pathlib import Path
from typing import Any

from difflogic.cli.screen.sinks import Event, Lines
from difflogic.sweeps import Spec, Sweep, SweepObserver, Trial
from difflogic.sweeps.page import shown
from difflogic.system.files import quoted


class SweepReporter(SweepObserver):
    """Describes a sweep to a sink. The events are begin, trial, notice and end."""

    def __init__(self, sink: Lines) -> None:
        self._sink = sink
        self._metric = ""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        self._metric = described.metric
        rest = f", {known} of them known already" if known else ""
        axes = ", ".join(each.path for each in described.axes)
        text = f"Sweep in {path}: {described.most} trials over {axes}{rest}; {described.method}, {workers} at once"
        fields = {"path": str(path), "trials": described.most, "known": known, "workers": workers}
        self._sink.show(Event("begin", fields, [text]))

    def ended(self, trial: Trial, done: int, most: int) -> None:
        values = ", ".join(f"{path.rpartition('.')[2]}={shown(value)}" for path, value in trial.values.items())
        found = trial.outcome
        solved = f"{found.solved} of {found.models} solved"
        if found.models == 1:
            solved = "solved" if found.solved else "not solved"
        result = found.error or f"{self._metric} {shown(trial.value)}, {solved}"
        fields: dict[str, Any] = {"trial": trial.number, "status": trial.status, "value": trial.value}
        fields |= {"values": dict(trial.values), "error": trial.outcome.error, "seconds": trial.outcome.seconds}
        self._sink.show(Event("trial", fields, [f"trial {trial.number}: {values}: {trial.status}, {result}"]))
        self._sink.advance(done, most)

    def noticed(self, text: str) -> None:
        self._sink.show(Event("notice", {"text": text}, [text], is_warning=True))

    def finished(self, done: Sweep) -> None:
        """Report the end, once the tables are written."""
        best, left = done.best, done.spec.most - len(done.trials)
        failed = sum(each.status == "failed" for each in done.trials)
        lines = [f"{len(done.trials)} trials are over, {failed} of them failed."]
        if best is not None:
            values = ", ".join(f"{path}={shown(value)}" for path, value in best.values.items())
            lines.append(f"The best is trial {best.number} with {self._metric} {shown(best.value)}: {values}")
        else:
            lines.append(f"No trial has a {self._metric}: see {done.path / 'trials.csv'}.")
        if left:
            lines.append(f"{left} are left: go on with difflogic sweep --resume {quoted(done.path)}")
        fields = {"path": str(done.path), "best": None if best is None else best.number, "left": left}
        self._sink.show(Event("end", fields, lines))
