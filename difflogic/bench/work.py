"""Count the work of a case by rules that depend only on circuit and grid, not on the engine.

A *gate evaluation* computes one gate for one cell in one CA step. Perception gates count once per channel. For a train
step, only gate evaluations of the forward pass count, although the backward pass costs more.

*FLOP* per soft gate evaluation in training, with additions and multiplications counted as one each:

    forward   c0 + ca*a + cb*b + cab*a*b as three fused multiply-adds              6
    backward  d_a = d*(ca + cab*b), d_b = d*(cb + cab*a)                           6
              the four moments sum d, sum d*a, sum d*b, sum d*a*b                  7
              accumulating the adjoints of both inputs                             2

Repeated work, such as a recomputed forward pass, counts once. Softmax and AdamW, which run once per gate and train
step, are excluded. Hard evaluation performs no floating-point operations.

*Traffic* is the number of bytes that kernels pass to later kernels, each written once and read once: the states, the
adjoints of the patches, and all node values if the engine stores these for the backward pass. Values within a kernel
are excluded. Traffic per second near the copy bandwidth shows that a step is memory-bound; a lower rate proves nothing.
"""

from dataclasses import dataclass

from difflogic.config.schema import Config
from difflogic.core.wiring import PATCH
from difflogic.engine.job import probe_count

FLOP_PER_EVALUATION = 6 + 6 + 7 + 2
FLOAT = 4


@dataclass(frozen=True)
class Work:
    """Numbers of operations and values of one model, from which its work is computed."""

    soft_evaluations: int
    """Number of gate evaluations in the forward pass of one train step."""
    hard_evaluations: int
    """Number of gate evaluations in one evaluation of the hard circuit, on evaluation grids and training batch."""
    states: int
    """Number of channel values of all cells in the states with which the steps begin."""
    nodes: int
    """Number of gate outputs and patch values of all cells in all steps."""

    @property
    def flop(self) -> int:
        return FLOP_PER_EVALUATION * self.soft_evaluations

    def traffic(self, keeps_nodes: bool) -> int:
        """Return the traffic of one train step in bytes; `keeps_nodes` says whether the engine stores node values."""
        kept = self.nodes if keeps_nodes else 0
        # An engine that does not store node values reads each state once more in the backward pass.
        states = self.states * (2 if keeps_nodes else 3)
        return FLOAT * (states + 2 * PATCH * self.states + 2 * kept)


def work_of(config: Config) -> Work:
    """Return the work of a train step and of a hard evaluation for a configuration."""
    model, task, train = config.model, config.task, config.train
    instances = model.instances
    # Each cell counts once per step.
    cells = task.height * task.width * task.steps
    return Work(
        soft_evaluations=instances * cells * train.batch,
        hard_evaluations=instances * cells * (probe_count(config) + train.batch),
        states=cells * train.batch * model.channels,
        nodes=cells * train.batch * (instances + PATCH * model.channels),
    )
