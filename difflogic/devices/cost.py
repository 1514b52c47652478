"""Predict the memory and time of a training run from its configuration, before memory is allocated."""

from dataclasses import dataclass

from difflogic.config.model import ModelConfig
from difflogic.config.schema import Config
from difflogic.engine.memory import FLOAT, training_bytes
from difflogic.errors import LimitError
from difflogic.system.memory import physical_memory

EVALUATIONS_PER_S = 10**9
"""Assumed number of gate evaluations per second in training, the rate of about two cores; GPUs are faster."""
THREADS = 16
"""Assumed number of CPU threads if the actual number is unknown."""


@dataclass(frozen=True)
class Cost:
    """Predicted cost of a job, including all models of its population."""

    evaluations: int
    """Number of gate evaluations in the forward passes of all epochs."""
    memory: int
    """Number of bytes of all arrays on the CPU engine, which needs the most memory."""

    @property
    def seconds(self) -> int:
        """Predicted duration in seconds at the rate EVALUATIONS_PER_S, rounded up."""
        return -(-self.evaluations // EVALUATIONS_PER_S)

    def to_dict(self) -> dict[str, int]:
        return {"evaluations": self.evaluations, "memory": self.memory, "seconds": self.seconds}


def cost_of(config: Config, population: int, threads: int = THREADS) -> Cost:
    """Return the predicted cost of a job without allocating memory."""
    model, task, train = config.model, config.task, config.train
    cells = task.height * task.width * train.batch
    # Each instance of a gate is evaluated once per cell and CA step; the rate includes the backward pass. With k
    # candidates for each input a step takes about k times as long.
    evaluations = model.instances * model.candidates * cells * task.steps * train.epochs * population
    return Cost(evaluations, training_bytes(config, threads) * population)


LONG_S, LONG_EPOCH_S = 12 * 3600, 60
"""Minimum durations in seconds of a training run (LONG_S) and of an epoch for which `notice` returns a warning."""


def notice(config: Config, population: int) -> str | None:
    """Return a warning for users if training on the CPU would take long, otherwise None."""
    seconds = cost_of(config, population).evaluations / EVALUATIONS_PER_S
    epoch = seconds / config.train.epochs
    if seconds < LONG_S and epoch < LONG_EPOCH_S:
        return None
    return (
        f"This may take {duration(seconds)} on a typical processor, {duration(epoch)} per epoch; Ctrl-C saves the run "
        "after the current epoch and stops."
    )


def check_rollout(model: ModelConfig, cells: int, steps: int, shown: int) -> str | None:
    """Return a warning for users if a hard rollout of `cells` cells on the CPU would take long, otherwise None.

    `shown` is the number of bytes per cell for display. Raises LimitError if this machine has too little memory.
    """
    needed, memory = cells * (4 * FLOAT * model.channels + shown), physical_memory()
    if memory is not None and needed > memory:
        raise LimitError(
            f"Displaying a grid of {cells} cells needs about {needed / 1e9:.1f} GB, but this machine has "
            f"{memory / 1e9:.1f} GB of memory: use a smaller grid, or show fewer steps."
        )
    seconds = model.instances * cells * steps / EVALUATIONS_PER_S
    return f"This may take {duration(seconds)}; Ctrl-C stops it." if seconds >= LONG_EPOCH_S else None


def duration(seconds: float) -> str:
    """Return a duration as text, such as `about 3 minutes` or `about 11 days`."""
    for name, size in (("days", 86400), ("hours", 3600), ("minutes", 60), ("s", 1)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {name}"
    return "less than 2 s"
