"""Reporter of a sweep, which sends events with fields and text to a sink."""

from pathlib import Path
from typing import Any

from difflogic.cli.screen.sinks import Event, Lines
from difflogic.sweeps import Spec, Sweep, SweepObserver, Trial
from difflogic.sweeps.page import shown
from difflogic.system.files import quoted
from difflogic.system.words import counted


class SweepReporter(SweepObserver):
    """Observer that reports a sweep to a sink as the events `begin`, `trial`, `notice` and `end`."""

    def __init__(self, sink: Lines) -> None:
        self._sink = sink
        self._metric = ""

    def began(self, described: Spec, path: Path, known: int, workers: int) -> None:
        self._metric = described.metric
        rest = f", {known} of them done already" if known else ""
        axes = ", ".join(axis.path for axis in described.axes)
        text = f"Sweep in {path}: {described.most} trials over {axes}{rest}; {described.method}, {workers} at once"
        fields = {"path": str(path), "trials": described.most, "known": known, "workers": workers}
        self._sink.show(Event("begin", fields, [text]))

    def ended(self, trial: Trial, done: int, most: int) -> None:
        values = ", ".join(f"{path.rpartition('.')[2]}={shown(value)}" for path, value in trial.values.items())
        outcome = trial.outcome
        solved = f"{outcome.solved} of {outcome.models} solved"
        if outcome.models == 1:
            solved = "solved" if outcome.solved else "not solved"
        result = outcome.error or f"{self._metric} {shown(trial.value)}, {solved}"
        fields: dict[str, Any] = {"trial": trial.number, "status": trial.status, "value": trial.value}
        fields |= {"values": dict(trial.values), "error": outcome.error, "seconds": outcome.seconds}
        self._sink.show(Event("trial", fields, [f"trial {trial.number}: {values}: {trial.status}, {result}"]))
        self._sink.advance(done, most)

    def noticed(self, text: str) -> None:
        self._sink.show(Event("notice", {"text": text}, [text], is_warning=True))

    def finished(self, done: Sweep) -> None:
        """Report the end of a sweep after its tables have been written."""
        best, missing = done.best, done.spec.most - len(done.trials)
        failed = sum(trial.status == "failed" for trial in done.trials)
        lines = [f"{counted(len(done.trials), 'trial')} ended, {failed} failed."]
        if best is not None:
            values = ", ".join(f"{path}={shown(value)}" for path, value in best.values.items())
            lines.append(f"The best is trial {best.number} with {self._metric} {shown(best.value)}: {values}")
        else:
            lines.append(f"No trial has a {self._metric}: see {done.path / 'trials.csv'}.")
        if missing:
            lines.append(
                f"{counted(missing, 'trial')} missing: continue with difflogic sweep --resume {quoted(done.path)}"
            )
        fields = {"path": str(done.path), "best": None if best is None else best.number, "left": missing}
        self._sink.show(Event("end", fields, lines))
