"""A trial that trains agents: see `difflogic.sweeps.trial`."""

from __future__ import annotations

import math
from pathlib import Path

from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.devices.device import Device
from difflogic.policies.training import PolicyObserver, PolicyTrainer
from difflogic.sweeps.trial import Outcome, mean, status
from difflogic.train.run_request import is_in
from difflogic.train.signals import Stop


def train(
    config: PolicyConfig, request: TrainRequest, folder: Path, device: Device, observer: PolicyObserver, look: Stop
) -> Outcome:
    """As `trial.train`, for agents. Raises what `PolicyTrainer` raises."""
    trainer = PolicyTrainer(config, device, pictures=False)
    if is_in(folder):
        run = trainer.resume(folder, request.solved_models, observer, look)
    else:
        run = trainer.run(folder, request.population, request.solved_models, observer, look)
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
