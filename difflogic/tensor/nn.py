"""Layers: parameters, and what is computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.tensor.tensor import Tensor

Activation = Literal["tanh", "relu", "sigmoid", "linear"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": Tensor.tanh,
    "relu": Tensor.relu,
    "sigmoid": Tensor.sigmoid,
    "linear": lambda x: x,
}


class Dense:
    """A linear layer, `[B, nin]` to `[B, nout]`, and what its sums pass through.

    Weights begin uniformly within `sqrt(6 / (nin + nout))` (Glorot & Bengio 2010), drawn from `seed`, biases at 0.
    """

    def __init__(
        self,
        nin: int,
        nout: int,
        activation: Activation = "linear",
        *,
        seed: int | np.random.Generator = 0,
        device: Device | str = "cpu",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        bound = np.sqrt(6 / (nin + nout))
        weights = np.random.default_rng(seed).uniform(-bound, bound, (nin, nout))
        self.weights = Tensor(weights, device, requires_grad=True, dtype=dtype)
        self.biases = Tensor(np.zeros(nout), device, requires_grad=True, dtype=dtype)
        self.activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        return _ACTIVATIONS[self.activation](x @ self.weights + self.biases)

    def parameters(self) -> list[Tensor]:
        return [self.weights, self.biases]


class MLP:
    """Dense layers one behind the other, with an activation after each but the last.

    >>> MLP(4, [64, 64, 1])(Tensor([[0.1, 0.2, 0.3, 0.4]])).shape
    (1, 1)
    """

    def __init__(
        self,
        nin: int,
        nouts: Sequence[int],
        activation: Activation = "tanh",
        *,
        seed: int | np.random.Generator = 0,
        device: Device | str = "cpu",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        rng = np.random.default_rng(seed)
        sizes, last = [nin, *nouts], len(nouts) - 1
        self.layers = [
            Dense(sizes[k], sizes[k + 1], "linear" if k == last else activation, seed=rng, device=device, dtype=dtype)
            for k in range(len(nouts))
        ]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self) -> list[Tensor]:
        return [each for layer in self.layers for each in layer.parameters()]


class GroupSum:
    """Sums of equal groups, `[B, groups * k]` to `[B, groups]`, divided by `tau`: how bits vote for an action."""

    def __init__(self, groups: int, tau: float = 1.0) -> None:
        self.groups, self.tau = groups, tau

    def __call__(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], self.groups, -1).sum(2) / self.tau

    def parameters(self) -> list[Tensor]:
        return []
