"""Every test of an evaluation works with these: the trained circuit, its task on other grids, and rollouts to watch."""

from __future__ import annotations

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
"""Asynchronous rollouts from drawn starts are tested under so many draws of the fire masks, all starts in each."""
FIXED_DRAWS = 16
"""And from a start that is always the same under so many."""
FIRE_RATE = 0.6
"""The paper's, of asynchronous rollouts of a circuit that was trained synchronously."""
START_STREAM = 0x6576616C
"""`fold_in` data of the starts of an evaluation ("eval"): neither training nor its probes draw from it."""


def evaluation_key(config: Config) -> prng.Key:
    """The key of the random numbers of a run's evaluation."""
    return prng.fold_in(prng.key_from_seed(config.seed), START_STREAM)


def fresh_starts(config: Config, count: int, key: prng.Key) -> Bits:
    """`[count, H, W, C]`, 0 or 1: as training would start, drawn from `key` where it draws."""
    task = config.task
    shape = (count, task.height, task.width, config.model.channels)
    return events.draw_starts(task.start, key, shape, job.start(config))


@dataclass(frozen=True, eq=False)
class EvaluationContext:
    """A trained circuit, an engine, and how thorough to be."""

    engine: Engine
    trained: TrainedCircuit
    starts: int
    """Fresh starts that accuracy is measured on."""
    quick: bool
    others: Dataset | None = None
    """Samples to test on in place of those that the run held out."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of a task in Python, those that fresh samples are drawn with in place of the run's."""

    @cached_property
    def samples(self) -> Dataset | None:
        """Return the samples that it is tested on, if there are any."""
        own = self.trained.data() if self.others is None else None
        return self.others if own is None else own.split(self.config.data.held_out)[1]

    @property
    def samples_are(self) -> str:
        """Return which these are, in words."""
        if self.others is not None:
            return "other samples"
        return "samples that were held out" if self.config.data.held_out else "samples, all learned from"

    @property
    def config(self) -> Config:
        return self.trained.config

    @property
    def paper(self) -> Published:
        return published(self.config)

    @cached_property
    def own(self) -> Config:
        """The experiment on its own grid, without damage."""
        return self.larger(1)

    def larger(self, factor: int) -> Config:
        """The experiment on a grid `factor` times as high and as wide, without damage."""
        task = self.config.task
        return resized(self.config, factor * task.height if task.height > 1 else 1, factor * task.width)

    @property
    def draws_starts(self) -> bool:
        """True where one start differs from another."""
        return self.own.task.start in ("random", "boards")

    @property
    def fire_rate(self) -> float:
        """The share of cells that fire in a step, as the circuit was trained."""
        return self.config.train.fire_rate

    @property
    def asynchronous_rate(self) -> float:
        """The share of cells that fire in asynchronous rollouts: as trained, or the paper's."""
        return self.fire_rate if self.config.train.asynchronous else FIRE_RATE

    def keys(self, test: int) -> tuple[prng.Key, prng.Key]:
        """The key of a test's starts, and that of its masks and damage."""
        # Each test has a number of its own, so that a test that is added or left out changes the starts of no other.
        # Several draws of a test take the numbers that follow, 100 to 115, so that tests are hundreds apart.
        # Persistence has the number of accuracy: it watches the same rollouts for longer.
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
        """One rollout on the grid of `config`, beside its target; `test` numbers its random numbers."""
        start_key, play_key = self.keys(test)
        start = fresh_starts(config, samples, start_key) if start is None else start
        rate = self.fire_rate if fire_rate is None else fire_rate
        states = play(self.engine, self.trained.circuit, start, steps, play_key, rate, damage)
        # Only damage that is done at the very last step still lies there when the end is tested.
        damaged = damage.square(*start.shape[1:3]) if damage and steps in damage.steps else ()
        return watch(states, repeat(job.fixed_target(config.task)) if targets is None else targets, steps, damaged)

    def draws(self, steps: int, test: int, fire_rate: float | None = None) -> list[RolloutRecord]:
        """Rollouts on the run's own grid, of all fresh starts; where cells fire at random, under several masks."""
        rate = self.fire_rate if fire_rate is None else fire_rate
        # Where starts are drawn, a mask is one more source of chance and three will do. From a start that is always the
        # same, the masks are the only one.
        samples, several = (self.starts, MASK_DRAWS) if self.draws_starts else (1, FIXED_DRAWS)
        count = several if rate < 1 else 1
        return [self.watch(self.own, steps, test + draw, rate, samples=samples) for draw in range(count)]

    def soft_loss(self, test: int) -> float:
        """Mean over fresh starts of the sum of squared errors after T steps, of the circuit as it was trained."""
        task, train = self.own.task, self.config.train
        start_key, mask_key = self.keys(test)
        start = fresh_starts(self.own, self.starts if self.draws_starts else 1, start_key)
        masks: Floats | None = None
        if train.asynchronous:
            fires = prng.uniform(mask_key, (task.steps, task.height, task.width, 1)) <= np.float32(train.fire_rate)
            masks = fires.astype(np.float32)
        total, target = 0.0, job.fixed_target(task)
        # In batches of the size of training, which is known to fit into memory.
        for first in range(0, len(start), train.batch):
            part = start[first : first + train.batch]
            last = self.engine.rollout(self.trained.circuit, part, task.steps, "soft", masks)[-1]
            total += float(np.sum((last[..., : task.loss_channels].astype(np.float64) - target) ** 2))
        return total / len(start)
