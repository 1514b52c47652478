"""Sections of a configuration that say how a run is trained.

    [train]      the budget and the batch            [hardening]  a growing share of hard gates
    [optimizer]  AdamW and its clipping              [growth]     smaller grids at first
    [schedule]   the learning rate over time         [search]     a search at the end
    [initial]    the logits before the first epoch   [pool]       epochs that begin with earlier last states

All but `[train]` may be left out: their defaults are the paper's training. Everywhere `begin` and `end` are epochs, and
`share` is the value at the `end`.
"""

from difflogic.config.choices import CLIPS
from difflogic.config.fields import Section, field, require, require_ascending, section
from difflogic.config.limits import BELOW_ONE, COUNT, MOST, NOT_NEGATIVE, SHARE, UP_TO_ONE, WHOLE, one_of

HARDENING_EPOCHS = 1 << 16
"""Exclusive maximum of the number of epochs in which the share of hardened gates grows."""


@section
class TrainConfig(Section):
    """`[train]`: epochs, batch, asynchrony and evaluations. One epoch is one optimiser step."""

    epochs: int = field("Total number of optimiser steps", COUNT)
    batch: int = field("Samples per epoch, B", COUNT)
    fire_rate: float = field("Probability that a cell updates in a step; below 1: asynchronous", SHARE, default=1.0)
    eval_interval: int = field("Epochs between evaluations, each of which saves a checkpoint", COUNT, default=50)
    probes: int = field(
        "Number of evaluation grids: random initial states that training never uses, or copies of a single one with "
        "different damage or faults. Not used for boards, samples, or a single initial state without damage and faults",
        COUNT,
        default=32,
    )

    @property
    def asynchronous(self) -> bool:
        return self.fire_rate < 1


@section
class OptimizerConfig(Section):
    """`[optimizer]`: AdamW, and the clipping of gradients before it."""

    # `[schedule]` changes this learning rate over time.
    lr: float = field("Learning rate of AdamW", NOT_NEGATIVE, default=0.05)
    weight_decay: float = field("Decoupled weight decay of all logits", NOT_NEGATIVE, default=0.01)
    beta1: float = field("Decay of AdamW's first moment", BELOW_ONE, default=0.9)
    beta2: float = field("Decay of AdamW's second moment", BELOW_ONE, default=0.99)
    epsilon: float = field("Number added to the root of AdamW's second moment", NOT_NEGATIVE, default=1e-8)
    clip: float = field("Limit of gradient clipping, see clip_by", NOT_NEGATIVE, default=100.0)
    clip_by: str = field(
        "element: each gradient entry is clipped to [-clip, clip], as the paper does; norm: all gradients of a "
        "model are scaled down together if their norm, the root of the sum of squares, is beyond clip",
        one_of(CLIPS),
        default="element",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # A clip of 0 makes every gradient 0; clipping by norm would divide by 0.
        require(self.clip > 0 or self.clip_by == "element", 'clip must be more than 0 if clip_by is "norm", got 0.')


@section
class ScheduleConfig(Section, path="schedule."):
    """`[schedule]`: the fall of the learning rate."""

    share: float = field("Share of lr to which the learning rate falls linearly; 1: constant", UP_TO_ONE, default=1.0)
    begin: int = field("Last epoch before the learning rate falls", WHOLE, default=0)
    end: int = field("Epoch in which the learning rate reaches its final share", WHOLE, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        # A share of 1 never falls, so that begin and end may stay 0.
        require(
            self.share == 1 or self.begin < self.end,
            f"schedule.end must be later than schedule.begin, {self.begin}, if schedule.share is below 1, "
            f"got {self.end}.",
        )


@section
class InitialConfig(Section, path="initial."):
    """`[initial]`: the logits before the first epoch."""

    logit: float = field("Initial logit of gate A, a pass-through; others begin at 0", NOT_NEGATIVE, default=10.0)
    narrow_drop: float = field(
        "Decrease of the initial logit in layers of the update network that are narrower than its first",
        NOT_NEGATIVE,
        default=0.0,
    )
    noise: float = field("Standard deviation of the normal noise of initial logits", NOT_NEGATIVE, default=0.0)


@section
class HardeningConfig(Section, path="hardening."):
    """`[hardening]`: random gates evaluated hard during training; see `difflogic.engine.events`."""

    share: float = field(
        "Final share of gates, random each epoch, that are evaluated hard; gradients stay soft", UP_TO_ONE, default=0.0
    )
    begin: int = field("Last epoch before the share of hard gates grows from 0", WHOLE, default=0)
    end: int = field("Epoch in which the share of hard gates reaches its final value", WHOLE, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        # Engines count the growing share in 32 bits: 16 for the share and 16 for the epochs in which it grows.
        require(
            not self.share or 0 < self.end - self.begin < HARDENING_EPOCHS,
            f"hardening.end must be 1 to {HARDENING_EPOCHS - 1} epochs after hardening.begin, {self.begin}, "
            f"got {self.end}.",
        )


@section
class GrowthConfig(Section, path="growth."):
    """`[growth]`: smaller grids for the first epochs, with one entry per list for each grid.

    until = [60, 100]    sides = [8, 12]    steps = [9, 14]

    trains epochs 1 to 60 on 8x8 cells for 9 CA steps, 61 to 100 on 12x12 for 14, and the rest on the task itself.
    """

    until: tuple[int, ...] = field("Last epoch on each smaller grid, ascending; empty: no smaller grids", default=())
    sides: tuple[int, ...] = field("Side of each smaller grid: its number of rows and of columns", default=())
    steps: tuple[int, ...] = field("CA steps on each smaller grid", default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        require_ascending("growth.until", self.until, 1, MOST, "epochs")
        require(
            len(self.until) == len(self.sides) == len(self.steps),
            "growth.until, growth.sides and growth.steps must have equal lengths, one number per smaller grid, got "
            f"{len(self.until)}, {len(self.sides)} and {len(self.steps)}.",
        )


@section
class SearchConfig(Section, path="search."):
    """`[search]`: the search that follows the training of logits, see `difflogic.engine.search`."""

    begin: int = field("Last epoch before the search over gates of the hard circuit; 0: no search", WHOLE, default=0)


@section
class PoolConfig(Section, path="pool."):
    """`[pool]`: the sample pool, from which epochs take initial states and which stores their last states."""

    size: int = field(
        "Number of grids in the sample pool, batch times a power of two; 0: no pool. Each sample of a batch begins "
        "with a grid from its own part of the pool, which its final state replaces unless starts is set",
        WHOLE,
        default=0,
    )
    reset: int = field("Final states of each batch, the worst ones, replaced by new initial states", WHOLE, default=1)
    starts: str = field(
        "SHA-256 of the initial states that the option `starts` gives: they fill half of the pool, which then never "
        "changes; empty: the pool stores final states",
        default="",
    )
