"""The model in PyTorch: cells last, autograd, each CA step compiled where `torch.compile` works."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.rivals.problem import Problem
from benchmarks.rivals.table import TABLE
from difflogic.batch import Batch
from difflogic.circuit import Circuit
from difflogic.shape import Hyper

Tensors = list[torch.Tensor]


def coefficients(logits: torch.Tensor, hard: bool) -> torch.Tensor:
    """`[..., out, 16]` -> `[..., out, 4, 1]`."""
    weights = torch.nn.functional.one_hot(logits.argmax(-1), 16).float() if hard else logits.softmax(-1)
    return (weights @ torch.tensor(TABLE, device=logits.device)).unsqueeze(-1)


def gates(coef: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return coef[..., 0, :] + coef[..., 1, :] * a + (coef[..., 2, :] + coef[..., 3, :] * a) * b


class Rollout:
    """A circuit on a device; `compiled` says whether its CA step is compiled, or why not."""

    def __init__(self, circuit: Circuit, steps: int, device: str, compile_step: bool) -> None:
        self._circuit, self._steps, self._count = circuit, steps, len(circuit.perceive)
        self._perceive = [torch.tensor(pairs, device=device) for pairs in circuit.perceive_wires]
        self._update = [torch.tensor(pairs, device=device) for pairs in circuit.update_wires]
        self._step = torch.compile(self._eager_step) if compile_step else self._eager_step

    def _eager_step(self, coef: Tensors, state: torch.Tensor) -> torch.Tensor:
        """`[C, B, H, W]` -> the same, a step later."""
        patch = self._patches(state)
        kernels = self._circuit.kernels
        values = patch.reshape(1, 9, -1).expand(kernels, -1, -1)
        for layer, pairs in zip(coef[: self._count], self._perceive, strict=True):
            index = pairs.unsqueeze(-1).expand(-1, -1, -1, values.shape[-1])
            values = gates(layer, values.gather(1, index[:, 0]), values.gather(1, index[:, 1]))
        channels = self._circuit.channels
        seen = values.reshape(kernels, values.shape[1], channels, -1).permute(2, 1, 0, 3)
        values = torch.cat([state.reshape(channels, -1), seen.reshape(-1, seen.shape[-1])])
        for layer, pairs in zip(coef[self._count :], self._update, strict=True):
            # `index_select` in place of the brackets took six times as long on a CPU
            values = gates(layer, values[pairs[0]], values[pairs[1]])
        return values.reshape(state.shape)

    def _patches(self, state: torch.Tensor) -> torch.Tensor:
        """`[C, B, H, W]` -> `[9, C, B, H, W]`"""
        height, width = state.shape[2:]
        mode = "circular" if self._circuit.periodic else "constant"
        padded = torch.nn.functional.pad(state, (1, 1, 1, 1), mode=mode)
        return torch.stack([padded[..., dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)])

    def __call__(
        self, logits: Tensors, x: torch.Tensor, masks: torch.Tensor | None = None, hard: bool = False
    ) -> torch.Tensor:
        """The last state `[B, H, W, C]` from the first."""
        coef = [coefficients(layer, hard) for layer in logits]
        state = x.movedim(-1, 0)
        for step in range(self._steps):
            new = self._step(coef, state)
            state = new if masks is None else torch.where(masks[step, ..., 0] > 0, new, state)
        return state.movedim(0, -1)


def gradients(circuit: Circuit, batch: Batch) -> tuple[float, dict[str, list[np.ndarray]]]:
    """Loss and gradients of one batch, as `Engine.loss_and_gradients` gives them; not compiled."""
    logits = _logits(circuit, "cpu")
    masks = None if batch.masks is None else torch.tensor(batch.masks)
    channels = batch.loss_channels
    last = Rollout(circuit, batch.steps, "cpu", compile_step=False)(logits, torch.tensor(batch.x), masks)
    loss = (last[..., :channels] - torch.tensor(batch.y[..., :channels])).square().sum()
    found = [each.numpy() for each in torch.autograd.grad(loss, logits)]
    count = len(circuit.perceive)
    return float(loss.detach()), {"perceive": found[:count], "update": found[count:]}


def _logits(circuit: Circuit, device: str) -> Tensors:
    layers = [*circuit.logits["perceive"], *circuit.logits["update"]]
    return [torch.tensor(layer, dtype=torch.float32, device=device, requires_grad=True) for layer in layers]


class Training:
    """A training run."""

    def __init__(self, problem: Problem, on_gpu: bool) -> None:
        device = "cuda" if on_gpu else "cpu"
        self._hyper, self._config, self._on_gpu = problem.hyper, problem.config, on_gpu
        self._logits = _logits(problem.circuit, device)
        self._target = torch.tensor(problem.target(), device=device)
        self._mu = [torch.zeros_like(layer) for layer in self._logits]
        self._nu = [torch.zeros_like(layer) for layer in self._logits]
        self._count = 0
        self._rollout, how = _working_rollout(problem, self._logits, device)
        name = torch.cuda.get_device_name() if on_gpu else "cpu"
        self.device = f"{name}, torch {torch.__version__.partition('+')[0]}, {how}"

    def step(self, x: np.ndarray) -> tuple[float, int]:
        """A train step from given start grids; the soft and the hard loss before it."""
        soft, hard = self._train(torch.tensor(x, device=self._target.device))
        return float(soft), int(hard)

    def repeat(self, count: int) -> float:
        """Seconds per train step with fresh grids, over `count` of them, waited for."""
        shape = (*self._target.shape[:3], self._config.model.channels)
        begin = time.perf_counter()
        for _ in range(count):
            self._train(torch.randint(0, 2, shape, device=self._target.device).float())
        if self._on_gpu:
            torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count

    def _train(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        channels = self._config.task.loss_channels
        soft = (self._rollout(self._logits, x)[..., :channels] - self._target).square().sum()
        grads = torch.autograd.grad(soft, self._logits)
        with torch.no_grad():
            hard = (self._rollout(self._logits, x, hard=True)[..., :channels] != self._target).sum()
            self._count += 1
            _adamw(self._hyper, self._count, grads, self._logits, self._mu, self._nu)
        return soft.detach(), hard


def _working_rollout(problem: Problem, logits: Tensors, device: str) -> tuple[Rollout, str]:
    """Compiled where the compiler works (on a CPU it needs a C++ compiler), else not."""
    steps = problem.config.task.steps
    rollout = Rollout(problem.circuit, steps, device, compile_step=True)
    x = torch.tensor(problem.starts(1)[0], device=device)
    try:
        torch.autograd.grad(rollout(logits, x).sum(), logits)
    except (RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:80]
        return Rollout(problem.circuit, steps, device, compile_step=False), f"not compiled ({reason})"
    return rollout, "compiled"


def _adamw(hyper: Hyper, count: int, grads: Any, logits: Tensors, mu: Tensors, nu: Tensors) -> None:
    scale1, scale2 = 1 - hyper.beta1**count, 1 - hyper.beta2**count
    for g, p, m, v in zip(grads, logits, mu, nu, strict=True):
        clipped = g.clamp(-hyper.clip, hyper.clip)
        m.mul_(hyper.beta1).add_(clipped, alpha=1 - hyper.beta1)
        v.mul_(hyper.beta2).addcmul_(clipped, clipped, value=1 - hyper.beta2)
        p.sub_(hyper.lr * ((m / scale1) / ((v / scale2).sqrt() + hyper.epsilon) + hyper.weight_decay * p))
