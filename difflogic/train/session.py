"""One process's part of a run: the epoch loop and what it keeps."""

from __future__ import annotations

import math
import time
from typing import Any

from difflogic.checkpoint import Checkpoint
from difflogic.engine import Evaluation, Job, TrainingModel
from difflogic.train import schedule
from difflogic.train.folder import RunFolder
from difflogic.train.journal import Row
from difflogic.train.observer import Observer
from difflogic.train.signals import StopSignals
from difflogic.train.start import Start
from difflogic.train.summary import last_evaluated


class Session:
    """Drives a TrainingModel. `rows` grows; `folder`, where there is one, gets rows and checkpoints."""

    def __init__(self, job: Job, model: TrainingModel, start: Start, observer: Observer) -> None:
        self.job = job
        self.model = model
        self.observer = observer
        self.rows = list(start.rows)
        self.folder: RunFolder | None = None
        self.record: dict[str, Any] = {}
        self.epoch = self._first_epoch = start.checkpoint.state.epoch
        self._clock = time.monotonic()
        self._saved = self.epoch
        self._notices = start.notices
        self._best = start.checkpoint.best
        self._seconds_before = start.checkpoint.elapsed_s
        self.seconds_here = 0.0
        self.complete = False
        """True where all epochs were done, or a solution ended the run."""

    def keep(self, folder: RunFolder, record: dict[str, Any]) -> Session:
        """Write into this folder, whose manifest is `record`."""
        self.folder, self.record = folder, record
        return self

    @property
    def epochs_here(self) -> int:
        """Epochs that this process trained."""
        return self.epoch - self._first_epoch

    def train(self, signals: StopSignals, stop_when_solved: bool, log_interval: int) -> None:
        """Epochs until the last, a solution if that ends the run, or a signal."""
        for notice in self._notices:
            self.observer.noticed(notice)
        self._clock = time.monotonic()
        total, interval = self.job.config.train.epochs, self.job.config.train.eval_interval
        self.complete = self._is_over(stop_when_solved)
        while not self.complete and signals.received is None:
            stop = schedule.next_stop(self.epoch, total, interval, log_interval)
            self._advance(stop)
            if self.epoch == stop:
                self._report(judged=stop == total or schedule.is_evaluated(stop, interval))
            self.complete = self._is_over(stop_when_solved)
        if not self.complete:
            self._leave()
        self.seconds_here = self._seconds() - self._seconds_before

    def _advance(self, stop: int) -> None:
        """Train towards epoch `stop`, as far as the engine goes at once."""
        epochs = min(stop - self.epoch, self.model.max_epochs_per_call())
        self.model.train(epochs)
        self.epoch += epochs
        self.observer.advanced(self.epoch)

    def _is_over(self, stop_when_solved: bool) -> bool:
        judged = last_evaluated(self.rows[-1:])
        solved = judged is not None and judged.hard_loss == 0
        return self.epoch >= self.job.config.train.epochs or (stop_when_solved and solved)

    def _report(self, judged: bool) -> None:
        """Bring rows home; where this epoch is judged, evaluate and save."""
        metrics = self.model.drain()
        result = self.model.evaluate() if judged else None
        seconds = self._seconds()
        rows = [Row.of(epoch, seconds) for epoch in metrics]
        if result is not None:
            rows[-1] = self._judge(rows[-1], result)
        self.rows += rows
        if self.folder is not None:
            self.folder.append(rows)
        self._tell(rows)
        if judged:
            self._save()

    def _leave(self) -> None:
        """Save what a signal interrupted, without an evaluation that the schedule does not know."""
        if len(self.rows) < self.epoch:
            self._report(judged=False)
        if self._saved < self.epoch:
            self._save()

    def _judge(self, row: Row, result: Evaluation) -> Row:
        """The row with its evaluation. One beyond the schedule leaves no trace in later rows and checkpoints."""
        best = result.hard_loss if self._best is None else min(self._best, result.hard_loss)
        if schedule.is_evaluated(row.epoch, self.job.config.train.eval_interval):
            self._best = best
        return row.evaluated(result, best)

    def _tell(self, rows: list[Row]) -> None:
        skipped = [row.epoch for row in rows if row.skipped]
        if skipped:
            self.observer.noticed(
                f"The gradient was not finite in {len(skipped)} epoch(s), from {skipped[0]} to {skipped[-1]}: "
                "their steps were skipped, logits and moments are unchanged."
            )
        judged = last_evaluated(self.rows)
        accuracy = math.nan if judged is None or judged.accuracy is None else judged.accuracy
        self.observer.logged(rows[-1], accuracy)

    def _save(self) -> None:
        if self.folder is None:
            return
        state = self.model.to_cpu()
        circuit = self.job.circuit.with_logits(state.logits)
        self.folder.save(Checkpoint(self.job.config, circuit, state, self._best, self._seconds()))
        self._saved = state.epoch
        self.observer.saved(state.epoch)

    def _seconds(self) -> float:
        """Seconds of training so far, over all processes."""
        return self._seconds_before + time.monotonic() - self._clock
