"""Optimisers that update tensors by their gradients."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from difflogic.devices.device import same_device
from difflogic.errors import UsageError
from difflogic.tensor.kernels.adam import AdamSettings
from difflogic.tensor.tensor import Tensor


class Adam:
    """Adam optimiser for parameters on one device.

    Args:
        parameters: Tensors with `requires_grad`.
        lr: Learning rate; can be changed between steps by setting the attribute `lr`.
        beta1, beta2, epsilon: Hyperparameters as in Kingma & Ba 2015.
        max_norm: Global norm to which gradients with a larger norm are clipped; None for no clipping.

    Raises:
        UsageError: `parameters` is empty.
        DeviceMismatchError: The parameters are not all on one device.

        >>> x = Tensor([3.0], requires_grad=True)
        >>> adam = Adam([x], lr=0.5)
        >>> (x * x).sum().backward()
        >>> adam.step()
        >>> x.item()
        2.5
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        lr: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        max_norm: float | None = None,
    ) -> None:
        if not parameters:
            raise UsageError("Adam requires at least one parameter, got none.")
        self.parameters = list(parameters)
        same_device("Adam", **{f"parameters[{k}]": parameter.device for k, parameter in enumerate(parameters)})
        self._hyper = AdamSettings(beta1, beta2, epsilon, math.inf if max_norm is None else max_norm)
        first = self.parameters[0]
        self._rate = Tensor(lr, first.device, dtype=first.dtype)
        self._count = Tensor(0, first.device, dtype=first.dtype)
        self._mu, self._nu = (
            [Tensor(np.zeros(x.shape), x.device, dtype=x.dtype) for x in self.parameters] for _ in range(2)
        )
        self.lr = lr

    @property
    def lr(self) -> float:
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self._lr = lr
        self._rate.assign(lr)

    @property
    def state(self) -> list[Tensor]:
        """Step count and moments as tensors, which can be saved, and restored by `assign`."""
        return [self._count, *self._mu, *self._nu]

    def step(self) -> None:
        """Update all parameters that have gradients, then reset the gradients to None."""
        arrays = self.parameters[0]._arrays
        updates = [(k, x, x.grad.data) for k, x in enumerate(self.parameters) if x.grad is not None]
        if not updates:
            return
        self._count.assign(self._count + 1)
        # Without a maximum norm the kernel needs an array here too, but does not use it.
        square = self._count.data
        if self._hyper.max_norm < math.inf:
            squares = [arrays.reduce("squares", tuple(range(g.ndim)), g) for _, _, g in updates]
            square = functools.reduce(functools.partial(arrays.binary, "add"), squares)
        for k, parameter, gradient in updates:
            moments = self._mu[k].data, self._nu[k].data
            arrays.adam(self._hyper, self._rate.data, self._count.data, square, gradient, parameter.data, *moments)
        self.zero_grad()

    def zero_grad(self) -> None:
        """Reset the gradients of all parameters to None, for example after `backward` of another loss."""
        for parameter in self.parameters:
            parameter.grad = None
