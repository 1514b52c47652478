"""The configuration by which a run is gone on with, so that its undecided gates are decided or its circuit searched."""

from __future__ import annotations

from difflogic.config.schema import Config
from difflogic.config.train import HARDENING_EPOCHS, GrowthConfig, PoolConfig

SHARE_OF_EPOCHS = 0.25
"""The share of a run's epochs that settling it takes, unless it is said otherwise."""
GROWS_FOR = 0.8
"""Share of these epochs in which hardening grows to all gates."""
LR = 0.5
"""The share of the run's learning rate."""


def hardening(config: Config, search: bool = False, epochs: int | None = None, interval: int | None = None) -> Config:
    """A run's configuration with the schedule by which its gates are decided, or its hard circuit searched.

    It takes `epochs`, by default a share of the run's, with an evaluation every `interval` of them.
    """
    if epochs is None:
        epochs = max(1, round(SHARE_OF_EPOCHS * config.train.epochs))
    if interval is None:
        interval = min(10, config.train.eval_interval)
    # An example: a run of 1000 epochs gets 250 more. Hardening grows to all gates over the first 200 of them, and in
    # the last 50 the circuit is trained as it will be used.
    to = min(HARDENING_EPOCHS - 1, max(1, round(GROWS_FOR * epochs)))
    return config.with_(
        train={"epochs": epochs, "eval_interval": interval},
        optimizer={"lr": 0.0 if search else LR * config.optimizer.lr},
        schedule={"share": 1.0},
        hardening={"share": 0.0} if search else {"share": 1.0, "begin": 0, "end": to},
        growth=GrowthConfig(),
        search={"begin": 1 if search else 0},  # after one epoch that changes nothing
        # Starts that were kept are not at hand any more.
        pool=PoolConfig() if config.pool.starts else config.pool,
    )
