"""Count the work of a case by rules that depend on circuit and grid alone, not on the engine.

A *gate evaluation* is one gate for one cell and CA step, forward. Perception gates count once per channel.
A train step's number is that of its forward pass, though the backward pass costs more.

*FLOP* of a soft gate evaluation in training, additions and multiplications one each:

    forward   c0 + ca*a + cb*b + cab*a*b as three fused multiply-adds              6
    backward  d_a = d*(ca + cab*b), d_b = d*(cb + cab*a)                           6
              the four moments sum d, sum d*a, sum d*b, sum d*a*b                  7
              each input's adjoint added to those of its node's other readers      2

Work that an engine repeats, such as a recomputed forward pass, counts once. Softmax and AdamW, once per gate and step,
are excluded. Hard evaluation has no FLOP.

*Traffic* is the number of bytes that must outlive a kernel, written once and read once: the states, the adjoints of
the patches, and every node's value if the engine stores those for the backward pass. Values within a kernel are
excluded, so a high share of the copy rate means memory-bound, and a low one does not mean slow.
"""

from dataclasses import dataclass

from difflogic.config.schema import Config
from difflogic.core.wiring import PATCH
from difflogic.engine.job import probe_count

FLOP_PER_EVALUATION = 6 + 6 + 7 + 2
FLOAT = 4


@dataclass(frozen=True)
class Work:
    """Work of one model."""

    soft_evaluations: int
    """Gate evaluations of the forward pass of one train step."""
    hard_evaluations: int
    """Gate evaluations of one hard evaluation, of all samples of evaluation grids and training batch."""
    states: int
    """Number of values of all cells in all steps but the last."""
    nodes: int
    """Number of values of all gate instances and patch entries in all steps."""

    @property
    def flop(self) -> int:
        return FLOP_PER_EVALUATION * self.soft_evaluations

    def traffic(self, keeps_nodes: bool) -> int:
        """Return the bytes of one train step, as the module's docstring defines them."""
        kept = self.nodes if keeps_nodes else 0
        # a state is read once more in the backward pass by an engine that did not keep the nodes
        states = self.states * (2 if keeps_nodes else 3)
        return FLOAT * (states + 2 * PATCH * self.states + 2 * kept)


def work_of(config: Config) -> Work:
    """Return the work of a train step and a hard evaluation of a configuration."""
    model, task, train = config.model, config.task, config.train
    instances = model.instances
    # Times the steps: a cell counts in each step.
    cells = task.height * task.width * task.steps
    return Work(
        soft_evaluations=instances * cells * train.batch,
        hard_evaluations=instances * cells * (probe_count(config) + train.batch),
        states=cells * train.batch * model.channels,
        nodes=cells * train.batch * (instances + PATCH * model.channels),
    )
