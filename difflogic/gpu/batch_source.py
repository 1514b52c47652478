"""A batch source says where a training batch comes from, as far as buffers and kernels depend on it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchSource:
    """The source of start grids and targets."""

    start: str = "random"
    """As in TaskConfig."""
    ruled: bool = False
    """Whether a rule makes the targets."""
    pool: int = 0
    """Grids of the sample pool; 0 where there is none."""
    resets: int = 0
    """As PoolConfig's `reset`."""
    stays: bool = False
    """Whether nothing is written back into the pool."""
    samples: int = 0
    """Samples of a task in data; 0 where it is none."""
    given: int = 0
    """Channels that begin with theirs."""
