"""Properties of the source of the training batch that determine buffers and kernels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchSource:
    """Source of the initial states and targets of a training batch."""

    start: str = "random"
    """Kind of initial states, a value of `start` in TaskConfig."""
    ruled: bool = False
    """True if the targets are computed from the initial states by a rule."""
    pool: int = 0
    """Number of grids in the sample pool, or 0 without a pool."""
    resets: int = 0
    """Number of pool grids per batch that are replaced by new initial states, `reset` in PoolConfig."""
    stays: bool = False
    """True if final states are not written back into the pool."""
    samples: int = 0
    """Number of samples in the data set, or 0 without a data set."""
    given: int = 0
    """Number of channels whose initial values come from a sample of the data set."""
