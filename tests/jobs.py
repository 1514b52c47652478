"""Training jobs of a few dozen gates: an epoch takes a millisecond or two."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from difflogic.config.model import ModelConfig, NetworkConfig
from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import TrainConfig
from difflogic.core import prng
from difflogic.engine.api import Engine, EpochMetrics, Evaluation, Model
from difflogic.engine.events import draw_masks
from difflogic.engine.job import Job, OptimizerState, TrainState
from difflogic.model.circuit import Circuit
from tests.experiments import checkerboard_target
from tests.random_circuits import bits
from tests.sections import sections

C = 2


def make_job(
    seed: int = 23,
    batch: int = 3,
    probes: int = 17,
    fire_rate: float = 1.0,
    loss_channels: int = 1,
    steps: int = 3,
    grid: tuple[int, int] = (5, 7),
    **fields: Any,
) -> Job:
    """Wiring, data and masks all follow from `seed`."""
    config = Config(
        name="tiny",
        model=ModelConfig(C, 2, random_network(9, 8, 2), random_network(10, 4, 12, 6, C)),
        task=TaskConfig("checkerboard", *grid, steps, loss_channels=loss_channels),
        train=TrainConfig(epochs=9, batch=batch, fire_rate=fire_rate),
        seed=seed,
    ).with_(initial={"logit": 2.0}, **sections(**fields))
    masks = draw_masks(prng.key_from_seed(seed + 77), steps, (*grid, 1), fire_rate)[1]
    return Job(
        config,
        Circuit.initial(config.model, seed, config.initial),
        np.repeat(checkerboard_target(*grid), loss_channels, axis=2),
        bits(np.random.default_rng(seed), probes, *grid, C).astype(np.uint8),
        masks if fire_rate < 1 else None,
    )


def random_network(*widths: int) -> NetworkConfig:
    return NetworkConfig(widths, ("random",) * (len(widths) - 1))


def start(job: Job, noise: float = 1.0) -> TrainState:
    state = TrainState.initial(job)
    moved = np.random.default_rng(job.config.seed).standard_normal(state.logits.shape).astype(np.float32)
    return replace(state, logits=state.logits + np.float32(noise) * moved)


def midway(job: Job) -> TrainState:
    """A state as a checkpoint may hold it, every number of it unlike a fresh one's."""
    rng = np.random.default_rng(1)
    state = start(job)
    mu, nu = (rng.random(state.logits.shape, dtype=np.float32) for _ in range(2))
    return replace(state, optimizer=OptimizerState(mu, nu, step=130), epoch=133, skipped=3)


Outcome = tuple[TrainState, Sequence[EpochMetrics], Evaluation]


def train(engine: Engine, job: Job, state: TrainState, *calls: int) -> Outcome:
    model = engine.open([job], [state])
    for epochs in calls:
        model.train(epochs)
    return outcomes(model)[0]


def outcomes(model: Model) -> list[Outcome]:
    """Return the outcome of each run of a model, and close the model."""
    results = list(zip(model.states(), model.fetch_metrics(), model.evaluate(), strict=True))
    model.close()
    return results


def assert_same_state(one: TrainState, two: TrainState) -> None:
    assert _arrays(one).keys() == _arrays(two).keys()
    for name, array in _arrays(one).items():
        other = _arrays(two)[name]
        assert (array.dtype, array.tobytes()) == (other.dtype, other.tobytes()), name


def assert_same(one: Outcome, two: Outcome) -> None:
    """State, metrics and evaluation, bit for bit."""
    assert_same_state(one[0], two[0])
    assert list(one[1]) == list(two[1])
    assert one[2] == two[2]


def _arrays(state: TrainState) -> dict[str, np.ndarray]:
    return {
        "logits": state.logits,
        "mu": state.optimizer.mu,
        "nu": state.optimizer.nu,
        "data_key": state.data_key,
        "train_key": state.train_key,
        "counters": np.array([state.optimizer.step, state.epoch, state.skipped]),
        **({} if state.pool is None else {"pool": state.pool}),
    }
