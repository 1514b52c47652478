"""Circuits as layers of PyTorch. Needs the extra `torch`.

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
"""Grids whose buffers a layer keeps: those of training and of evaluation, and the rest of either."""


class CircuitModule(torch.nn.Module):
    """A circuit as a layer: `y = layer(x)`, `x` `[*grid, C]`, `y` `[*grid, outputs]`; see `CircuitFunction`.

    Its one parameter is `logits`, `[G, 16]`. `y` has the dtype of `x`, or float32 where that is of whole numbers.
    `hard`, which may be set at any time, computes by the hard gates, with the gradients of the soft ones. `device` is
    where difflogic computes, whatever device torch's tensors are on: they are copied there and back. Raises as
    `Engine.open_function` does.
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
        """The circuit with its present logits."""
        return self._circuit.with_logits(_array(self.logits))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`y`; see CircuitFunction.forward for what is refused."""
        grid = tuple(x.shape[:-1])
        if 0 in grid and x.shape[-1] == self._circuit.channels:  # a batch of none, for which no engine has buffers
            states = (self.steps,) if self.every_state else ()
            nothing: torch.Tensor = 0 * (x.sum() + self.logits.sum())
            return nothing.to(_dtype(x)).expand(*states, *grid, self._circuit.outputs)
        y: torch.Tensor = _Apply.apply(x, self.logits, self._function(grid))
        return y

    def _function(self, grid: tuple[int, ...]) -> CircuitFunction:
        # Autograd may still hold what is dropped here, and frees it when it is done.
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
        return torch.from_numpy(y).to(x.device, _dtype(x))

    @staticmethod
    def backward(ctx: Any, d_y: torch.Tensor) -> Any:
        # Gradients of gradients are refused: what is computed here is no part of torch's graph.
        return torch.autograd.function.once_differentiable(_pull_back)(ctx, d_y)


def _pull_back(ctx: Any, d_y: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, None]:
    x, logits = ctx.saved_tensors
    function: CircuitFunction = ctx.function
    if function.current != ctx.number:  # another pass has used its buffers since
        function.update(_array(logits))
        function.forward(_array(x))
    gradients, d_x = function.backward(_array(d_y))
    # Bits that came as whole numbers have no gradient.
    d_given = torch.from_numpy(d_x.copy()).to(x) if ctx.needs_input_grad[0] else None
    return d_given, torch.from_numpy(gradients).to(logits), None


def _dtype(x: torch.Tensor) -> torch.dtype:
    """The dtype of what is computed from `x`: shares would be cut off to whole numbers."""
    return x.dtype if x.is_floating_point() else torch.float32


def _array(tensor: torch.Tensor) -> Any:
    # Float32 before NumPy sees it, which does not know bfloat16.
    return tensor.detach().to("cpu", torch.float32).numpy()
