"""Source of the training batch, as far as buffers and kernels depend on it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchSource:
    """Source of initial states and targets."""

    start: str = "random"
    """Kind of initial state, as in TaskConfig."""
    ruled: bool = False
    """True if a rule computes the targets."""
    pool: int = 0
    """Number of grids in the sample pool, 0 without one."""
    resets: int = 0
    """Number of grids that are replaced in each batch, PoolConfig's `reset`."""
    stays: bool = False
    """True if nothing is written back into the pool."""
    samples: int = 0
    """Number of samples of the data set, or 0 without one."""
    given: int = 0
    """Number of channels whose initial state comes from the data sample."""
