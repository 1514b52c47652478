"""Train step in PyTorch by autograd, with each CA step compiled if `torch.compile` works."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.rivals.problem import Problem
from difflogic.autodiff.torch_model import Rollout, Tensors, as_tensors
from difflogic.engine.shape import Hyper


class Training:
    """Training run in PyTorch."""

    def __init__(self, problem: Problem, on_gpu: bool) -> None:
        device = "cuda" if on_gpu else "cpu"
        self._hyper, self._config, self._on_gpu = problem.hyper, problem.config, on_gpu
        self._logits = as_tensors(problem.circuit, device)
        self._target = torch.tensor(problem.target(), device=device)
        self._mu = [torch.zeros_like(layer) for layer in self._logits]
        self._nu = [torch.zeros_like(layer) for layer in self._logits]
        self._count = 0
        self._rollout, how = _working_rollout(problem, self._logits, device)
        name = torch.cuda.get_device_name() if on_gpu else "cpu"
        self.device = f"{name}, torch {torch.__version__.partition('+')[0]}, {how}"

    def step(self, x: np.ndarray) -> tuple[float, int]:
        """Run a train step from the initial states `x`; return the soft and the hard loss before the step."""
        soft, hard = self._train(torch.tensor(x, device=self._target.device))
        return float(soft), int(hard)

    def repeat(self, count: int) -> float:
        """Run `count` train steps with random initial states; return the mean seconds of a step."""
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
    """Return the rollout, compiled if the compiler works (on a CPU it needs a C++ compiler), and a description."""
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
