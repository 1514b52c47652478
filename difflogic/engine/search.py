"""Local search: the last epochs of a training change the hard circuit itself, without gradients.

A nearly correct circuit after gradient descent differs from a correct one in a few gates. An epoch does rounds of
changes: in each, CANDIDATES circuits that differ from the current one in the function of one gate are tested exactly,
in parallel in the bits of a word, and the best replaces the current one if it is not worse. Equal circuits are
accepted, as in Cartesian genetic programming, so that the search drifts to one that a further change improves. Values
that stay wrong cost more with time (`costs`), until correcting them outweighs errors that are easier to correct, as
weights of clauses do in local search for satisfiability. Sources: Miller & Thomson, *Cartesian genetic programming*
(2000); Morris, *The breakout method for escaping from local minima* (1993).

Half of the changes are taken from a *guide*, which is made at the beginning of an epoch: the most promising changes of
one row of one gate's truth table, by the derivative of the costs of the hard circuit. That adds up the effect of a
change in each cell and step in which the gate reads this row; the changes together may have another effect, so that a
guide is only an order of tests. On the lizard, one in twenty changes of the guide improves the circuit, and less than
one in a hundred others.

All numbers are integers, sampled by the seed and the epoch: the same on every machine, and after a resume. Only the
last entries of a guide may differ, if derivatives exceed the exact integers of float32.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.gates import TRUTH

STREAM = 0x73657474
"""`fold_in` data of the search ("sett", which must not change); the epoch is folded into the result."""
LANES = 64
"""Number of circuits that are tested at once, one per bit of a word. The first is the current one."""
CANDIDATES = LANES - 1
ROUNDS = 16
"""Number of rounds between two rises of the costs, and per epoch if a test has as many samples as a train step."""
DRAWN = 4
"""Number of random words per lane and round."""
WHERE, HOW_FAR, FUNCTION, SIDES = range(DRAWN)
"""Indices of a candidate's random words: its start, the number of gates back from there, the function, the inputs
that are followed.

An odd lane takes gate number `WHERE % n` of the n gates that a value with a loss depends on. An even lane begins at the
gate of output `WHERE % loss_channels` and goes back through `HOW_FAR % layers` wires, at most to the first layer of the
update network; bit k of SIDES selects input A (0) or B (1) for wire k. The function g of the gate there becomes
`(g + 1 + FUNCTION % 15) % 16`, which is never g. With a guide of n changes, lanes from GUIDED on take change number
`WHERE % n` of the guide. Lane 0 is the current circuit, and its WHERE chooses among equally good candidates.
"""
STEADY, FEW = 50, 64
"""Costs do not rise while an epoch corrects at least one in STEADY mismatches: if the costs of hundreds of values had
risen, correcting one would outweigh many new errors. With at most FEW mismatches they always rise."""
GUIDED = LANES // 2
"""First lane that follows the guide."""
MOST = 128
"""Maximum number of changes of a guide."""
NO_GUIDE = np.zeros((0, 2), dtype=np.int64)
"""Empty guide."""

Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class LocalSearch(Protocol):
    """Local search for one job on an engine."""

    def search(self, gates: Array, costs: Words, words: Words, rises: bool, guide: Array = NO_GUIDE) -> None:
        """Do one epoch with the random `words [rounds, LANES, DRAWN]` and a guide from `promising`, in place.

        `gates [G]` change, and, if it `rises` and the epoch is stuck, the costs of mismatches, `costs`, uint32
        `[J, loss_channels, P*H*W]`. Nothing changes if there are no mismatches.
        """

    def slopes(self, gates: Array, costs: Words) -> npt.NDArray[np.floating[Any]]:
        """Return the derivatives of the costs with respect to the entries of the gates' truth tables, `[G, 4]`."""

    def wrong(self, gates: Array) -> npt.NDArray[np.bool_]:
        """Return the mismatches of the evaluation grids for `gates [G]`, bool `[J, loss_channels, P*H*W]`."""


def rounds(config: Config, probes: int) -> int:
    """Return the number of rounds of an epoch, lower if a test has more samples than a train step."""
    return max(1, ROUNDS * config.train.batch // probes)


def costs_rise(epoch: int, rounds: int) -> bool:
    """Return whether costs may rise after this epoch, counted from 1: after every ROUNDS rounds."""
    # With 2 rounds per epoch, 16 rounds end after epochs 8, 16, 24 and so on.
    return epoch * rounds // ROUNDS != (epoch - 1) * rounds // ROUNDS


def stuck(before: int, now: int) -> bool:
    """Return whether an epoch has corrected so few of the mismatches that costs rise."""
    # If 147 of 150 mismatches are left, three were corrected, which is more than a fiftieth: not stuck.
    return now <= FEW or STEADY * (before - now) < now


def promising(gates: Array, slopes: npt.NDArray[np.floating[Any]]) -> Array:
    """Return the guide for `gates [G]` with the derivatives `slopes [G, 4]` by the entries of their truth tables.

    The guide is int64 `[n, 2]`, the best change first: a gate, and the bit of its id. Each change lowers the costs.
    """
    # An entry that is 1 can only fall, and one that is 0 only rise. For gate 6, XOR, 0 1 1 0, with slopes -2, -1, 3 and
    # 1, the first change lowers the costs by 2, and the third by 3: bits 8 and 2 of the id.
    change = ((1 - 2 * TRUTH[gates]) * slopes).reshape(-1)
    best = np.argsort(change, kind="stable")[:MOST]
    best = best[change[best] < 0]
    return np.stack([best // 4, 8 >> best % 4], axis=1)


def draw(seed: int, epoch: int, rounds: int) -> Words:
    """Sample the random words of an epoch, uint32 `[rounds, LANES, DRAWN]`."""
    key = prng.fold_in(prng.fold_in(prng.key_from_seed(seed), STREAM), epoch)
    return prng.random_bits(key, rounds * LANES * DRAWN).reshape(rounds, LANES, DRAWN)


def fresh_costs(config: Config, probes: int) -> Words:
    """Return the initial costs of mismatches, uint32 `[J, loss_channels, probes*H*W]` of 1."""
    task = config.task
    shape = len(task.judged_steps), task.loss_channels, probes * task.height * task.width
    return np.ones(shape, dtype=np.uint32)


def chosen(logits: npt.NDArray[np.float32], gates: Array) -> npt.NDArray[np.float32]:
    """Return `logits [G, 16]` in which the logits of `gates [G]` are swapped with the largest of each gate."""
    changed = logits.copy()
    best = logits.argmax(axis=1)
    # Logits 3, 1, 2 of a gate that gets its third function become 2, 1, 3: the set of values stays the same.
    places = np.flatnonzero(gates != best)
    new, old = gates[places], best[places]
    changed[places, new], changed[places, old] = logits[places, old], logits[places, new]
    # argmax takes the first of equals: a function whose logit equals that of an earlier one gets the next larger float.
    tied = places[changed[places].argmax(axis=1) != new]
    changed[tied, gates[tied]] = np.nextafter(changed[tied, gates[tied]], np.float32(np.inf))
    return changed
