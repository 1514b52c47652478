"""What a job would take, predicted from its configuration alone, before anything is made."""

from __future__ import annotations

from dataclasses import dataclass

from difflogic.config import Config
from difflogic.serve.faults import ApiError, one_sentence
from difflogic.serve.settings import Caps
from difflogic.wiring import PATCH

EVALUATIONS_PER_S = 10**9
"""Gate evaluations of training in a second: about what two cores do. A GPU is faster, so its jobs end earlier."""
FLOAT = 4
TILE = 32
"""Cells whose gradients are summed before they leave a core."""
THREADS = 16
SAVED = 6
"""Copies of logits and moments that a checkpoint holds at once: arrays, their bytes, the previous state."""


@dataclass(frozen=True)
class Cost:
    """Of one job, all models of a population together."""

    gates: int
    evaluations: int
    """Gate evaluations of all epochs, forward."""
    memory: int
    """Bytes of arrays, on the engine that takes most where it saves none."""

    @property
    def seconds(self) -> int:
        """At `EVALUATIONS_PER_S`, rounded up."""
        return -(-self.evaluations // EVALUATIONS_PER_S)

    def to_dict(self) -> dict[str, int]:
        """As JSON holds it."""
        return {"evaluations": self.evaluations, "memory": self.memory, "seconds": self.seconds}


def cost_of(config: Config, population: int) -> Cost:
    """See Cost; nothing is made for it, however large the job."""
    model, task, train = config.model, config.task, config.train
    cells = task.height * task.width * train.batch
    evaluations = model.instances * cells * task.steps * train.epochs * population
    return Cost(model.gates * population, evaluations, _memory(config) * population)


def _memory(config: Config) -> int:
    """Bytes of one model in training, by the CPU engine's buffers."""
    model, task, train = config.model, config.task, config.train
    grid = task.height * task.width
    cells = grid * train.batch
    width = -(-cells // TILE) * TILE + 2 * (task.width + TILE)
    nodes = model.instances + PATCH * model.channels
    floats = (
        (16 * 5 + 4 * 2 + 16 * SAVED) * model.gates
        + (task.steps + 1) * model.channels * width
        + (task.steps * width if train.asynchronous else 0)
        + len(task.judged_steps) * task.loss_channels * width
        + 2 * PATCH * model.channels * width
        + -(-cells // TILE) * 4 * model.gates
        + THREADS * (3 * nodes + model.channels) * TILE
        + 16 * nodes
    )
    grids = (train.pool + 3 * train.probes) * grid * model.channels
    return FLOAT * floats + grids


def check(config: Config, population: int, caps: Caps) -> Cost:
    """The cost, where the caps allow it. Raises ApiError with what is too much and how much would do."""
    if config.train.epochs > caps.epochs:
        raise _over("epochs", f"{config.train.epochs} epochs were asked for, this server trains at most {caps.epochs}")
    if population > caps.population:
        raise _over("population", f"{population} models were asked for, this server trains at most {caps.population}")
    cost = cost_of(config, population)
    if cost.memory > caps.memory:
        needed, allowed = (f"{size // 10**6} MB" for size in (cost.memory, caps.memory))
        raise _over("memory", f"The job would need {needed} of memory, this server allows {allowed}")
    if cost.seconds > caps.hours * 3600:
        raise _over("time", f"The job would take about {cost.seconds // 3600} hours, this server allows {caps.hours:g}")
    return cost


def _over(what: str, words: str) -> ApiError:
    return ApiError(
        422,
        f"too_much_{what}",
        f"{one_sentence(words)}: use a smaller grid, batch, circuit, population or fewer epochs.",
    )
