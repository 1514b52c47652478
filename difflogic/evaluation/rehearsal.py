"""What every test of an evaluation works with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from difflogic import prng
from difflogic.config import Config
from difflogic.engine import Engine, Floats
from difflogic.train.evaluation import worlds
from difflogic.train.evaluation.measure import Record, watch
from difflogic.train.evaluation.paper import Published, published
from difflogic.train.evaluation.rollout import Bits, DamagePlan, play
from difflogic.train.evaluation.subject import Subject

MASK_DRAWS = 3
"""Asynchronous rollouts from drawn starts are judged under so many draws of the fire masks, all starts in each."""
FIXED_DRAWS = 16
"""And from a start that is always the same under so many."""
FIRE_RATE = 0.6
"""The paper's, of asynchronous rollouts of a circuit that was trained synchronously."""


@dataclass(frozen=True, eq=False)
class Lab:
    """A trained circuit, an engine, and how thorough to be."""

    engine: Engine
    subject: Subject
    starts: int
    """Fresh starts that accuracy is measured on."""
    quick: bool

    @property
    def config(self) -> Config:
        return self.subject.config

    @property
    def paper(self) -> Published:
        return published(self.config.name)

    @cached_property
    def own(self) -> Config:
        """The experiment on its own grid, without damage."""
        return self.larger(1)

    def larger(self, factor: int) -> Config:
        """The experiment on a grid `factor` times as high and as wide, without damage."""
        task = self.config.task
        return worlds.resized(self.config, factor * task.height, factor * task.width)

    @property
    def fixed_target(self) -> bool:
        """True where every start should become the same."""
        return self.config.task.target != "rule"

    @property
    def draws_starts(self) -> bool:
        """True where one start differs from another."""
        return self.own.task.start in ("random", "boards")

    @property
    def fire_rate(self) -> float:
        """As trained."""
        return self.config.train.fire_rate

    @property
    def asynchronous_rate(self) -> float:
        """As trained, or the paper's."""
        return self.fire_rate if self.config.train.asynchronous else FIRE_RATE

    def keys(self, test: int) -> tuple[prng.Key, prng.Key]:
        """Of one test the key of its starts, and that of its masks and damage."""
        start, play_ = prng.split(prng.fold_in(worlds.fresh_key(self.config), test))
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
    ) -> Record:
        """One rollout on the grid of `config`, beside its target; `test` numbers its random numbers."""
        start_key, play_key = self.keys(test)
        start = worlds.fresh(config, samples, start_key) if start is None else start
        rate = self.fire_rate if fire_rate is None else fire_rate
        states = play(self.engine, self.subject.circuit, start, steps, play_key, rate, damage)
        damaged = damage.square(*start.shape[1:3]) if damage and steps in damage.steps else ()
        return watch(states, repeat(worlds.target(config.task)) if targets is None else targets, steps, damaged)

    def draws(self, steps: int, test: int, fire_rate: float | None = None) -> list[Record]:
        """Rollouts on the run's own grid, of all fresh starts; where cells fire at random, under several masks."""
        rate = self.fire_rate if fire_rate is None else fire_rate
        samples, several = (self.starts, MASK_DRAWS) if self.draws_starts else (1, FIXED_DRAWS)
        count = several if rate < 1 else 1
        return [self.watch(self.own, steps, test + draw, rate, samples=samples) for draw in range(count)]

    def soft_loss(self, test: int) -> float:
        """Mean over fresh starts of the sum of squared errors after T steps, of the circuit as it was trained."""
        task, train = self.own.task, self.config.train
        start_key, mask_key = self.keys(test)
        start = worlds.fresh(self.own, self.starts if self.draws_starts else 1, start_key)
        masks: Floats | None = None
        if train.asynchronous:
            fires = prng.uniform(mask_key, (task.steps, task.height, task.width, 1)) <= np.float32(train.fire_rate)
            masks = fires.astype(np.float32)
        total, target = 0.0, worlds.target(task)
        for first in range(0, len(start), train.batch):
            part = start[first : first + train.batch]
            last = self.engine.rollout(self.subject.circuit, part, task.steps, "soft", masks)[-1]
            total += float(np.sum((last[..., : task.loss_channels].astype(np.float64) - target) ** 2))
        return total / len(start)
