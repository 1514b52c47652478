"""A circuit from observation: what cells were seen to become decides how they do it, the simplest way that fits.

Samples of one step are a part of a truth table, of all that a cell sees to what it becomes, and mostly a tiny one: nine
cells of three bits have 2^27 states. A right circuit must know what matters. So for each state of the cell itself, and
each bit that it becomes, a few *features* are sought that decide the bit. A feature counts some of the neighbours that
are in some of the states: the bit of one neighbour is a feature, and so is the number of all eight in state 1. Each set
of features is charged for what it leaves open and for each combination that it tells apart (minimum description length,
Rissanen 1978), and changed by one feature, one cell or one state at a time for as long as it gets cheaper.

Example: of a cyclic automaton of five states in state 2, the feature `cells at the four sides in state 3` costs five
combinations and leaves nothing open. All 13,000 samples of state 2 are then told by a table of five entries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.symmetric import Entry, counted, decided
from difflogic.circuits.synthesis.xag import XAG, Builder, input_literal
from difflogic.config.dataset import Dataset
from difflogic.core import wiring
from difflogic.core.neighbourhoods import surroundings

MOST_CHANNELS = 6
"""What nine cells of so many bits see is a number of 54."""
MOST_PATCHES = 1 << 17
"""Of different patches so many are looked at, which takes seconds."""
MOST_CODES = 1 << 12
"""Combinations of features: more are no simple rule."""
CODE, FEATURE, IRREGULAR = 8.0, 8.0, 16.0
"""Bits that a combination costs, a feature, and one more whose cells are neither all, sides, diagonals nor one."""
STRICTER, STRICTEST = 4.0, 4.0**6
"""What is left open costs so many times as much again, until nothing is."""
NEARLY_ALL = 0.9
"""Of all that cells can see."""
SIDES, DIAGONALS = (1, 3, 5, 7), (0, 2, 6, 8)
"""Of a patch."""

Numbers = npt.NDArray[np.int64]


class Feature(NamedTuple):
    """How many of these cells are in one of these states; cells are numbered within the neighbourhood."""

    cells: frozenset[int]
    states: frozenset[int]


Features = tuple[Feature, ...]


def observed(samples: Dataset, periodic: bool, neighbourhood: str) -> XAG | None:
    """Return a graph from the 9*C bits of a patch to the cell's next C bits, right on all that the samples show.

    None where no simple one is: where samples are not of single steps, or do not show all of a state, where equal cells
    become different ones, or too many features are needed.
    """
    pairs, cells = samples.single_steps(), wiring.NEIGHBOURHOODS[neighbourhood]
    channels = samples.x.shape[-1]
    if pairs is None or channels > MOST_CHANNELS:
        return None
    powers, counts = 1 << np.arange(channels), (pairs.y >= 0).all(axis=-1).reshape(-1)
    seen = surroundings(pairs.x, periodic, neighbourhood).reshape(-1, len(cells), channels)[counts] @ powers
    after = pairs.y.reshape(-1, channels)[counts] @ powers
    # A patch is a number: equal ones, of which the first says what they become.
    numbers = seen @ (1 << channels * np.arange(len(cells)))
    first, kinds = np.unique(numbers, return_index=True, return_inverse=True)[1:]
    if (after != after[first[kinds]]).any():
        return None
    shown = len(first) / (1 << len(cells) * channels)
    first = first[:: math.ceil(len(first) / MOST_PATCHES)]
    seen, after = seen[first], after[first]
    builder, own = Builder(wiring.PATCH * channels), seen[:, len(cells) // 2]
    inputs = [[input_literal(wiring.PATCH * channel + cell) for channel in range(channels)] for cell in cells]
    outputs, saved = [], 0.0
    for bit in range(channels):
        by_state: list[int | None] = [None] * (1 << channels)
        for state in np.unique(own):
            view = _View(seen[own == state], after[own == state] >> bit & 1, cells, channels)
            features = view.explained()
            if features is None:
                return None
            by_state[state] = _built(builder, features, view.table(features), inputs)
            saved += view.cost((), 1.0) - view.cost(features, 1.0)
        for mine in inputs[len(cells) // 2]:
            halves = zip(by_state[::2], by_state[1::2], strict=True)
            by_state = [_either(builder, mine, zero, one) for zero, one in halves]
        outputs.append(by_state[0] or 0)
    # What is not shorter than the samples themselves was learned by heart: that does where they show nearly all.
    return builder.finish(outputs) if saved >= 0 or shown >= NEARLY_ALL else None


class _View:
    """What cells of one state saw, as states `[N, cells]`, and whether a bit was 1 in what each became."""

    def __init__(self, seen: Numbers, after: Numbers, cells: Sequence[int], channels: int) -> None:
        self._seen, self._after, self._known = np.ascontiguousarray(seen.T), after, dict[Feature, Numbers]()
        neighbours = [place for place in range(len(cells)) if place != len(cells) // 2]
        self._neighbours = frozenset(neighbours)
        self._states = frozenset(np.unique(seen[:, neighbours]).tolist())
        groups = [{place for place in neighbours if cells[place] in some} for some in (cells, SIDES, DIAGONALS)]
        alone = [frozenset([place]) for place in neighbours]
        self._groups = list(dict.fromkeys([*map(frozenset, groups), *alone]))
        bits = [frozenset(state for state in self._states if state >> bit & 1) for bit in range(channels)]
        bits = [states for states in bits if states not in (frozenset(), self._states)]
        kinds = dict.fromkeys([*bits, *(frozenset([state]) for state in self._states)])
        self._bits = [Feature(cell, states) for cell in alone for states in bits]
        self._first = [Feature(group, states) for group in self._groups if group for states in kinds]

    def explained(self) -> Features | None:
        """Return the cheapest features found that leave nothing open."""
        found: Features = ()
        strictness = 1.0
        while strictness <= STRICTEST:
            found = self._cheapest(found, strictness)
            if not self.open_bits(found)[0]:
                return found
            strictness *= STRICTER
        return None

    def _cheapest(self, found: Features, strictness: float) -> Features:
        best = self.cost(found, strictness)
        while True:
            price, changed = min(
                ((self.cost(each, strictness), each) for each in self._changed(found)), default=(math.inf, found)
            )
            if price >= best and self.open_bits(found)[0]:
                # Alone a part of a parity says nothing.
                pairs = (found + pair for pair in itertools.combinations(self._bits, 2))
                price, changed = min(((self.cost(each, strictness), each) for each in pairs), default=(math.inf, found))
            if price >= best:
                return found
            best, found = price, changed

    def _changed(self, found: Features) -> Iterator[Features]:
        """With a feature more, without one, or with a cell or a state of one changed."""
        yield from ((*found, each) for each in self._first if each not in found)
        for place, (cells, states) in enumerate(found):
            others = found[:place] + found[place + 1 :]
            yield others
            yield from ((*others, Feature(cells, states ^ {state})) for state in self._states)
            yield from ((*others, Feature(cells ^ {cell}, states)) for cell in self._neighbours if cells != {cell})

    def cost(self, features: Features, strictness: float) -> float:
        """Return the bits that the features take, and what they leave open so many times over."""
        left, codes = self.open_bits(features)
        irregular = sum(each.cells not in self._groups for each in features)
        return strictness * left + CODE * codes + FEATURE * len(features) + IRREGULAR * irregular

    def open_bits(self, features: Features) -> tuple[float, int]:
        """Return the bits that it takes to tell what the features leave open, and how many combinations there are."""
        size = math.prod(len(each.cells) + 1 for each in features)
        if size > MOST_CODES:
            return math.inf, 0
        told = np.bincount(2 * self._codes(features) + self._after, minlength=2 * size).reshape(size, 2)
        told = told[told.any(axis=1)]
        # Of a combination seen n times, k times with a 1, it is n H(k / n).
        shares = told / told.sum(axis=1, keepdims=True)
        return float(-(told * np.log2(shares, where=told > 0, out=np.zeros_like(shares))).sum()), len(told)

    def table(self, features: Features) -> npt.NDArray[np.int8]:
        """`[cells + 1, ...]`, an axis a feature: the bit of each combination, and of one unseen that of the nearest."""
        shape = [len(each.cells) + 1 for each in features]
        flat = np.full(math.prod(shape), -1, dtype=np.int8)
        flat[self._codes(features)] = self._after
        # From 0 to 1 is farther than from 4 to 5: rules ask for none, for some, for more than a few.
        where = np.log1p(np.indices(shape).reshape(len(shape), flat.size).T)
        seen = np.flatnonzero(flat >= 0)
        for code in np.flatnonzero(flat < 0):
            flat[code] = flat[seen[np.abs(where[seen] - where[code]).sum(axis=1).argmin()]]
        return flat.reshape(shape)

    def _codes(self, features: Features) -> Numbers:
        codes = np.zeros(len(self._after), dtype=np.int64)
        for each in features:
            codes = codes * (len(each.cells) + 1) + self._values(each)
        return codes

    def _values(self, feature: Feature) -> Numbers:
        if feature not in self._known:
            is_counted = np.isin(np.arange(max(self._states) + 1), list(feature.states))
            self._known[feature] = is_counted[self._seen[sorted(feature.cells)]].sum(axis=0, dtype=np.int8)
        return self._known[feature]


def _built(builder: Builder, features: Features, table: npt.NDArray[np.int8], inputs: Sequence[Sequence[int]]) -> int:
    """The literal of a table of features; `inputs[cell]` are the literals of a cell's bits."""
    bits, weights = list[int](), list[int]()
    for each in features:
        states = tuple(int(state in each.states) for state in range(1 << len(inputs[0])))
        is_in = [decided(builder, states, inputs[cell], {}) for cell in sorted(each.cells)]
        weights.append(1 << len(bits))
        bits += counted(builder, is_in)
    entries: list[Entry] = [None] * (1 << len(bits))
    for values, bit in np.ndenumerate(table):
        entries[sum(value * weight for value, weight in zip(values, weights, strict=True))] = int(bit)
    return decided(builder, tuple(entries), bits, {})


def _either(builder: Builder, bit: int, zero: int | None, one: int | None) -> int | None:
    """The literal of what is chosen by a bit; what was never seen, None, may be anything."""
    if zero is None or one is None:
        return one if zero is None else zero
    return builder.xor(zero, builder.and_(bit, builder.xor(zero, one)))
