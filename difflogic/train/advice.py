"""Advice for a run that is not solved depends on the kind of its task, and repeats nothing that it has had."""

from __future__ import annotations

from difflogic.system.files import quoted
from difflogic.train import stalled
from difflogic.train.run import Run

NEARLY = 0.05
"""A share of wrong values that a search may mend."""


def next_steps(run: Run, restarted: bool) -> list[str]:
    """A line for each thing to try, after a heading; none where the run is solved, or has not ended.

    `restarted`: whether it is the best of several attempts.
    """
    if run.solved or not run.complete or run.wrong is None:
        return []
    # A search has no soft loss that could fall, and what was given up has had its chance.
    falls = run.path is not None and not run.config.search.begin and run.given_up is None
    falls = falls and stalled.falls(run.metrics, run.config.train.epochs)
    steps = [*_mending(run), *([] if run.lender else _again(run, restarted))]
    longer = 2 * run.config.train.epochs
    if falls and run.path is not None:
        steps.append(f"difflogic train --resume {quoted(run.path)} --epochs {longer}: go on, it was getting better")
    elif not run.lender:
        what = {"rule": "a rule", "picture": "a picture", "data": "a task"}.get(run.config.task.target, "a board")
        steps.append(f"the same with --epochs {longer}: {what} may take longer than that")
    if (command := build_command(run)) is not None:
        steps.append(f"{command}: a circuit without training")
    return ["What to try next:", *(f"  {step}" for step in steps)] if steps else []


def _mending(run: Run) -> list[str]:
    """Advice that repairs the circuit that was found."""
    # A search tests on the probes alone, which of samples are those that are held out.
    if (
        run.config.task.target == "data"
        or run.path is None
        or run.wrong is None
        or run.wrong > NEARLY * run.member.job.values
    ):
        return []
    what = "search again, from the best circuit" if run.config.search.begin else "mend the few wrong values"
    return [f"difflogic harden {quoted(run.path)} --search: {what}"]


def _again(run: Run, restarted: bool) -> list[str]:
    """Advice to train again from the beginning."""
    config, alone, steps = run.config, len(run.members) == 1, []
    if not (config.hardening.share or config.search.begin):
        steps.append("the same with --recipe robust: more seeds succeed by it")
    restarts = min(2, stalled.most_restarts(config, config.train.epochs))
    if restarts and alone and not restarted and not config.pool.starts:
        steps.append(f"the same with --restarts {restarts}: other wiring where training stalls, in the same epochs")
    if alone and config.task.target == "rule":
        steps.append("the same with --population 8: the next seeds too, some wirings learn a rule that others do not")
    return steps


def build_command(run: Run) -> str | None:
    """Return the command that makes a circuit for the task of a run without training; None if there may be none."""
    task = run.config.task
    if run.config.train.asynchronous or task.target not in ("rule", "picture", "data"):
        return None
    what = task.rule if task.target == "rule" else None if run.path is None else quoted(run.path)
    return what and f"difflogic build {what} -o circuit.json"
