"""The optimiser."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from difflogic.devices.device import same_device
from difflogic.errors import UsageError
from difflogic.tensor.kernels.adam import AdamSettings
from difflogic.tensor.tensor import Tensor


class Adam:
    """Adam on parameters of one device.

    Args:
        parameters: tensors with `requires_grad`.
        lr: the learning rate; it may be set again between steps.
        beta1, beta2, epsilon: as Kingma & Ba 2015 name them.
        max_norm: where the gradients of all parameters together are longer, they are shortened to it.

    Raises:
        DeviceMismatchError: where the parameters are on two devices.

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
            raise UsageError("Adam needs at least one parameter.")
        self.parameters = list(parameters)
        same_device("Adam", **{f"parameters[{k}]": each.device for k, each in enumerate(parameters)})
        self._hyper = AdamSettings(beta1, beta2, epsilon, math.inf if max_norm is None else max_norm)
        first = self.parameters[0]
        self._rate = Tensor(lr, first.device, dtype=first.dtype)
        self._count = Tensor(0, first.device, dtype=first.dtype)
        self._mu = [_zeros(each) for each in self.parameters]
        self._nu = [_zeros(each) for each in self.parameters]
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
        """All that a step depends on besides parameters and gradients, to be saved, and by `assign` restored."""
        return [self._count, *self._mu, *self._nu]

    def step(self) -> None:
        """Change the parameters by their gradients, and forget these. A parameter without one stays as it is."""
        arrays = self.parameters[0]._arrays
        moved = [(k, each, each.grad.data) for k, each in enumerate(self.parameters) if each.grad is not None]
        if not moved:
            return
        self._count.assign(self._count + 1)
        # The kernel takes an array here even where nothing bounds the norm: then any does, for it is not looked at.
        square = self._count.data
        if self._hyper.max_norm < math.inf:
            squares = [arrays.reduce("squares", tuple(range(g.ndim)), g) for _, _, g in moved]
            square = functools.reduce(functools.partial(arrays.binary, "add"), squares)
        for k, parameter, gradient in moved:
            moments = self._mu[k].data, self._nu[k].data
            arrays.adam(self._hyper, self._rate.data, self._count.data, square, gradient, parameter.data, *moments)
        self.zero_grad()

    def zero_grad(self) -> None:
        """Forget the gradients: those that another loss left here."""
        for each in self.parameters:
            each.grad = None


def _zeros(like: Tensor) -> Tensor:
    return Tensor(np.zeros(like.shape), like.device, dtype=like.dtype)
