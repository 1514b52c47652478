"""Training session of automata: epochs on an engine, evaluations on evaluation grids, and the best circuit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from difflogic.config import dataset, schedule
from difflogic.config.own_task import OwnTask
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices import choose
from difflogic.devices.open import Placement
from difflogic.devices.race import Decision
from difflogic.engine.api import EngineInfo, Evaluation
from difflogic.errors import FaultyTaskError
from difflogic.runs import manifest, plots
from difflogic.runs.checkpoint import Checkpoint, ModelState
from difflogic.runs.journal import Row, Rows, last_evaluated
from difflogic.system.words import counted
from difflogic.train import results, summary
from difflogic.train.observer import Observer, Standing
from difflogic.train.replica import Replica, best_of
from difflogic.train.run import Run
from difflogic.train.session import Rules, Session
from difflogic.train.signals import OVER
from difflogic.train.stages import Training
from difflogic.train.start import Start


class Automata(Session[Replica, Run]):
    """Training session of one model or a population, which saves the best circuit so far and the last state."""

    config: Config

    def __init__(
        self, request: TrainRequest, placement: Placement, start: Start, observer: Observer, rules: Rules,
        own: OwnTask | None,
    ) -> None:  # fmt: skip
        """Open the first stage of training. Raises DeviceError, UsageError and CheckpointError."""
        super().__init__(request, placement, start.members, start.checkpoint.epoch, observer)
        first = start.checkpoint.members[0]
        self.config, self.epochs = first.config, first.config.epochs
        self._rules, self._own, self._data = rules, own, request.data
        jobs, states = [member.job for member in self.members], [member.state for member in self.members]
        self.training = Training(placement, jobs, states)
        self.seconds_before, self.notices = first.elapsed_s, start.notices
        self.lender = None if start.lender is None else start.lender.told
        self.best = start.best
        """Best model so far, with its mismatches in `best`; None before the first evaluation."""
        self._finishing: list[str] | None = None
        """Summary lines about changes by the finishing passes; None if these have not changed the circuit."""

    @property
    def info(self) -> EngineInfo:
        return self.training.info

    def close(self) -> None:
        self.training.close()

    def journal(self) -> Rows:
        return [member.metrics for member in self.members]

    def contents(self) -> Mapping[str, bytes]:
        data = self._data
        samples = {} if data is None or not self.config.data.sha256 else {dataset.NAME: data.encode()}
        return samples | {"target.png": plots.target_png(self.members[0].job)}

    def begin(self) -> None:
        # A process may end after it saves the checkpoint of a solution and before it records the solution. So a resumed
        # run repeats the evaluation of its checkpoint.
        self.accepted = self._accept(self.training.evaluate()) if self._is_evaluated else []
        if self._rules.passes is not None and self._rules.passes.is_done(self.best):
            self.accepted = [True] * len(self.members)

    def next_stop(self) -> int:
        return schedule.next_stop(self.epoch, self.epochs, self.config.train.eval_interval)

    def iterate(self, stop: int) -> None:
        decision = self.training.ask_race()
        if decision is not None:
            self._place(decision)
        # A result of the engine benchmark is reported before the next epoch is trained.
        self.epoch = self.training.advance(stop)
        self.observer.advanced(self.epoch)
        if self.observer.wants_states():
            self._download()
            self.observer.shown(self.members)

    def is_logged(self) -> bool:
        interval = self.observer.log_interval
        return self.epoch // interval > self._reported // interval

    def reason_to_stop(self) -> str | None:
        # Only an evaluated epoch counts: a run may be interrupted between two evaluations.
        return self._rules.give_up(self.members) if self._rules.give_up is not None and self._is_evaluated else None

    def report(self, evaluate: bool = False, leaving: bool = False) -> None:
        # Earlier epochs are logged with the last evaluation before them, not with the evaluation of this epoch.
        before = [last_evaluated(member.metrics) for member in self.members]
        metrics = self.training.fetch_metrics()
        evaluations = self._evaluate() if evaluate else []
        seconds = self.seconds
        rows = [[Row.of(epoch, seconds) for epoch in epochs] for epochs in metrics]
        # At most the last of these epochs was evaluated.
        for member, own, evaluation in zip(self.members, rows, evaluations, strict=False):
            own[-1] = member.evaluated(own[-1], evaluation)
        for member, own in zip(self.members, rows, strict=True):
            member.metrics += own
        self.append(rows)
        self._report_skipped(rows)
        for place, row in enumerate(rows[0], 1):
            is_last = place == len(rows[0])
            # Evaluated epochs and the last epoch of an interrupted run are also logged.
            if row.epoch % self.observer.log_interval == 0 or (is_last and (evaluate or leaving)):
                after = [last_evaluated(member.metrics) for member in self.members]
                self._log([own[place - 1] for own in rows], after if is_last else before)
        if evaluate:
            self.observer.judged(self.members)
            # The best model is saved first. If the process is killed before the second save, the best model is newer
            # than the checkpoint, and a resumed run ignores it: see `difflogic.train.start`.
            self._save_best()
            self.save()

    def _evaluate(self) -> list[Evaluation]:
        """Evaluate every model, and store in `accepted` for each model whether it is a solution."""
        self.observer.judging(self.epoch)
        evaluations = self.training.evaluate()
        self._download()
        self.accepted = self._accept(evaluations)
        solutions = self._solutions()
        # `finish` changes the logits, so it is called only if the run ends here, with enough models solved.
        if self._rules.finish is not None and 0 < self.stop_when_solved <= len(solutions):
            for member in solutions:
                member.state = replace(member.state, logits=self._rules.finish(member.circuit).flat_logits())
        return evaluations

    def _accept(self, evaluations: Sequence[Evaluation]) -> list[bool]:
        """Return, for each model, whether its evaluation makes it a solution."""
        return [self._rules.accept(*pair) for pair in zip(self.members, evaluations, strict=True)]

    def _solutions(self) -> list[Replica]:
        return [member for member, is_accepted in zip(self.members, self.accepted, strict=True) if is_accepted]

    def _download(self) -> None:
        """Copy the states of this epoch from the engine to the members."""
        # All models are at the same epoch, so one test is enough. Copying would wait for the device.
        if self.members[0].state.epoch == self.epoch:
            return
        for member, state in zip(self.members, self.training.states(), strict=True):
            member.state = state

    def _place(self, decision: Decision) -> None:
        """Report the engine that the engine benchmark chose, and save the result for later runs of the same shape."""
        self.observer.placed(decision.engine, decision.reason)
        if self.folder is not None:
            measured = [trial.to_dict() for trial in decision.trials]
            self.record = manifest.placed(self.record, decision.engine, decision.reason, measured)
            self.folder.write(manifest.NAME, manifest.to_json(self.record))
        choose.keep_measured(decision.trials[0].engine, self.config, len(self.members), decision)

    @property
    def _is_evaluated(self) -> bool:
        """True if the models were evaluated at this epoch."""
        rows = [row for member in self.members for row in member.metrics[-1:]]
        return bool(rows) and all(row.hard_loss is not None for row in rows)

    def _log(self, rows: Sequence[Row], last: Sequence[Row | None]) -> None:
        """Report one epoch to the observer: the row of each member, and its last evaluated row up to this epoch."""
        if len(self.members) == 1:
            self.observer.logged(rows[0], last[0])
            return
        self.observer.compared(Standing(tuple(self.seeds), tuple(rows), tuple(last)))

    def _report_skipped(self, rows: Rows) -> None:
        skipped = [(row.epoch, member.seed) for member, own in zip(self.members, rows, strict=True)
                   for row in own if row.skipped]  # fmt: skip
        if skipped:
            epochs = sorted({epoch for epoch, _ in skipped})
            # The message names seeds only for a population.
            of_seeds = "" if len(self.members) == 1 else f" of {_seeds(sorted({seed for _, seed in skipped}))}"
            self.observer.noticed(
                f"The gradient{of_seeds} was not finite in {counted(len(epochs), 'epoch')}, from {epochs[0]} to "
                f"{epochs[-1]}: these optimiser steps were skipped."
            )

    def _save_best(self) -> None:
        """Save the best model so far: a solution, otherwise the one with the fewest mismatches; the latest in a tie."""
        solutions = self._solutions()
        candidates = solutions or self.members
        member = candidates[best_of(candidates)]
        least = None if self.best is None else self.best.best
        if member.wrong is None or (least is not None and member.wrong > least and not solutions):
            return
        self.best = replace(member.checkpoint(self.seconds), best=member.wrong)
        if self.folder is not None:
            self.folder.keep_best(Checkpoint((self.best,)))

    def finish(self) -> None:
        self._run_passes()

    def _leave(self) -> None:
        super()._leave()
        # A time limit reserves some seconds for the finishing passes: see `difflogic.train.restarts`.
        if str(self.stop.reason).startswith(OVER):
            self.complete = self._run_passes(prune=False)

    def _run_passes(self, prune: bool = True) -> bool:
        """Try the finishing passes on the best circuit, then on the last ones; return whether they succeed for one."""
        passes = self._rules.passes
        if passes is None or passes.is_done(self.best):
            return passes is not None
        # The last circuit may be easier to repair than the best circuit, although it has more mismatches.
        last = [(member.circuit, member.seed) for member in self.members]
        for circuit, seed in last if self.best is None else [(self.best.circuit, self.best.config.seed), *last]:
            if (finished := passes.run(circuit, seed, self.epoch, prune)) is not None:
                self.best, self._finishing = finished
                self.accepted = [True]
                if self.folder is not None:
                    self.folder.keep_best(Checkpoint((self.best,)))
                return True
        return False

    def state(self) -> Checkpoint[ModelState]:
        self._download()
        seconds = self.seconds
        return Checkpoint(tuple(member.checkpoint(seconds) for member in self.members), best_of(self.members))

    def end(self) -> Run:
        self._download()
        self.observer.ending()  # before the images, which take a while
        engine, best = self.training.engine, self.best
        effort = self.epoch - self._first_epoch, self.seconds_here
        text = summary.of_run(self.config, self.members, engine.info, *effort, best, self._finishing or ())
        shown = best or self.members[best_of(self.members)].checkpoint(self.seconds)
        if self.folder is not None:
            has_images = self.observer.wants_pictures()
            results.write(self.folder, engine, self.members, shown, text, has_images)
            if has_images and best is not None and self._own is not None:
                try:
                    results.draw(self.folder, self.placement.engine, self._own, best)
                except FaultyTaskError as error:
                    self.observer.noticed(f"{error} The run is complete, but has no images of the task.")
        self.write_end(text)
        return Run(
            path=None if self.folder is None else self.folder.path,
            config=self.config,
            engine=engine.info,
            members=self.members,
            best=shown,
            wrong=None if best is None else best.best,
            epoch=self.epoch,
            interrupted=self.stop.reason if self._finishing is None else None,
            summary=text,
            complete=self.complete,
            given_up=self.given_up,
            lender=self.lender,
            accepted=any(self.accepted),
            data=self._data,
        )


def _seeds(seeds: Sequence[int]) -> str:
    """Return a text with the first five seeds and the number of further seeds."""
    named = ", ".join(map(str, seeds[:5]))
    return f"seed {named}" + (f" and {len(seeds) - 5} more" if len(seeds) > 5 else "")
