"""Effect of a sample pool, several losses and damage, on circuits of a few hundred gates."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import HardeningConfig, InitialConfig, OptimizerConfig, PoolConfig, TrainConfig
from difflogic.core import wiring
from difflogic.devices.open import open_engine
from difflogic.engine.events import Damage
from difflogic.train.replica import Replica
from difflogic.train.trainer import Trainer

PLUS = (".....", "..1..", ".111.", "..1..", ".....")
SEEDS = 8
LATER = 60
"""Steps, many times what was trained."""


def config(steps: int, batch: int, pool: int = 0, **task: Any) -> Config:
    """Return a 5x5 image that grows from the border of an empty grid."""
    perceive = NetworkConfig((wiring.PATCH, 8, 4, 2), ("first_kernel", "unique", "unique"))
    update = NetworkConfig((72, 64, 64, 32, 16, 8), ("unique",) * 5)
    return Config(
        name="plus",
        model=ModelConfig(8, 4, perceive, update, wiring_per_kernel=True),
        task=TaskConfig("picture", 5, 5, steps, start="zeros", picture=PLUS, **task),
        train=TrainConfig(400, batch, eval_interval=400),
        optimizer=OptimizerConfig(lr=0.06),
        initial=InitialConfig(logit=6.0),
        hardening=HardeningConfig(share=0.8, begin=50, end=266),
        pool=PoolConfig(size=pool),
        seed=0,
    )


def solved(config: Config) -> Iterator[Replica]:
    """Return the solved circuits of some seeds, since not all wirings learn it."""
    run = Trainer(config, open_engine("cpu")).run(population=SEEDS)
    return (member for member in run.members if member.solved)


def wrong(member: Replica, damage: Damage | None = None, samples: int = 1) -> list[int]:
    start = np.zeros((samples, 5, 5, 8), dtype=np.float32)
    states = open_engine("cpu").rollout(member.circuit, start, LATER, "hard", damage=damage)
    counts: list[int] = (states[..., 0] != member.job.fixed_target[..., 0]).sum(axis=(1, 2, 3)).tolist()
    return counts


def test_image_of_one_loss_need_not_stay() -> None:
    members = [wrong(member) for member in solved(config(steps=6, batch=1))]
    assert members
    assert all(counts[6] == 0 for counts in members)
    assert any(min(counts[30:]) > 0 for counts in members)


@pytest.mark.exhaustive
def test_pool_makes_an_image_stay() -> None:
    assert any(max(wrong(member)[30:]) == 0 for member in solved(config(steps=6, batch=4, pool=16)))


def test_several_losses_make_an_image_stay() -> None:
    assert any(max(wrong(member)[10:]) == 0 for member in solved(config(10, batch=1, loss_steps=(6, 8, 10))))


@pytest.mark.exhaustive
def test_damage_makes_an_image_heal() -> None:
    rng = np.random.default_rng(0)
    damage = Damage(2, (30,), rng.integers(0, 5, (1, 16, 2)))
    healed = [wrong(member, damage, samples=16) for member in solved(config(12, 4, damage_side=2, damage_steps=(6,)))]
    assert any(counts[30] > 0 and max(counts[45:]) == 0 for counts in healed)
