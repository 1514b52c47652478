"""A trial that trains agents: see `difflogic.sweeps.trial`."""

from __future__ import annotations

import math
from pathlib import Path

from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.devices.device import Device
from difflogic.policies.rows import PolicyRow
from difflogic.policies.training import PolicyObserver, PolicyTrainer
from difflogic.sweeps.trial import Evaluated, Outcome, mean, status
from difflogic.train.run_request import is_in
from difflogic.train.signals import Stop


class _Watch(PolicyObserver):
    def __init__(self, evaluated: Evaluated) -> None:
        self._evaluated = evaluated

    def iterated(self, rows: list[PolicyRow]) -> None:
        if rows[0].score is not None:
            self._evaluated(rows[0].steps)


def train(
    config: PolicyConfig, request: TrainRequest, folder: Path, selector: str, look: Stop, evaluated: Evaluated
) -> Outcome:
    """Begin in the folder, or go on there, until the end or until `look` says so; `evaluated` hears of evaluations."""
    device = Device("cpu" if selector == "auto" else selector)
    trainer, watch = PolicyTrainer(config, device, pictures=False), _Watch(evaluated)
    if is_in(folder):
        run = trainer.resume(folder, request.solved_models, watch, look)
    else:
        run = trainer.run(folder, request.population, request.solved_models, watch, look)
    steps = run.iteration * run.members[0].agent.iteration_steps
    # A paused agent is compared by its last evaluation, which its rows have; at the end by fresh episodes.
    last = [[row.score for row in each.rows if row.score is not None][-1:] for each in run.members]
    ended = [each.score.mean for each in run.members if each.score is not None]
    scores = ended if run.complete else [score for each in last for score in each]
    return Outcome(
        status(run.complete, look),
        len(run.members),
        sum(score >= config.evaluation.threshold > -math.inf for score in scores),
        effort=float(steps * len(run.members)),
        score=mean(scores),
        done=steps,
        engine=str(device),
    )
