"""Distributions from which actions are sampled."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.policies.environments import Floats, Spaces
from difflogic.tensor import Tensor

TINY = 1e-20
"""Number added to a probability before taking its logarithm, since 0 * log(0) would be NaN in the entropy."""


def from_unit(spaces: Spaces, actions: Floats) -> Floats:
    """Scale continuous actions, float32 `[..., A]`, from [-1, 1] to the environment's bounds."""
    low, high = spaces.bounds
    return np.asarray(low + (actions + 1) / 2 * (high - low), dtype=np.float32)


class Categorical:
    """Categorical distribution of A discrete actions, given by the softmax of preferences `[N, A]`."""

    def __init__(self, spaces: Spaces) -> None:
        self._choices = np.eye(spaces.actions, dtype=np.float32)

    def parameters(self) -> list[Tensor]:
        return []

    def sample(self, preferences: Floats, generator: np.random.Generator) -> tuple[npt.NDArray[Any], Floats]:
        """Return sampled actions, int64 `[N]`, and the logarithms of their probabilities, float32 `[N]`."""
        shifted = np.exp(preferences - preferences.max(axis=1, keepdims=True))
        probabilities = shifted / shifted.sum(axis=1, keepdims=True)
        # Take the first action with a cumulative probability above a uniform number. The sum of float32 probabilities
        # is often 0.9999999; for a number above it, argmax would return action 0, whose probability may be 0.
        passed = probabilities.cumsum(axis=1) > generator.random((len(preferences), 1))
        actions = np.where(passed.any(axis=1), passed.argmax(axis=1), preferences.argmax(axis=1))
        return actions, np.log(probabilities[np.arange(len(actions)), actions] + np.float32(TINY))

    def best(self, preferences: Floats) -> npt.NDArray[Any]:
        """Return the most probable action of each row; in ties, the first action."""
        return np.asarray(preferences.argmax(axis=1))

    def coded(self, actions: npt.NDArray[Any]) -> Floats:
        """Return actions as one-hot rows, float32 `[N, A]`, as expected by `log_probs`."""
        # Tensors have no differentiable indexing, but a differentiable product.
        return np.asarray(self._choices[actions])

    def log_probs(self, preferences: Tensor, taken: Tensor) -> Tensor:
        """Return the log probabilities `[N]` of the actions `taken`, one-hot rows as returned by `coded`."""
        return ((preferences.softmax(1) * taken).sum(1) + TINY).log()

    def entropy(self, preferences: Tensor) -> Tensor:
        """Return the mean entropy over all rows as a scalar tensor."""
        probabilities = preferences.softmax(1)
        return -(probabilities * (probabilities + TINY).log()).sum(1).mean()

    def given(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the actions unchanged, in the form that the environment expects."""
        return actions


class Gaussian:
    """Normal distribution of continuous actions scaled to [-1, 1], with a learned standard deviation per dimension."""

    def __init__(self, spaces: Spaces, device: Device) -> None:
        self._spaces = spaces
        self._log_spread = Tensor(np.full(spaces.actions, -0.5), device, requires_grad=True)

    def parameters(self) -> list[Tensor]:
        return [self._log_spread]

    def sample(self, preferences: Floats, generator: np.random.Generator) -> tuple[npt.NDArray[Any], Floats]:
        """Return sampled, unclipped actions, float32 `[N, A]`, and the logarithms of their densities, float32 `[N]`."""
        # Only the environment receives clipped actions, from `given`. Learning uses the sampled actions, to which the
        # densities belong: with clipped actions the ratio of PPO would not begin at 1.
        logarithm = self._log_spread.numpy()
        noise = generator.standard_normal(preferences.shape, dtype=np.float32)
        density = -(0.5 * noise**2 + logarithm + 0.5 * math.log(2 * math.pi)).sum(axis=1)
        return preferences + noise * np.exp(logarithm), density.astype(np.float32)

    def best(self, preferences: Floats) -> npt.NDArray[Any]:
        return preferences

    def coded(self, actions: npt.NDArray[Any]) -> Floats:
        return actions

    def log_probs(self, preferences: Tensor, taken: Tensor) -> Tensor:
        """Return the log densities `[N]` of the actions `taken` `[N, A]`, given the means `preferences` `[N, A]`."""
        noise = (taken - preferences) / self._log_spread.exp()
        return -(0.5 * noise**2.0 + self._log_spread + 0.5 * math.log(2 * math.pi)).sum(1)

    def entropy(self, _: Tensor) -> Tensor:
        """Return the entropy as a scalar tensor; it does not depend on the means."""
        return (self._log_spread + 0.5 * (math.log(2 * math.pi) + 1)).sum()

    def given(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the actions clipped to [-1, 1] and scaled to the environment's bounds."""
        return from_unit(self._spaces, np.clip(actions, -1, 1))


Distribution = Categorical | Gaussian


def distribution(spaces: Spaces, device: Device) -> Distribution:
    """Return the distribution of actions in `spaces`: normal if they are continuous, otherwise categorical."""
    return Gaussian(spaces, device) if spaces.continuous else Categorical(spaces)
