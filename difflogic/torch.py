"""Circuits as differentiable layers in PyTorch. Requires the extra `torch`.

layer = difflogic.torch.CircuitModule(difflogic.Circuit.feed_forward([64, 256, 100], seed=0), hard=True)
scores = layer(bits).reshape(-1, 10, 10).sum(-1)
"""

from collections import OrderedDict
from typing import Any

from difflogic.devices.device import Device
from difflogic.engine.function import CircuitFunction
from difflogic.errors import MissingPackagesError
from difflogic.model.circuit import Circuit

try:
    import torch
except ImportError as error:
    raise MissingPackagesError.of("difflogic.torch", "torch", error.name) from error

GRIDS = 4
"""Maximum number of grid shapes with cached buffers: for training, evaluation, and their smaller last batches."""


class CircuitModule(torch.nn.Module):
    """Circuit as a layer whose only parameter is `logits`, `[P, 16]`.

    Args:
        circuit: Circuit with the wiring and the initial logits.
        steps: Number of CA steps, T; 1 for a feed-forward circuit.
        hard: True for hard gates in the forward pass and soft gates in the backward pass (straight-through). The
            attribute may be changed at any time.
        every_state: True to return the state after each step instead of only the last state.
        device: Device on which difflogic computes; tensors are copied to this device and back.

    Raises:
        DeviceError: The device is unusable.
    """

    def __init__(
        self,
        circuit: Circuit,
        steps: int = 1,
        hard: bool = False,
        every_state: bool = False,
        device: Device | str = "cpu",
    ) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor(circuit.flat_logits(), dtype=torch.float32))
        self.steps, self.hard, self.every_state = steps, hard, every_state
        self._circuit, self._engine = circuit, Device(str(device)).open()
        self._functions: OrderedDict[tuple[Any, ...], CircuitFunction] = OrderedDict()

    @property
    def circuit(self) -> Circuit:
        """Circuit with the current logits."""
        return self._circuit.with_logits(_array(self.logits))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the layer.

        Args:
            x: Input, `[*grid, C]`: `[B, H, W, C]` for an automaton, any shape of samples for a feed-forward circuit.

        Returns:
            The output, `[*grid, outputs]`, or `[T, *grid, C]` if `every_state`. Its dtype is that of `x`, or float32 if
            `x` has an integer type.

        Raises:
            DataError: `x` has the wrong shape, is not finite, or has values other than 0 and 1 in a hard layer.
            LimitError: The states do not fit into memory.
        """
        grid = tuple(x.shape[:-1])
        if 0 in grid and x.shape[-1] == self._circuit.channels:  # an empty batch, for which no engine has buffers
            states = (self.steps,) if self.every_state else ()
            nothing: torch.Tensor = 0 * (x.sum() + self.logits.sum())
            return nothing.to(_dtype(x)).expand(*states, *grid, self._circuit.outputs)
        y: torch.Tensor = _Apply.apply(x, self.logits, self._function(grid))
        return y

    def _function(self, grid: tuple[int, ...]) -> CircuitFunction:
        # Autograd may still reference a function that is removed from the cache here.
        key = (grid, self.hard)
        if key not in self._functions:
            self._functions[key] = self._engine.open_function(
                self._circuit, grid, self.steps, self.hard, self.every_state
            )
        self._functions.move_to_end(key)
        if len(self._functions) > GRIDS:
            self._functions.popitem(last=False)
        return self._functions[key]


class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, logits: torch.Tensor, function: CircuitFunction) -> torch.Tensor:
        ctx.save_for_backward(x, logits)
        function.update(_array(logits))
        y = function.forward(_array(x))
        ctx.function, ctx.number = function, function.current
        return torch.from_numpy(y).to(x.device, _dtype(x)).contiguous()

    @staticmethod
    def backward(ctx: Any, d_y: torch.Tensor) -> Any:
        # Second derivatives are unsupported, since the backward pass is not part of PyTorch's graph.
        return torch.autograd.function.once_differentiable(_pull_back)(ctx, d_y)


def _pull_back(ctx: Any, d_y: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, None]:
    x, logits = ctx.saved_tensors
    function: CircuitFunction = ctx.function
    if function.current != ctx.number:  # another forward pass has used the buffers since
        function.update(_array(logits))
        function.forward(_array(x))
    gradients, d_x = function.backward(_array(d_y))
    # Inputs of an integer type have no gradient.
    d_input = torch.from_numpy(d_x.copy()).to(x) if ctx.needs_input_grad[0] else None
    return d_input, torch.from_numpy(gradients).to(logits), None


def _dtype(x: torch.Tensor) -> torch.dtype:
    """Return the outputs' dtype: that of `x`, or float32 for integers, which would truncate soft values."""
    return x.dtype if x.is_floating_point() else torch.float32


def _array(tensor: torch.Tensor) -> Any:
    # The tensor is converted to float32 first, since NumPy does not support bfloat16.
    return tensor.detach().to("cpu", torch.float32).numpy()
