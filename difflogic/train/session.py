"""One process's part of a run: the epoch loop and what it keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from difflogic.config import schedule
from difflogic.devices import choose
from difflogic.devices.open import Placement
from difflogic.devices.race import Decision
from difflogic.engine.api import Evaluation
from difflogic.errors import RunFolderError
from difflogic.model.circuit import Circuit
from difflogic.runs import manifest
from difflogic.runs.checkpoint import Checkpoint
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import Row, Rows, last_evaluated
from difflogic.train.observer import Observer, Standing
from difflogic.train.replica import Replica, best_of
from difflogic.train.signals import Stop
from difflogic.train.stages import Training
from difflogic.train.start import Start

GiveUp = Callable[[Sequence[Replica]], str | None]
"""Asked at each evaluation: why these models are beyond hope, None where they are not."""
Accept = Callable[[Replica, Evaluation], bool]
"""Asked at each evaluation of each model: is it a solution? Without it one is that has no wrong value on its probes."""
Finish = Callable[[Circuit], Circuit]
"""Makes of a solution the circuit that is kept, where solutions end the run; hard it must do the same."""


class Session:
    """Drives the training of one model or many. `folder`, where there is one, gets rows and checkpoints."""

    def __init__(self, placement: Placement, start: Start, observer: Observer) -> None:
        """Opens the first model. Raises DeviceErrors, and CheckpointError."""
        first, members = start.checkpoint.members[0], start.members
        self.training = Training(placement, [member.job for member in members], [member.state for member in members])
        self.members = members
        self.config = first.config
        self.observer = observer
        self.folder: RunFolder | None = None
        self.record: dict[str, Any] = {}
        self.epoch = self._first_epoch = start.checkpoint.epoch
        self._clock = time.monotonic()
        # The epochs whose rows are written, and whose states are saved. Both lag behind `epoch`, which counts what was
        # given to the engine.
        self._reported = self._saved = self.epoch
        self._notices = start.notices
        self._seconds_before = first.elapsed_s
        self.seconds_here = 0.0
        self.lender = None if start.lender is None else start.lender.told
        self.best = start.best
        """The best model so far, its `best` the wrong values that it has."""
        self.accepted: list[bool] = [row.hard_loss == 0 for row in self._last_rows()]
        """Which models the last evaluation found to be solutions."""
        self.given_up: str | None = None
        """Why it was."""
        self.complete = False
        """True where all epochs were done, solutions ended the run, or it was given up."""

    def close(self) -> None:
        """Free what the engine holds."""
        self.training.close()

    def keep(self, folder: RunFolder, record: dict[str, Any]) -> Session:
        """Write into this folder, whose manifest is `record`."""
        self.folder, self.record = folder, record
        return self

    @property
    def epochs_here(self) -> int:
        """Epochs that this process trained."""
        return self.epoch - self._first_epoch

    def train(
        self,
        stop: Stop,
        stop_when_solved: int,
        log_interval: int,
        give_up: GiveUp | None = None,
        finish: Finish | None = None,
        accept: Accept | None = None,
    ) -> None:
        """Epochs until the last, as many solutions as end the run (0: none do), `stop` or `give_up`."""
        for notice in self._notices:
            self.observer.noticed(notice)
        self._clock = time.monotonic()
        if accept is not None:
            self.accepted = []  # a run that was accepted is over: what goes on was not
        total, interval = self.config.train.epochs, self.config.train.eval_interval
        # A resumed run may be over already, or have been given up just before its process was killed. Then no epoch is
        # trained.
        self.complete = self._is_over(stop_when_solved) or self._is_hopeless(give_up)
        while not self.complete and stop.reason is None:
            # The engine never goes beyond an evaluation, so that every scheduled evaluation is of a state that is
            # saved. It may take several calls to get there, and between two of them a signal is heard.
            next_stop = schedule.next_stop(self.epoch, total, interval)
            self._advance(next_stop)
            if self.epoch == next_stop:
                self._report(log_interval, judged=True, stop_when_solved=stop_when_solved, finish=finish, accept=accept)
                self.complete = self._is_hopeless(give_up)
            elif self.epoch // log_interval > self._reported // log_interval:
                self._report(log_interval)
            self.complete = self.complete or self._is_over(stop_when_solved)
        if not self.complete:
            self._leave(log_interval)
        self.seconds_here = self._seconds() - self._seconds_before

    def bring_home(self) -> None:
        """The members' states of this epoch, from the engine."""
        # All models are at the same epoch, so the first speaks for all. Asking the engine would wait for the device.
        if self.members[0].state.epoch == self.epoch:
            return
        for member, state in zip(self.members, self.training.states(), strict=True):
            member.state = state

    def fail(self, error: BaseException) -> None:
        """Leave the reason in the manifest, if the disk still takes it."""
        if self.folder is None:
            return
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # The manifest tells the epoch of the last checkpoint: what was trained after it is lost.
        ended = manifest.end(self.record, status, self._saved, f"{type(error).__name__}: {error}")
        with suppress(RunFolderError):
            self.folder.write(manifest.NAME, manifest.to_json(ended))

    def _advance(self, stop: int) -> None:
        """Train towards epoch `stop`, as far as the engine goes at once."""
        decision = self.training.ask_race()
        if decision is not None:
            self._place(decision)
        # Where the first epochs were a race, its result is told before the next one is trained.
        self.epoch = self.training.advance(stop)
        self.observer.advanced(self.epoch)
        if self.observer.wants_states():
            self.bring_home()
            self.observer.shown(self.members)

    def _place(self, decision: Decision) -> None:
        """The first epochs showed where the rest is trained: tell it, and keep it for runs of the same shape."""
        self.observer.placed(decision.engine, decision.reason)
        if self.folder is not None:
            measured = [trial.to_dict() for trial in decision.trials]
            self.record = manifest.placed(self.record, decision.engine, decision.reason, measured)
            self.folder.write(manifest.NAME, manifest.to_json(self.record))
        choose.keep_measured(decision.trials[0].engine, self.config, len(self.members), decision)

    def _is_over(self, stop_when_solved: int) -> bool:
        return self.epoch >= self.config.train.epochs or 0 < stop_when_solved <= sum(self.accepted)

    def _last_rows(self) -> list[Row]:
        """Each model's, where there is one."""
        return [row for member in self.members for row in member.metrics[-1:]]

    def _is_hopeless(self, give_up: GiveUp | None) -> bool:
        """Return whether the evaluation of this epoch ends the run: the answer is the same after a resume."""
        rows = self._last_rows()
        # Only an evaluated epoch counts. A run that was interrupted between two evaluations has rows that were not.
        if give_up is not None and rows and all(row.hard_loss is not None for row in rows):
            self.given_up = give_up(self.members)
        return self.given_up is not None

    def _report(
        self,
        log_interval: int,
        judged: bool = False,
        leaving: bool = False,
        stop_when_solved: int = 0,
        finish: Finish | None = None,
        accept: Accept | None = None,
    ) -> None:
        """Bring rows home, and log some; where this epoch is due, evaluate and save."""
        # Epochs before this one are logged beside the evaluation that was known then, not beside the one that comes
        # now.
        before = [last_evaluated(member.metrics) for member in self.members]
        metrics = self.training.drain()
        results = []
        if judged:
            self.observer.judging(self.epoch)
            results = self.training.evaluate()
            self.bring_home()
            accept = accept or (lambda member, result: result.hard_loss == 0)
            self.accepted = [accept(*each) for each in zip(self.members, results, strict=True)]
            right = [member for member, is_right in zip(self.members, self.accepted, strict=True) if is_right]
            # It changes the logits, so it is done only where the run ends here, with enough models solved.
            if finish is not None and 0 < stop_when_solved <= len(right):
                for member in right:
                    member.state = replace(member.state, logits=finish(member.circuit).flat_logits())
        seconds = self._seconds()
        rows = [[Row.of(epoch, seconds) for epoch in each] for each in metrics]
        # Of all these epochs only the last was evaluated. Where none was, `results` is empty.
        for member, each, result in zip(self.members, rows, results, strict=False):
            each[-1] = member.judge(each[-1], result)
        for member, each in zip(self.members, rows, strict=True):
            member.metrics += each
        self._reported = self.epoch
        if self.folder is not None:
            self.folder.append(rows)
        self._tell_skipped(rows)
        for place, row in enumerate(rows[0], 1):
            last = place == len(rows[0])
            # An evaluation in between is logged too, and so is the last epoch of a run that is interrupted.
            if row.epoch % log_interval == 0 or (last and (judged or leaving)):
                after = [last_evaluated(member.metrics) for member in self.members]
                self._tell([each[place - 1] for each in rows], after if last else before)
        if judged:
            self.observer.judged(self.members)
            # The best comes first. A run that is killed between the two has a best that is newer than its checkpoint,
            # and drops it when it is resumed: see `difflogic.train.start`.
            self._keep_best()
            self._save()

    def _leave(self, log_interval: int) -> None:
        """Save what was interrupted, without an evaluation that the schedule does not know."""
        if self._reported < self.epoch:
            self._report(log_interval, leaving=True)
        if self._saved < self.epoch:
            self._save()

    def _tell(self, rows: Sequence[Row], last: Sequence[Row | None]) -> None:
        """Log an epoch: each member's row, and the last that was evaluated by then."""
        if len(self.members) == 1:
            self.observer.logged(rows[0], last[0])
            return
        self.observer.compared(Standing(tuple(member.seed for member in self.members), tuple(rows), tuple(last)))

    def _tell_skipped(self, rows: Rows) -> None:
        skipped = [(row.epoch, member.seed) for member, each in zip(self.members, rows, strict=True)
                   for row in each if row.skipped]  # fmt: skip
        if skipped:
            epochs = sorted({epoch for epoch, _ in skipped})
            # A population names the seeds that it happened to, a single run has only one.
            of_seeds = "" if len(self.members) == 1 else f" of {_seeds(sorted({seed for _, seed in skipped}))}"
            self.observer.noticed(
                f"The gradient{of_seeds} was not finite in {len(epochs)} epoch(s), from {epochs[0]} to {epochs[-1]}: "
                "their steps were skipped, logits and moments are unchanged."
            )

    def _keep_best(self) -> None:
        """A solution, else the fewest wrong values; of equals the latest: a run that ends solved ends with its best."""
        accepted = [member for member, is_accepted in zip(self.members, self.accepted, strict=True) if is_accepted]
        candidates = accepted or self.members
        member = candidates[best_of(candidates)]
        assert member.wrong is not None
        known = None if self.best is None else self.best.best
        if known is not None and member.wrong > known and not accepted:
            return
        self.best = replace(member.checkpoint(self._seconds()), best=member.wrong)
        if self.folder is not None:
            self.folder.keep_best(Checkpoint((self.best,)))

    def _save(self) -> None:
        if self.folder is None:
            return
        self.bring_home()
        seconds = self._seconds()
        self.folder.save(Checkpoint(tuple(each.checkpoint(seconds) for each in self.members), best_of(self.members)))
        self._saved = self.epoch
        self.observer.saved(self.epoch)

    def _seconds(self) -> float:
        """Seconds of training so far, over all processes."""
        return self._seconds_before + time.monotonic() - self._clock


def _seeds(seeds: Sequence[int]) -> str:
    """The first few by number."""
    named = ", ".join(map(str, seeds[:5]))
    return f"seed {named}" + (f" and {len(seeds) - 5} more" if len(seeds) > 5 else "")
