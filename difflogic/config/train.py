"""`[train]`: the optimiser, its budget, and what is special about an epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

from difflogic.config.choices import CLIPS, PRECISIONS
from difflogic.config.fields import (
    BELOW_ONE,
    COUNT,
    MOST,
    NOT_NEGATIVE,
    SHARE,
    UP_TO_ONE,
    WHOLE,
    check,
    one_of,
    require,
    require_ascending,
    spec,
)
from difflogic.system.brief import brief

HARDENING_EPOCHS = 1 << 16
"""The share of hardened gates grows in fewer epochs than this."""


@dataclass(frozen=True)
class TrainConfig:
    """The optimiser and its budget. One epoch is one optimiser step."""

    epochs: int = field(metadata=spec("Optimiser steps in all", COUNT))
    batch: int = field(metadata=spec("Samples per epoch, B", COUNT))
    lr: float = field(default=0.05, metadata=spec("Learning rate of AdamW", NOT_NEGATIVE))
    lr_end: float = field(
        default=1.0,
        metadata=spec("Share of lr that is left at the end, to which it falls evenly; 1: it stays", UP_TO_ONE),
    )
    lr_from: int = field(default=0, metadata=spec("Epochs until it begins to fall", WHOLE))
    lr_to: int = field(default=0, metadata=spec("Epochs until it has fallen to that share", WHOLE))
    weight_decay: float = field(default=0.01, metadata=spec("Decoupled weight decay of all logits", NOT_NEGATIVE))
    beta1: float = field(default=0.9, metadata=spec("Decay of AdamW's first moment", BELOW_ONE))
    beta2: float = field(default=0.99, metadata=spec("Decay of AdamW's second moment", BELOW_ONE))
    epsilon: float = field(default=1e-8, metadata=spec("Added to the root of the second moment", NOT_NEGATIVE))
    clip: float = field(default=100.0, metadata=spec("Bound of the gradients, see clip_by", NOT_NEGATIVE))
    clip_by: str = field(
        default="element",
        metadata=spec(
            "element: each gradient entry is clipped to [-clip, clip], as the paper does; norm: all gradients of a "
            "model are scaled down together where their norm, the root of the sum of squares, is beyond clip",
            one_of(CLIPS),
        ),
    )
    initial_logit: float = field(
        default=10.0,
        metadata=spec("Start logit of gate A, which passes its input on; every other starts at 0", NOT_NEGATIVE),
    )
    narrow_drop: float = field(
        default=0.0,
        metadata=spec(
            "The start logit is lower by so much in layers of the update network that are narrower than its first",
            NOT_NEGATIVE,
        ),
    )
    logit_noise: float = field(
        default=0.0,
        metadata=spec("Standard deviation of the normal noise that moves every start logit", NOT_NEGATIVE),
    )
    hardening: float = field(
        default=0.0,
        metadata=spec(
            "Share of gates, drawn each epoch, that are evaluated as their most probable gate; gradients stay soft",
            UP_TO_ONE,
        ),
    )
    harden_from: int = field(default=0, metadata=spec("Epochs until that share grows from 0", WHOLE))
    harden_to: int = field(default=0, metadata=spec("Epochs until it is reached", WHOLE))
    growth_until: tuple[int, ...] = field(
        default=(),
        metadata=spec(
            "Epochs until which the grid is smaller than the task's, ascending, one for each size; empty: it never is"
        ),
    )
    growth_sides: tuple[int, ...] = field(default=(), metadata=spec("Rows and columns of each smaller grid"))
    growth_steps: tuple[int, ...] = field(default=(), metadata=spec("CA steps on each smaller grid"))
    settle_from: int = field(
        default=0,
        metadata=spec(
            "Epochs until the hard circuit is searched, gate by gate, in place of gradient steps; 0: it never is", WHOLE
        ),
    )
    """What an epoch of it does: `difflogic.engine.search`."""
    fire_rate: float = field(
        default=1.0,
        metadata=spec("Below 1, a cell takes its new state with this probability in each step: asynchronous", SHARE),
    )
    eval_interval: int = field(default=50, metadata=spec("Epochs between evaluations, each saved", COUNT))
    probes: int = field(
        default=32,
        metadata=spec(
            "Fixed fresh grids on which hard accuracy is measured, which training never sees; the start boards is "
            "judged on all boards, and a start that is always the same, without damage, on itself, whatever this says",
            COUNT,
        ),
    )
    pool: int = field(
        default=0,
        metadata=spec(
            "Grids in the sample pool, 0: every epoch starts afresh; sample b of a batch is drawn from the pool's b-th "
            "part of pool / batch grids, a power of two, and its last state is written back there",
            WHOLE,
        ),
    )
    pool_reset: int = field(
        default=1,
        metadata=spec(
            "So many samples of each batch, those with the largest loss, go back into the pool as fresh starts",
            WHOLE,
        ),
    )
    precision: str = field(
        default="float32",
        metadata=spec(
            "How the backward pass reads the values of gates: float32, or f16-storage, rounded to 16 bits within the "
            "least and the largest of 16 cells, which takes 9/16 of the memory where they are kept; gradients change "
            "by less than 1/2000 of the largest, those of a single layer by more of its own only late in training",
            one_of(PRECISIONS),
        ),
    )

    __repr__ = brief

    def __post_init__(self) -> None:
        check(self)
        self._check_growth()
        self._check_pool()
        if self.hardening:
            require(
                0 < self.harden_to - self.harden_from < HARDENING_EPOCHS,
                f"harden_to must be 1 to {HARDENING_EPOCHS - 1} epochs after harden_from, {self.harden_from}, "
                f"got {self.harden_to}.",
            )
        require(self.clip > 0 or self.clip_by == "element", 'clip must be more than 0 where clip_by is "norm", got 0.')
        require(
            self.lr_end == 1 or self.lr_from < self.lr_to,
            f"lr_to must be later than lr_from, {self.lr_from}, where lr_end is below 1, got {self.lr_to}.",
        )

    def _check_growth(self) -> None:
        require_ascending("growth_until", self.growth_until, 1, MOST, "epochs")
        require(
            len(self.growth_until) == len(self.growth_sides) == len(self.growth_steps),
            "growth_until, growth_sides and growth_steps need a number for each smaller grid, got "
            f"{len(self.growth_until)}, {len(self.growth_sides)} and {len(self.growth_steps)}.",
        )

    def _check_pool(self) -> None:
        if self.pool:
            part, rest = divmod(self.pool, self.batch)
            require(
                rest == 0 and part.bit_count() == 1,
                f"pool must be batch times a power of two, got {self.pool} for a batch of {self.batch}.",
            )
            require(
                self.pool_reset <= self.batch,
                f"pool_reset must be at most the batch, {self.batch}, got {self.pool_reset}.",
            )

    @property
    def half(self) -> bool:
        return self.precision == "f16-storage"

    @property
    def asynchronous(self) -> bool:
        return self.fire_rate < 1
