"""Local search: in the last epochs of a training run, change the hard circuit directly, without gradients.

A nearly correct circuit after gradient descent differs from a correct one in a few gates. An epoch consists of rounds.
Each round tests CANDIDATES circuits exactly, in parallel in the bits of a word. A candidate differs from the current
circuit in the function of one gate. The best candidate replaces the current circuit if it is not worse: accepting equal
circuits, as Cartesian genetic programming does, lets the search drift to circuits that a further change improves.
Mismatches that persist cost more with time (`costs`), as the weights of clauses do in local search for satisfiability,
until correcting them outweighs errors that are easier to correct. Sources: Miller & Thomson, *Cartesian genetic
programming* (2000); Morris, *The breakout method for escaping from local minima* (1993).

Half of the candidates come from a *guide*, a list that is computed at the beginning of an epoch: the most promising
changes of one row of one gate's truth table, by the derivative of the hard circuit's costs. The derivative adds up the
separate effects of a change on all cells and steps in which the gate reads this row. Their joint effect may differ, so
a guide only says what to test first. On the lizard, one in twenty changes of the guide improves the circuit, compared
with less than one in a hundred other changes.

All numbers are integers, and random ones depend only on the seed and the epoch, so that every machine gives the same
results, also after a resume. Only the last entries of a guide may differ, if derivatives are not exact in float32.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.gates import TRUTH

STREAM = 0x73657474
"""Constant ("sett") that `fold_in` mixes into the seed's key, followed by the epoch, to sample the random words."""
LANES = 64
"""Number of lanes, which are circuits tested in parallel, one per bit of a word. Lane 0 is the current circuit."""
CANDIDATES = LANES - 1
ROUNDS = 16
"""Number of rounds after which costs of mismatches may rise; the number of rounds per epoch derives from it."""
DRAWN = 4
"""Number of random words per lane and round."""
WHERE, HOW_FAR, FUNCTION, SIDES = range(DRAWN)
"""Indices of a candidate's random words: the gate or output to begin at, the number of wires to follow backward, the
new function, and the side of each wire.

An odd lane takes gate number `WHERE % n` of the n gates on which outputs with a loss depend. An even lane begins at the
gate of output `WHERE % loss_channels` and follows `HOW_FAR % layers` wires backward, at most to the first layer of the
update network; bit k of SIDES selects input A (0) or B (1) for wire k. The function g of the gate there becomes
`(g + 1 + FUNCTION % 15) % 16`, which is never g. With a guide of n changes, lanes from GUIDED on take change number
`WHERE % n` of the guide. Lane 0 is the current circuit, and its WHERE chooses among equally good candidates.
"""
STEADY, FEW = 50, 64
"""Thresholds of mismatches. Costs do not rise while an epoch corrects at least 1 of STEADY mismatches: with hundreds of
risen costs, one correction would outweigh many new errors. With at most FEW mismatches, costs always rise."""
GUIDED = LANES // 2
"""Index of the first lane that tests changes from the guide."""
MOST = 128
"""Maximum number of changes that a guide lists."""
NO_GUIDE = np.zeros((0, 2), dtype=np.int64)
"""Guide that lists no changes."""

Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class LocalSearch(Protocol):
    """Protocol of the local search of an engine for one job."""

    def search(self, gates: Array, costs: Words, words: Words, rises: bool, guide: Array = NO_GUIDE) -> None:
        """Run one epoch with the random words `words [rounds, LANES, DRAWN]` and a guide from `promising`.

        Changes the gate ids `gates [G]` in place. Also raises `costs`, uint32 `[J, loss_channels, P*H*W]`, in place if
        `rises` is True and the epoch is `stuck`. Nothing changes if there are no mismatches.
        """

    def slopes(self, gates: Array, costs: Words) -> npt.NDArray[np.floating[Any]]:
        """Return the derivatives `[G, 4]` of the total cost with respect to the entries of the gates' truth tables."""

    def wrong(self, gates: Array) -> npt.NDArray[np.bool_]:
        """Return the mask of mismatches on evaluation grids for `gates [G]`, bool `[J, loss_channels, P*H*W]`."""


def rounds(config: Config, probes: int) -> int:
    """Return the number of rounds per epoch, inversely proportional to `probes`, the number of evaluation grids."""
    return max(1, ROUNDS * config.train.batch // probes)


def costs_rise(epoch: int, rounds: int) -> bool:
    """Return whether costs may rise after `epoch`, counted from 1: each time another ROUNDS rounds are complete."""
    # With 2 rounds per epoch, 16 rounds end after epochs 8, 16, 24 and so on.
    return epoch * rounds // ROUNDS != (epoch - 1) * rounds // ROUNDS


def stuck(before: int, now: int) -> bool:
    """Return whether an epoch that reduced mismatches from `before` to `now` is stuck: see STEADY and FEW."""
    # If 147 of 150 mismatches are left, three were corrected, which is more than a fiftieth: not stuck.
    return now <= FEW or STEADY * (before - now) < now


def promising(gates: Array, slopes: npt.NDArray[np.floating[Any]]) -> Array:
    """Return the guide for `gates [G]`; `slopes [G, 4]` are the derivatives from `LocalSearch.slopes`.

    The guide is int64 `[n, 2]`, the best change first. A row contains the index of a gate and the bit of its id to
    invert, as a power of two. By the derivative, each change lowers the costs.
    """
    # An entry 1 can only become 0, and an entry 0 only 1. For gate 6, XOR, 0 1 1 0, with slopes -2, -1, 3 and 1, the
    # first change lowers the costs by 2, and the third by 3: bits 8 and 2 of the id.
    change = ((1 - 2 * TRUTH[gates]) * slopes).reshape(-1)
    best = np.argsort(change, kind="stable")[:MOST]
    best = best[change[best] < 0]
    return np.stack([best // 4, 8 >> best % 4], axis=1)


def draw(seed: int, epoch: int, rounds: int) -> Words:
    """Sample the random words of an epoch, uint32 `[rounds, LANES, DRAWN]`."""
    key = prng.fold_in(prng.fold_in(prng.key_from_seed(seed), STREAM), epoch)
    return prng.random_bits(key, rounds * LANES * DRAWN).reshape(rounds, LANES, DRAWN)


def fresh_costs(config: Config, probes: int) -> Words:
    """Return the initial costs of all possible mismatches, which are 1, uint32 `[J, loss_channels, probes*H*W]`."""
    task = config.task
    shape = len(task.judged_steps), task.loss_channels, probes * task.height * task.width
    return np.ones(shape, dtype=np.uint32)


def chosen(logits: npt.NDArray[np.float32], gates: Array) -> npt.NDArray[np.float32]:
    """Return a copy of `logits [G, 16]` with swapped values, so that `gates [G]` are the most probable functions."""
    changed = logits.copy()
    best = logits.argmax(axis=1)
    # Logits 3, 1, 2 of a gate that gets its third function become 2, 1, 3: the set of values stays the same.
    places = np.flatnonzero(gates != best)
    new, old = gates[places], best[places]
    changed[places, new], changed[places, old] = logits[places, old], logits[places, new]
    # argmax returns the first of equal logits: if an earlier function has the same logit, use the next larger float.
    tied = places[changed[places].argmax(axis=1) != new]
    changed[tied, gates[tied]] = np.nextafter(changed[tied, gates[tied]], np.float32(np.inf))
    return changed
