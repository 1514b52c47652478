"""Buffers with experience for learning: a rollout buffer for PPO and a replay buffer for SAC."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.errors import LimitError
from difflogic.policies.environments import Arrays, Flags, Floats
from difflogic.system import memory
from difflogic.tensor import Tensor, gathered

FIRST_ROWS = 1 << 12
"""Initial number of rows allocated by a replay buffer."""
Read = Callable[[Floats], Floats]
"""Function of observations `[N, D]`: a scaling, which returns `[N, D]`, or a critic, which returns values `[N]`."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rollout for PPO; the first axis, of length N, contains all steps of all environment copies."""

    features: Floats
    """Encoded observations, the inputs of the actor."""
    scaled: Floats
    """Scaled observations, the inputs of the critic."""
    actions: npt.NDArray[Any]
    log_probs: Floats
    """Logarithms of the actions' probabilities at the time of sampling."""
    values: Floats
    """Values of the observations, estimated by the critic before the update."""
    advantages: Floats
    returns: Floats
    goes_on: Flags
    """Mask of steps after which the episode continued, bool `[steps, copies]`."""


class RolloutBuffer:
    """Buffer for a rollout of `steps` steps in `count` environment copies."""

    def __init__(self, steps: int, count: int, gamma: float, gae_lambda: float) -> None:
        self.gamma, self.gae_lambda = gamma, gae_lambda
        self._steps = steps
        self._rows: list[tuple[Floats, Floats, npt.NDArray[Any], Floats]] = []
        self._rewards = np.zeros((steps, count), dtype=np.float32)
        self._ends = np.zeros((steps, count), dtype=bool)

    def add(
        self, observations: Floats, features: Floats, actions: npt.NDArray[Any], log_probs: Floats, rewards: Floats,
        ends: Flags,
    ) -> None:  # fmt: skip
        """Add a step of all copies; `ends` marks ended episodes, `rewards` include bootstrap values at truncations."""
        row = len(self._rows)
        self._rows.append((observations, features, actions, log_probs))
        self._rewards[row], self._ends[row] = rewards, ends

    def samples(self, after: Floats, scale: Read, critic: Read) -> Samples:
        """Return all steps with advantages; `after` `[count, D]` are the last observations, `critic(scale(x))` values.

        Source: Schulman et al., *High-dimensional continuous control using generalized advantage estimation* (2016).
        """
        columns = zip(*self._rows, strict=True)
        observations, features, actions, log_probs = (np.concatenate(column) for column in columns)
        # Values are not needed earlier, so one call of the critic computes all of them.
        scaled = scale(np.concatenate([observations, after]))
        values = critic(scaled).reshape(self._steps + 1, -1)
        # delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma lambda A_{t+1}; the terms of t + 1 are 0 at the
        # end of an episode. Take gamma = lambda = 0.5, rewards 1, values 2, and an episode that ends at t = 1 of 0, 1,
        # 2. Computed from the last step:
        #     t = 2: delta = 1 + 0.5 * 2 - 2 = 0     A = 0
        #     t = 1: delta = 1 - 2 = -1              A = -1       nothing follows the end
        #     t = 0: delta = 1 + 0.5 * 2 - 2 = 0     A = 0 + 0.25 * -1 = -0.25
        advantages = np.zeros_like(values[:-1])
        following = np.zeros_like(values[0])
        for t in reversed(range(self._steps)):
            goes_on = self.gamma * (~self._ends[t]).astype(np.float32)
            delta = self._rewards[t] + goes_on * values[t + 1] - values[t]
            following = delta + self.gae_lambda * goes_on * following
            advantages[t] = following
        before, gained, scaled = values[:-1].reshape(-1), advantages.reshape(-1), scaled[: len(features)]
        return Samples(features, scaled, actions, log_probs, before, gained, gained + before, ~self._ends)


def minibatches(count: int, size: int, generator: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Yield batches of `size` indices, 0 to `count` - 1 in random order, dropping an incomplete last batch.

    All batches have the same shape, so that buffers on the device are allocated only once.
    """
    if size >= count:  # the order of a single batch matters only for rounding errors
        yield np.arange(count)
        return
    order = generator.permutation(count)
    for begin in range(0, count - size + 1, size):
        yield order[begin : begin + size]


class ReplayBuffer:
    """Replay buffer with the last `size` transitions of all environment copies, one ring buffer per column."""

    def __init__(self, size: int, like: Arrays, device: Device) -> None:
        """Allocate a column per array in `like`, with its name and row shape. Raises LimitError if memory is short."""
        self.size, self._next, self.filled = size, 0, 0
        bytes_each, free = 4 * sum(array[0].size for array in like.values()), memory.free_memory()
        if free is not None and size * bytes_each > free:
            raise LimitError(
                f"A replay buffer of {size} transitions takes {size * bytes_each / 1e9:.1f} GB, but only "
                f"{free / 1e9:.1f} GB are free: use --set sac.buffer_size={int(0.8 * free) // bytes_each}."
            )
        # Begin with few rows and double them when they are full, so that an empty large buffer takes little memory.
        rows = min(size, FIRST_ROWS)
        self._columns = {name: Tensor(np.zeros((rows, *array.shape[1:])), device) for name, array in like.items()}

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Add one transition of every environment copy; each column is an array `[count, ...]`."""
        count = len(columns["rewards"])
        # Example: three steps of two copies write transitions 0 to 5 to a ring of 5 rows. It then contains [5 1 2 3 4],
        # and the next transition is written to row 1. Rows are filled from 0 on, so that the first `filled` rows are
        # always those in use, and the ring grows only until its end is first reached.
        self._reserve(min(self.size, self._next + count))
        before = min(count, self.size - self._next)  # all other rows are written to the ring's beginning
        for name, ring in self._columns.items():
            rows = columns[name].reshape(count, *ring.shape[1:])
            ring.assign_rows(self._next, rows[:before])
            if before < count:
                ring.assign_rows(0, rows[before:])
        self._next = (self._next + count) % self.size
        self.filled = min(self.size, self.filled + count)

    def _reserve(self, rows: int) -> None:
        for name, ring in self._columns.items():
            if rows > (there := ring.shape[0]):
                more = np.zeros((min(self.size, max(rows, 2 * there)), *ring.shape[1:]), np.float32)
                more[:there] = ring.numpy()
                self._columns[name] = Tensor(more, ring.device)

    def sample(self, count: int, generator: np.random.Generator) -> dict[str, Tensor]:
        """Sample `count` transitions with replacement; return a tensor `[count, ...]` per column."""
        places = generator.integers(0, self.filled, count)
        return dict(zip(self._columns, gathered([*self._columns.values()], places), strict=True))

    def state(self, names: Sequence[str]) -> Arrays:
        """Return the columns `names`, and the row index for the next transition as `next`."""
        columns = {name: self._columns[name].numpy()[: self.filled] for name in names}
        return columns | {"next": np.array(self._next, dtype=np.int64)}

    def restore(self, place: int, columns: Arrays) -> None:
        """Restore all columns, given in `columns`; `place` is the row index for the next transition."""
        self.filled, self._next = len(columns["rewards"]), place
        self._reserve(self.filled)
        for name, ring in self._columns.items():
            ring.assign_rows(0, columns[name])
