"""Run one contender in a separate process, so that its memory can be measured and idle threads disturb no other.

The command is `python -m benchmarks.rivals.worker NAME cpu|gpu LOSS LOSS`, with the expected first two soft losses. The
process prints a line of JSON that it is ready, or why not. For each input line `N` it runs N repetitions and prints the
mean seconds of one. At the end it prints its peak memory.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from typing import Any, Protocol

from benchmarks.rivals.problem import Problem, complaint
from difflogic.bench.memory import own_peak_bytes
from difflogic.errors import DeviceError

CONTENDERS = {
    "difflogic": "train step and hard evaluation of the batch and 32 probes",
    "jax_plain": "train step and hard loss of the batch",
    "jax_tuned": "train step and hard loss of the batch",
    "torch_compiled": "train step and hard loss of the batch",
    "in_c": "train step and hard loss of the batch",
}
"""Description of one repetition of each contender."""


class Contender(Protocol):
    device: str

    def repeat(self, count: int) -> float:
        """Run `count` repetitions; return the mean seconds of a repetition."""


class Ours:
    """Contender of this package, an engine; unlike other contenders it also runs the evaluation grids."""

    def __init__(self, problem: Problem, on_gpu: bool) -> None:
        from difflogic.devices.open import open_engine

        engine = open_engine("gpu" if on_gpu else "cpu", require_hardware=on_gpu)
        self.model = engine.open([problem.job], [problem.state])
        self.device = f"{self.model.info.adapter}, {self.model.info.driver}"

    def first_losses(self) -> tuple[list[float], list[int]]:
        """Return the soft and hard losses of two epochs; the first step changes no gate of the hard circuit."""
        soft, hard = [], []
        for _ in range(2):
            self.model.train(1)
            soft.append(self.model.fetch_metrics()[0][0].soft_loss)
            hard.append(self.model.evaluate()[0].train_hard_loss)
        return soft, hard

    def repeat(self, count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            self.model.train(1)
            self.model.evaluate()
        self.model.fetch_metrics()
        return (time.perf_counter() - begin) / count


def open_verified(name: str, on_gpu: bool, expected: list[float]) -> tuple[Contender, str | None]:
    """Return a contender after its first two train steps, and the error of its losses, or None."""
    problem = Problem.checkerboard()
    if name == "difflogic":
        ours = Ours(problem, on_gpu)
        return ours, complaint(*ours.first_losses(), expected)
    training = _training(name, problem, on_gpu)
    losses = [training.step(x) for x in problem.starts(2)]
    return training, complaint([soft for soft, _ in losses], [hard for _, hard in losses], expected)


def _training(name: str, problem: Problem, on_gpu: bool) -> Any:
    if name == "in_c":
        from benchmarks.rivals import in_c

        if on_gpu:
            raise ImportError("the program in C is for processors")
        return in_c.Training(problem)
    if name == "torch_compiled":
        import torch

        from benchmarks.rivals import torch_compiled

        if on_gpu and not torch.cuda.is_available():
            raise ImportError("torch finds no GPU")
        return torch_compiled.Training(problem, on_gpu)
    import jax

    from benchmarks.rivals import jax_training, jax_tuned
    from difflogic.autodiff import jax_model

    if on_gpu and jax.default_backend() == "cpu":
        raise ImportError("jax finds no GPU: it takes jax[cuda12]")
    return jax_training.Training({"jax_plain": jax_model, "jax_tuned": jax_tuned}[name], problem)


def _say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    name, place, *expected = sys.argv[1:]
    begin = time.perf_counter()
    try:
        contender, wrong = open_verified(name, place == "gpu", [float(loss) for loss in expected])
    except ImportError as error:
        _say(failed=f"not installed: {error}")
        return
    except DeviceError as error:
        _say(failed=str(error))
        return
    if wrong:
        _say(failed=wrong)
        return
    _say(device=contender.device, open_s=time.perf_counter() - begin, python=platform.python_version())
    for line in sys.stdin:
        _say(seconds=contender.repeat(int(line)))
    _say(peak_mb=(own_peak_bytes() or 0) / 1e6)


if __name__ == "__main__":
    main()
