"""The model in PyTorch, with cells as the last axis and gradients by autograd."""

import numpy as np
import torch

from difflogic.autodiff import TABLE
from difflogic.engine.batch import Batch
from difflogic.model.circuit import ArraysByNetwork, Circuit

Tensors = list[torch.Tensor]


def coefficients(logits: torch.Tensor, hard: bool) -> torch.Tensor:
    """Return the gates' coefficients `[..., out, 4, 1]` for `logits [..., out, 16]`; if `hard`, of the argmax gates."""
    weights = torch.nn.functional.one_hot(logits.argmax(-1), 16).float() if hard else logits.softmax(-1)
    return (weights @ torch.tensor(TABLE, device=logits.device)).unsqueeze(-1)


def gates(coef: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Compute gates `[..., out, cells]` from coefficients `[..., out, 4, 1]` and both inputs `[..., out, cells]`."""
    return coef[..., 0, :] + coef[..., 1, :] * a + (coef[..., 2, :] + coef[..., 3, :] * a) * b


class Rollout:
    """Rollout of a circuit on a device; `torch.compile` compiles the CA step if `compile_step`."""

    def __init__(self, circuit: Circuit, steps: int, device: str, compile_step: bool) -> None:
        self._circuit, self._steps, self._count = circuit, steps, len(circuit.perceive)
        self._perceive = [torch.tensor(pairs, device=device) for pairs in circuit.perceive_wires]
        self._update = [torch.tensor(pairs, device=device) for pairs in circuit.update_wires]
        self._step = torch.compile(self._eager_step) if compile_step else self._eager_step

    def _eager_step(self, coef: Tensors, state: torch.Tensor) -> torch.Tensor:
        """Return the next state of a state `[C, B, H, W]`."""
        patch = self._patches(state)
        kernels = self._circuit.kernels
        # Channels and cells are one axis, since a perception kernel is the same for all of them.
        values = patch.reshape(1, 9, -1).expand(kernels, -1, -1)
        for layer, pairs in zip(coef[: self._count], self._perceive, strict=True):
            index = pairs.unsqueeze(-1).expand(-1, -1, -1, values.shape[-1])
            values = gates(layer, values.gather(1, index[:, 0]), values.gather(1, index[:, 1]))
        channels = self._circuit.channels
        perceived = values.reshape(kernels, values.shape[1], channels, -1).permute(2, 1, 0, 3)
        # The update network reads the centres, then the outputs of all kernels channel by channel.
        values = torch.cat([state.reshape(channels, -1), perceived.reshape(-1, perceived.shape[-1])])
        for layer, pairs in zip(coef[self._count :], self._update, strict=True):
            # With `index_select` instead of indexing, this line took six times as long on a CPU.
            values = gates(layer, values[pairs[0]], values[pairs[1]])
        return values.reshape(state.shape)

    def _patches(self, state: torch.Tensor) -> torch.Tensor:
        """Return the patches `[9, C, B, H, W]` of a state `[C, B, H, W]`."""
        height, width = state.shape[2:]
        mode = "circular" if self._circuit.periodic else "constant"
        padded = torch.nn.functional.pad(state, (1, 1, 1, 1), mode=mode)
        return torch.stack([padded[..., dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)])

    def __call__(
        self, logits: Tensors, x: torch.Tensor, masks: torch.Tensor | None = None, hard: bool = False
    ) -> torch.Tensor:
        """Return the last state of a rollout from `x`, both `[B, H, W, C]`, with hard gates if `hard` is True."""
        coef = [coefficients(layer, hard) for layer in logits]
        state = x.movedim(-1, 0)
        for step in range(self._steps):
            new = self._step(coef, state)
            state = new if masks is None else torch.where(masks[step, ..., 0] > 0, new, state)
        return state.movedim(0, -1)


def gradients(circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
    """Return loss and gradients of one batch, as `Engine.loss_and_gradients` does, on the CPU without compilation."""
    logits = as_tensors(circuit, "cpu")
    masks = None if batch.masks is None else torch.tensor(batch.masks)
    channels = batch.loss_channels
    last = Rollout(circuit, batch.steps, "cpu", compile_step=False)(logits, torch.tensor(batch.x), masks)
    loss = (last[..., :channels] - torch.tensor(np.asarray(batch.y)[..., :channels])).square().sum()
    grads = [gradient.numpy() for gradient in torch.autograd.grad(loss, logits)]
    count = len(circuit.perceive)
    return float(loss.detach()), {"perceive": grads[:count], "update": grads[count:]}


def as_tensors(circuit: Circuit, device: str) -> Tensors:
    """Return the logits of a circuit as float32 tensors, perception layers first."""
    layers = [*circuit.logits["perceive"], *circuit.logits["update"]]
    return [torch.tensor(layer, dtype=torch.float32, device=device, requires_grad=True) for layer in layers]
