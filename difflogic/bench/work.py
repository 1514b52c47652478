"""Count the work of a case by rules that depend only on the circuit and the grid, not on the engine.

A *gate evaluation* computes one gate for one cell in one CA step. Perception gates count once per channel. Only gate
evaluations of the forward pass of a train step count, although the backward pass costs more.

*FLOP* of a soft gate evaluation in training; an addition and a multiplication count as one each:

    forward   c0 + ca*a + cb*b + cab*a*b as three fused multiply-adds              6
    backward  d_a = d*(ca + cab*b), d_b = d*(cb + cab*a)                           6
              the four moments sum d, sum d*a, sum d*b, sum d*a*b                  7
              each input's adjoint added to those of its node's other readers      2

Work that an engine repeats, such as a recomputed forward pass, counts once. Softmax and AdamW, which run once per gate
and step, are excluded. Hard evaluation has no FLOP.

*Traffic* is the number of bytes that kernels pass to later kernels, each written once and read once: the states, the
adjoints of the patches, and the value of every node if the engine stores these for the backward pass. Values within a
kernel are excluded. So traffic near the copy rate shows that a step is memory-bound; low traffic shows nothing.
"""

from dataclasses import dataclass

from difflogic.config.schema import Config
from difflogic.core.wiring import PATCH
from difflogic.engine.job import probe_count

FLOP_PER_EVALUATION = 6 + 6 + 7 + 2
FLOAT = 4


@dataclass(frozen=True)
class Work:
    """Numbers of operations and values of one model, by which its work is counted."""

    soft_evaluations: int
    """Number of gate evaluations in the forward pass of one train step."""
    hard_evaluations: int
    """Number of gate evaluations in one hard evaluation of the evaluation grids and the training batch."""
    states: int
    """Number of channel values of all cells, in the states before each step."""
    nodes: int
    """Number of values of all gates and patches in all steps."""

    @property
    def flop(self) -> int:
        return FLOP_PER_EVALUATION * self.soft_evaluations

    def traffic(self, keeps_nodes: bool) -> int:
        """Return the traffic of one train step in bytes, which the docstring of the module defines."""
        kept = self.nodes if keeps_nodes else 0
        # An engine that did not store the nodes reads each state once more in the backward pass.
        states = self.states * (2 if keeps_nodes else 3)
        return FLOAT * (states + 2 * PATCH * self.states + 2 * kept)


def work_of(config: Config) -> Work:
    """Return the work of a train step and a hard evaluation of a configuration."""
    model, task, train = config.model, config.task, config.train
    instances = model.instances
    # A cell counts once in each step.
    cells = task.height * task.width * task.steps
    return Work(
        soft_evaluations=instances * cells * train.batch,
        hard_evaluations=instances * cells * (probe_count(config) + train.batch),
        states=cells * train.batch * model.channels,
        nodes=cells * train.batch * (instances + PATCH * model.channels),
    )
