"""Configuration for training a run until its gates converge, or for searching its circuit."""

from difflogic.config.schema import Config
from difflogic.config.train import HARDENING_EPOCHS, GrowthConfig, PoolConfig

SHARE_OF_EPOCHS, LR, GROWS_FOR = 0.25, 0.5, 0.8
"""Number of epochs and learning rate as shares of the run's, and share of these epochs until all gates are hardened."""


def hardening(config: Config, search: bool = False, epochs: int | None = None, interval: int | None = None) -> Config:
    """Return the configuration to harden (`search`: to search) a run's circuit, evaluated every `interval` epochs."""
    epochs = max(1, round(SHARE_OF_EPOCHS * config.train.epochs)) if epochs is None else epochs
    interval = min(10, config.train.eval_interval) if interval is None else interval
    # A run of 1000 epochs gets 250 more: the share of hard gates reaches 1 after 200, and stays for the last 50.
    to = min(HARDENING_EPOCHS - 1, max(1, round(GROWS_FOR * epochs)))
    return config.with_(
        train={"epochs": epochs, "eval_interval": interval},
        optimizer={"lr": 0.0 if search else LR * config.optimizer.lr},
        schedule={"share": 1.0},
        hardening={"share": 0.0} if search else {"share": 1.0, "begin": 0, "end": to},
        growth=GrowthConfig(),
        search={"begin": 1 if search else 0},  # after one epoch that changes nothing
        # The file with the initial states of such a pool is not available here.
        pool=PoolConfig() if config.pool.starts else config.pool,
    )
