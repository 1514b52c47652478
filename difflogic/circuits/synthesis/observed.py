"""Rule induction: find the simplest local rule that explains all observed transitions.

Samples of one step show only part of a truth table, usually a tiny part: nine cells of three bits have 2^27 states. For
each state of the cell, the search finds a few *features* that determine each bit of the next state. A feature is the
number of certain neighbours in certain states, such as the number of all eight that are in state 1. The cost of a set
of features is its description length (Rissanen 1978): undetermined bits, and combinations of feature values. The
search changes one feature, cell or state at a time while the cost falls.

Example: for state 2 of a cyclic automaton of five states, the feature `cells at the four sides in state 3` has five
combinations and leaves no bit undetermined: a table of five entries explains all 13,000 samples.
"""

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
"""Maximum number of channels, since nine cells must fit in an integer: six channels take 54 bits."""
MOST_PATCHES = 1 << 17
"""Maximum number of distinct patches to explain, which takes seconds."""
MOST_CODES = 1 << 12
"""Maximum number of possible combinations of feature values in a rule."""
CODE, FEATURE, IRREGULAR = 8.0, 8.0, 16.0
"""Cost in bits per combination, per feature, and per feature on cells other than all, sides, diagonals or one."""
STRICTER, STRICTEST = 4.0, 4.0**6
"""Factor by which the weight of undetermined bits grows until there are none, and maximum weight."""
NEARLY_ALL = 0.9
"""Share of all neighbourhoods that the samples must contain for a rule longer than the samples to be accepted."""
SIDES, DIAGONALS = (1, 3, 5, 7), (0, 2, 6, 8)
"""Positions of the side neighbours and of the diagonal neighbours in a 3x3 patch."""

Numbers = npt.NDArray[np.int64]


class Feature(NamedTuple):
    """Number of `cells` that are in one of `states`; cells are numbered within the neighbourhood."""

    cells: frozenset[int]
    states: frozenset[int]


Features = tuple[Feature, ...]


def observed(samples: Dataset, periodic: bool, neighbourhood: str) -> XAG | None:
    """Return a graph from the 9*C bits of a patch to the cell's next C bits that is correct on all samples.

    Return None if samples contain no single steps, contradict each other, have too many bits or fit no simple rule.
    """
    pairs, cells = samples.single_steps(), wiring.NEIGHBOURHOODS[neighbourhood]
    channels = samples.x.shape[-1]
    if pairs is None or channels > MOST_CHANNELS:
        return None
    powers, counts = 1 << np.arange(channels), (pairs.y >= 0).all(axis=-1).reshape(-1)
    cells_seen = surroundings(pairs.x, periodic, neighbourhood).reshape(-1, len(cells), channels)[counts] @ powers
    after = pairs.y.reshape(-1, channels)[counts] @ powers
    numbers = cells_seen @ (1 << channels * np.arange(len(cells)))
    first, kinds = np.unique(numbers, return_index=True, return_inverse=True)[1:]
    if (after != after[first[kinds]]).any():
        return None
    shown = len(first) / (1 << len(cells) * channels)
    first = first[:: math.ceil(len(first) / MOST_PATCHES)]
    cells_seen, after = cells_seen[first], after[first]
    builder, own = Builder(wiring.PATCH * channels), cells_seen[:, len(cells) // 2]
    inputs = [[input_literal(wiring.PATCH * channel + cell) for channel in range(channels)] for cell in cells]
    outputs, saved = [], 0.0
    for bit in range(channels):
        by_state: list[int | None] = [None] * (1 << channels)
        for state in np.unique(own):
            view = _View(cells_seen[own == state], after[own == state] >> bit & 1, cells, channels)
            features = view.explained()
            if features is None:
                return None
            by_state[state] = _built(builder, features, view.table(features), inputs)
            saved += view.cost((), 1.0) - view.cost(features, 1.0)
        for mine in inputs[len(cells) // 2]:
            halves = zip(by_state[::2], by_state[1::2], strict=True)
            by_state = [_either(builder, mine, zero, one) for zero, one in halves]
        outputs.append(by_state[0] or 0)
    # A rule longer than the samples memorises them, which is fine only if they show nearly all neighbourhoods.
    return builder.finish(outputs) if saved >= 0 or shown >= NEARLY_ALL else None


class _View:
    """Samples of cells in one state: neighbourhoods `[N, cells]`, and one bit of each cell's next state."""

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
        """Return the cheapest features found that determine the bit in all samples, or None."""
        features: Features = ()
        strictness = 1.0
        while strictness <= STRICTEST:
            features = self._cheapest(features, strictness)
            if not self.open_bits(features)[0]:
                return features
            strictness *= STRICTER
        return None

    def _cheapest(self, features: Features, strictness: float) -> Features:
        def cheapest(others: Iterator[Features]) -> tuple[float, Features]:
            return min(((self.cost(other, strictness), other) for other in others), default=(math.inf, features))

        best = self.cost(features, strictness)
        while True:
            price, changed = cheapest(self._changed(features))
            if price >= best and self.open_bits(features)[0]:
                # Try pairs too, since a single input of a parity gives no information.
                price, changed = cheapest(features + pair for pair in itertools.combinations(self._bits, 2))
            if price >= best:
                return features
            best, features = price, changed

    def _changed(self, features: Features) -> Iterator[Features]:
        """Yield all lists of features that differ from `features` by one feature, cell or state."""
        yield from ((*features, feature) for feature in self._first if feature not in features)
        for place, (cells, states) in enumerate(features):
            others = features[:place] + features[place + 1 :]
            yield others
            yield from ((*others, Feature(cells, states ^ {state})) for state in self._states)
            yield from ((*others, Feature(cells ^ {cell}, states)) for cell in self._neighbours if cells != {cell})

    def cost(self, features: Features, strictness: float) -> float:
        """Return the description length of the features, with undetermined bits weighted by `strictness`."""
        bits, codes = self.open_bits(features)
        irregular = sum(feature.cells not in self._groups for feature in features)
        return strictness * bits + CODE * codes + FEATURE * len(features) + IRREGULAR * irregular

    def open_bits(self, features: Features) -> tuple[float, int]:
        """Return the total conditional entropy in bits given the features, and the number of observed combinations."""
        size = math.prod(len(feature.cells) + 1 for feature in features)
        if size > MOST_CODES:
            return math.inf, 0
        counts = np.bincount(2 * self._codes(features) + self._after, minlength=2 * size).reshape(size, 2)
        counts = counts[counts.any(axis=1)]
        # A combination seen n times, k times with a 1, contributes n H(k / n) bits.
        shares = counts / counts.sum(axis=1, keepdims=True)
        return float(-(counts * np.log2(shares, where=counts > 0, out=np.zeros_like(shares))).sum()), len(counts)

    def table(self, features: Features) -> npt.NDArray[np.int8]:
        """Return the bit of each combination, `[cells + 1, ...]`; unseen ones have the bit of the nearest seen one."""
        shape = [len(feature.cells) + 1 for feature in features]
        flat = np.full(math.prod(shape), -1, dtype=np.int8)
        flat[self._codes(features)] = self._after
        # The distance from 0 to 1 is larger than from 4 to 5, since rules distinguish none, few and many.
        where = np.log1p(np.indices(shape).reshape(len(shape), flat.size).T)
        seen = np.flatnonzero(flat >= 0)
        for code in np.flatnonzero(flat < 0):
            flat[code] = flat[seen[np.abs(where[seen] - where[code]).sum(axis=1).argmin()]]
        return flat.reshape(shape)

    def _codes(self, features: Features) -> Numbers:
        codes = np.zeros(len(self._after), dtype=np.int64)
        for feature in features:
            codes = codes * (len(feature.cells) + 1) + self._values(feature)
        return codes

    def _values(self, feature: Feature) -> Numbers:
        if feature not in self._known:
            is_counted = np.isin(np.arange(max(self._states) + 1), list(feature.states))
            self._known[feature] = is_counted[self._seen[sorted(feature.cells)]].sum(axis=0, dtype=np.int8)
        return self._known[feature]


def _built(builder: Builder, features: Features, table: npt.NDArray[np.int8], inputs: Sequence[Sequence[int]]) -> int:
    """Build `table` on the values of features, and return its literal; `inputs[cell]` are literals of a cell's bits."""
    bits, weights = list[int](), list[int]()
    for feature in features:
        states = tuple(int(state in feature.states) for state in range(1 << len(inputs[0])))
        is_in = [decided(builder, states, inputs[cell], {}) for cell in sorted(feature.cells)]
        weights.append(1 << len(bits))
        bits += counted(builder, is_in)
    entries: list[Entry] = [None] * (1 << len(bits))
    for values, bit in np.ndenumerate(table):
        entries[sum(value * weight for value, weight in zip(values, weights, strict=True))] = int(bit)
    return decided(builder, tuple(entries), bits, {})


def _either(builder: Builder, bit: int, zero: int | None, one: int | None) -> int | None:
    """Build `one` if `bit` is 1, else `zero`, and return its literal; None is a don't care, for an unseen state."""
    if zero is None or one is None:
        return one if zero is None else zero
    return builder.xor(zero, builder.and_(bit, builder.xor(zero, one)))
