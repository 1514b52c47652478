"""Shared context of an evaluation's tests: the trained circuit, its task on other grids, and rollouts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from difflogic.config.dataset import Dataset
from difflogic.config.resized import resized
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.engine import events, job
from difflogic.engine.api import Engine
from difflogic.engine.job import Floats
from difflogic.evaluation.measure import RolloutRecord, watch
from difflogic.evaluation.paper import Published, published
from difflogic.evaluation.rollout import DamagePlan, play
from difflogic.evaluation.trained_circuit import TrainedCircuit

MASK_DRAWS = 3
"""Number of batches of asynchronous rollouts, each with new random initial states and new fire masks."""
FIXED_DRAWS = 16
"""Number of asynchronous rollouts, with different fire masks, from a single initial state."""
FIRE_RATE = 0.6
"""Fire rate in asynchronous rollouts of a synchronously trained circuit, as in the paper."""
START_STREAM = 0x6576616C
"""Constant ("eval") folded into an evaluation's random key, so that it differs from all keys of training."""


def evaluation_key(config: Config) -> prng.Key:
    """Return the random key for the evaluation of a run, which depends only on the run's seed."""
    return prng.fold_in(prng.key_from_seed(config.seed), START_STREAM)


def fresh_starts(config: Config, count: int, key: prng.Key) -> Bits:
    """Return initial states `[count, H, W, C]` of 0 and 1, as in training; random states are sampled with `key`."""
    task = config.task
    shape = (count, task.height, task.width, config.model.channels)
    return events.draw_starts(task.start, key, shape, job.start(config))


@dataclass(frozen=True, eq=False)
class EvaluationContext:
    """Trained circuit, engine and settings, which all tests of an evaluation share."""

    engine: Engine
    trained: TrainedCircuit
    starts: int
    """Number of new initial states for measuring the accuracy."""
    quick: bool
    others: Dataset | None = None
    """Samples to test instead of the run's held-out samples, or None."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a task in Python that override the run's settings, for new samples."""

    @cached_property
    def samples(self) -> Dataset | None:
        """Samples to test, or None if there are no samples."""
        own = self.trained.data() if self.others is None else None
        return self.others if own is None else own.split(self.config.data.held_out)[1]

    @property
    def config(self) -> Config:
        return self.trained.config

    @property
    def paper(self) -> Published:
        return published(self.config)

    @cached_property
    def own(self) -> Config:
        """Configuration of the run on the original grid, without damage."""
        return self.larger(1)

    def larger(self, factor: int) -> Config:
        """Return the configuration of the run on a grid `factor` times as high and wide, without damage."""
        task = self.config.task
        return resized(self.config, factor * task.height if task.height > 1 else 1, factor * task.width)

    @property
    def draws_starts(self) -> bool:
        """True if initial states are random."""
        return self.own.task.start in ("random", "boards")

    @property
    def asynchronous_rate(self) -> float:
        """Fire rate of asynchronous rollouts: the rate of training or, for a synchronous circuit, of the paper."""
        return self.config.train.fire_rate if self.config.train.asynchronous else FIRE_RATE

    def keys(self, test: int) -> tuple[prng.Key, prng.Key]:
        """Return the random keys of test number `test`: one for initial states, one for fire masks and damage."""
        # Numbers of tests are hundreds apart, so that repeated rollouts can use the next ones. Persistence has the same
        # number as accuracy, since it continues the same rollouts.
        start, play_ = prng.split(prng.fold_in(evaluation_key(self.config), test))
        return start, play_

    def watch(
        self,
        config: Config,
        steps: int,
        test: int,
        fire_rate: float | None = None,
        damage: DamagePlan | None = None,
        samples: int = 1,
        targets: Iterable[Bits | None] | None = None,
        start: Bits | None = None,
    ) -> RolloutRecord:
        """Compare a rollout on the grid of `config` with its target; the number `test` selects its random keys."""
        start_key, play_key = self.keys(test)
        start = fresh_starts(config, samples, start_key) if start is None else start
        rate = self.config.train.fire_rate if fire_rate is None else fire_rate
        states = play(self.engine, self.trained.circuit, start, steps, play_key, rate, damage)
        # Only damage at the last step is present at the end.
        damaged = damage.square(*start.shape[1:3]) if damage and steps in damage.steps else ()
        return watch(states, repeat(job.fixed_target(config.task)) if targets is None else targets, steps, damaged)

    def draws(self, steps: int, test: int, fire_rate: float | None = None) -> list[RolloutRecord]:
        """Compare rollouts from all initial states with the target; repeat asynchronous ones with fresh random keys."""
        rate = self.config.train.fire_rate if fire_rate is None else fire_rate
        # With one initial state the masks are the only random numbers.
        samples, several = (self.starts, MASK_DRAWS) if self.draws_starts else (1, FIXED_DRAWS)
        count = several if rate < 1 else 1
        return [self.watch(self.own, steps, test + draw, rate, samples=samples) for draw in range(count)]

    def soft_loss(self, test: int) -> float:
        """Return the soft circuit's sum of squared errors after T steps, averaged over the initial states of `test`."""
        task, train = self.own.task, self.config.train
        start_key, mask_key = self.keys(test)
        start = fresh_starts(self.own, self.starts if self.draws_starts else 1, start_key)
        masks: Floats | None = None
        if train.asynchronous:
            fires = prng.uniform(mask_key, (task.steps, task.height, task.width, 1)) <= np.float32(train.fire_rate)
            masks = fires.astype(np.float32)
        total, target = 0.0, job.fixed_target(task)
        # Batches are as large as in training, so that they fit into memory.
        for first in range(0, len(start), train.batch):
            batch = start[first : first + train.batch]
            last = self.engine.rollout(self.trained.circuit, batch, task.steps, "soft", masks)[-1]
            total += float(np.sum((last[..., : task.loss_channels].astype(np.float64) - target) ** 2))
        return total / len(start)
