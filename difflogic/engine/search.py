"""Local search: the last epochs of training search the hard circuit itself, with no gradient.

What gradient descent leaves nearly right differs from a right circuit in a few gates. An epoch tries rounds of
changes: in each, CANDIDATES circuits that differ from the present one in one gate's function are tested exactly, side
by side in the bits of a word, and the best replaces it if it is not worse. Equals are taken too: circuits drift among
those that are as good, as in Cartesian genetic programming, and so get where one further change helps. What stays
wrong costs more with time (`costs`), until it is worth being mended at the price of values that are easier to mend,
as clauses are in local search for satisfiability.
Sources: Miller & Thomson, *Cartesian genetic programming* (2000); Morris, *The breakout method for escaping from local
minima* (1993).

Half of the changes are drawn from a *guide*, which an epoch begins with: of all changes in one row of one gate's truth
table those that promise most. What such a change does to the costs is told by the derivative of the hard circuit: each
cell and step in which the gate reads that row adds what a change there alone would do. Several together may do
something else, so that a guide only says what to test first. On the lizard every twentieth of its changes mends
something, and of the others less than every hundredth.

All of it is whole numbers, drawn from the seed and the epoch: the same on every machine, and after a resume. Only a
guide may differ in its last places, where derivatives are beyond what float32 holds exactly.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.gates import TRUTH

STREAM = 0x73657474
"""`fold_in` data of the search, into whose key the epoch is folded. It spells "sett", of the search's former name,
settling: another number would make other searches."""
LANES = 64
"""So many circuits are tested at once, a bit of a word each. The first is the present one."""
CANDIDATES = LANES - 1
ROUNDS = 16
"""Between two rises of the costs, and in an epoch where the samples of one test are those of a train step."""
DRAWN = 4
"""Words drawn for each lane and round."""
WHERE, HOW_FAR, FUNCTION, SIDES = range(DRAWN)
"""The words of a candidate: where it begins, how many gates it goes back, the new function, and by which inputs.

An odd lane takes gate number `WHERE % n` of the n gates that a judged value depends on, through all steps. An even lane
begins at the gate of output `WHERE % loss_channels` and goes back through `HOW_FAR % layers` wires, which is at most to
the first layer of the update network; bit k of SIDES says whether wire k is that of input A (0) or B (1). The gate
found there has its function g changed to `(g + 1 + FUNCTION % 15) % 16`, which is never g. With a guide of n changes
the lanes from GUIDED on take number `WHERE % n` of it instead. Lane 0 is the present circuit, without a change: its
WHERE chooses among candidates that are equally good.
"""
STEADY, FEW = 50, 64
"""Costs stay while an epoch mends one of so many wrong values: where they have risen for hundreds of these, one that is
mended is worth many new ones elsewhere. Where so few are left they always rise."""
GUIDED = LANES // 2
"""The first lane that goes by the guide."""
MOST = 128
"""Changes of a guide."""
NO_GUIDE = np.zeros((0, 2), dtype=np.int64)

Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class LocalSearch(Protocol):
    """The search for one job, as an engine does it."""

    def search(self, gates: Array, costs: Words, words: Words, rises: bool, guide: Array = NO_GUIDE) -> None:
        """An epoch with the draws `words [rounds, LANES, DRAWN]`: `gates [G]` change, and `costs` where it `rises`
        and is stuck.

        `costs` is uint32 `[J, loss_channels, P*H*W]`, `guide` as of `promising`. Nothing changes where all is right.
        """

    def slopes(self, gates: Array, costs: Words) -> npt.NDArray[np.floating[Any]]:
        """How the costs change with each entry of each gate's truth table, `[G, 4]`; `costs` of right values too."""

    def wrong(self, gates: Array) -> npt.NDArray[np.bool_]:
        """Return which values of the probes are wrong with the gates `gates [G]`: bool `[J, loss_channels, P*H*W]`."""


def rounds(config: Config, probes: int) -> int:
    """Rounds of an epoch: fewer where more samples are tested than a train step has, so that it takes no longer."""
    return max(1, ROUNDS * config.train.batch // probes)


def costs_rise(epoch: int, rounds: int) -> bool:
    """Return whether they may after this epoch, counted from 1: after every ROUNDS rounds."""
    # With 2 rounds an epoch, 16 rounds are over after epochs 8, 16, 24 and so on.
    return epoch * rounds // ROUNDS != (epoch - 1) * rounds // ROUNDS


def stuck(before: int, now: int) -> bool:
    """Return whether so few of the values mended in an epoch that were wrong before it that costs rise."""
    # Of 150 that were wrong 147 are left: three are more than a fiftieth of these.
    return now <= FEW or STEADY * (before - now) < now


def promising(gates: Array, slopes: npt.NDArray[np.floating[Any]]) -> Array:
    """The guide of the gates `gates [G]` by the `slopes [G, 4]` of their truth tables.

    int64 `[n, 2]`, the best first: a gate, and the bit of its id that changes; only what lowers the costs.
    """
    # An entry that is 1 can only fall, and one that is 0 only rise. Of gate 6, XOR, that is 0 1 1 0, with the slopes
    # -2, -1, 3 and 1, the first change promises 2 less, and the third 3 less: bits 8 and 2 of the id.
    change = ((1 - 2 * TRUTH[gates]) * slopes).reshape(-1)
    best = np.argsort(change, kind="stable")[:MOST]
    best = best[change[best] < 0]
    return np.stack([best // 4, 8 >> best % 4], axis=1)


def draw(seed: int, epoch: int, rounds: int) -> Words:
    """uint32 `[rounds, LANES, DRAWN]` of an epoch."""
    key = prng.fold_in(prng.fold_in(prng.key_from_seed(seed), STREAM), epoch)
    return prng.random_bits(key, rounds * LANES * DRAWN).reshape(rounds, LANES, DRAWN)


def fresh_costs(config: Config, probes: int) -> Words:
    """uint32 `[J, loss_channels, probes*H*W]`: what each wrong value costs, at first 1."""
    task = config.task
    shape = len(task.judged_steps), task.loss_channels, probes * task.height * task.width
    return np.ones(shape, dtype=np.uint32)


def chosen(logits: npt.NDArray[np.float32], gates: Array) -> npt.NDArray[np.float32]:
    """`logits [G, 16]` where the functions `gates [G]` have changed places with the largest of their gates."""
    changed = logits.copy()
    best = logits.argmax(axis=1)
    # A gate whose logits are 3, 1, 2 and whose function is to be the third becomes 2, 1, 3: the values stay, so that
    # what training knew of the other functions is not lost.
    places = np.flatnonzero(gates != best)
    new, old = gates[places], best[places]
    changed[places, new], changed[places, old] = logits[places, old], logits[places, new]
    # argmax takes the first of equals, so a function that shares the largest logit with an earlier one needs the next
    # larger number.
    tied = places[changed[places].argmax(axis=1) != new]  # another is as large, and comes first
    changed[tied, gates[tied]] = np.nextafter(changed[tied, gates[tied]], np.float32(np.inf))
    return changed
