"""Agents of ever other seeds, until one is solved."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.policies.training import PolicyObserver, PolicyRun, PolicyTrainer
from difflogic.runs import folder as folders
from difflogic.train.signals import Deadline, Stop, StopSignals

ATTEMPTS = "attempts"
"""Below the run folder: attempts by their seeds. When all is over the files of the best one stand above them."""


@dataclass(frozen=True, eq=False)
class Solved:
    """The end of a training until it is solved."""

    best: PolicyRun
    """The solved attempt, else the one of the highest score."""
    attempts: int
    last: PolicyRun
    """The one that was made last: it knows what interrupted it."""


def until_solved(
    config: PolicyConfig,
    device: Device,
    out: Path | None = None,
    seconds: float | None = None,
    observer: PolicyObserver | None = None,
    stop: Stop | None = None,
) -> Solved:
    """Train agents of the configuration's seed and those after it, one at a time, until one is solved.

    `seconds`: where that ends, solved or not. Raises what `PolicyTrainer.run` raises, UsageError without a threshold.
    """
    if out is not None:
        folders.check_new(out)
    runs: list[PolicyRun] = []
    with ExitStack() as stack:
        asked = stack.enter_context(StopSignals()) if stop is None else stop
        if seconds is not None:
            asked = Deadline(asked, seconds)
        while not runs or not (runs[-1].solved or asked.reason):
            seed = config.seed + len(runs)
            trainer = PolicyTrainer(config.with_(seed=seed), device)
            path = None if out is None else out / ATTEMPTS / f"seed-{seed}"
            runs.append(trainer.run(path, stop_when_solved=1, observer=observer, stop=asked))
    best = max(runs, key=lambda run: (bool(run.solved), _score(run)))
    if out is not None and best.path is not None:
        _raise(best.path, out)
        best.path = out
    return Solved(best, len(runs), runs[-1])


def _score(run: PolicyRun) -> float:
    score = run.best.score
    return float("-inf") if score is None else score.mean


def _raise(attempt: Path, out: Path) -> None:
    """Move the files of an attempt to the top."""
    for file in list(attempt.iterdir()):
        file.rename(out / file.name)
    attempt.rmdir()
    if not any(attempt.parent.iterdir()):
        attempt.parent.rmdir()
