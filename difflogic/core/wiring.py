"""The wiring says which inputs each gate reads: fixed at the start, or chosen in training among candidates.

`wires` is int `[2, n_out]`: row 0 indexes input `a`, row 1 input `b`. `connections` names the scheme.
Source: the authors' notebook, `get_moore_connections`, `get_unique_connections`, `get_random_connections`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import gates, prng
from difflogic.errors import CircuitError

Array = npt.NDArray[Any]
Wires = npt.NDArray[np.int64]

CANDIDATES = (1, 2, 4, 8, 16)
"""Numbers of inputs that a wire may be chosen among: the logits of a wire lie in one row of 16."""
CANDIDATE_STREAM = 0x77697265
"""`fold_in` data of the candidates ("wire")."""
BLOCK = 64
"""Consecutive gates of a layer whose wires share their candidates, so that these stay in the nearest cache."""

CENTRE = 4
"""Index of the cell itself in a 3x3 patch, `3*dy + dx`."""
PATCH = 9

NEIGHBOURHOODS: dict[str, tuple[int, ...]] = {
    "moore": tuple(range(PATCH)),
    "von-neumann": (1, 3, 4, 5, 7),
    "hex": (0, 1, 3, 4, 5, 7, 8),
    "line": (3, 4, 5),
}
"""The cells of a patch that perception may read, the cell itself in their middle.

Engines take the whole patch; what must not be read is simply wired to nothing. Hexagons lie on the square grid as they
do in Golly: each row is half a cell to the left of the one above, so that a cell does not touch those at its top right
and its bottom left.
"""


def first_kernel(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """Each neighbour, in random order, against the centre; where there are more gates than neighbours, some again."""
    known = n_in if n_in in map(len, NEIGHBOURHOODS.values()) else PATCH
    if n_in != known or not known - 1 <= n_out < PATCH:
        most = "8" if known == PATCH else f"{known - 1} to 8"
        raise CircuitError(
            f"first_kernel wires {known} inputs to {most} gates, not {n_in} to {n_out}; use unique or random."
        )
    neighbours = np.array([cell for cell in range(n_in) if cell != n_in // 2])
    # Each gate of the first layer compares the cell with one neighbour: all cells of the neighbourhood are read. Which
    # neighbours are read twice, where not all can be, is drawn too: kernels that have their own wiring then differ.
    if len(neighbours) < n_out:
        neighbours = neighbours[prng.permutation(prng.fold_in(key, n_in), len(neighbours))]
    return np.stack([neighbours[prng.permutation(key, n_out) % len(neighbours)], np.full(n_out, n_in // 2)])


def unique_pairs(n_in: int, n_out: int) -> Wires:
    """The first `n_out` distinct pairs `(i, i + offset)`, before they are permuted.

    In order: (0,1),(2,3),...; then (1,2),(3,4),...; then every pair of offset 2, 3, ...
    Raises CircuitError where fewer than `n_out` pairs exist.
    """
    # For 4 inputs: (0,1) (2,3), then (1,2), then (0,2) (1,3), then (0,3). Half as many gates as inputs read each once.
    pairs = [(i, i + 1) for i in range(0, n_in - 1, 2)]
    if len(pairs) < n_out:
        pairs += [(i, i + 1) for i in range(1, n_in - 1, 2)]
    offset = 2
    while len(pairs) < n_out:
        if offset >= n_in:
            raise CircuitError(
                f"unique connections can wire {n_in} inputs to at most {len(pairs)} gates, {n_out} were asked for; "
                "narrow the layer or use random connections."
            )
        pairs += [(i, i + offset) for i in range(n_in - offset)]
        offset += 1
    return np.array(pairs[:n_out], dtype=np.int64).T


def unique(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """`unique_pairs` in random order."""
    return unique_pairs(n_in, n_out)[:, prng.permutation(key, n_out)]


def random(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """Two draws per gate; every input is used about equally often."""
    # A permutation of 2 * n_out numbers modulo n_in hits every input equally often, but for the remainder; the second
    # permutation decides which inputs get the remainder.
    key_inputs, key_draws = prng.split(key)
    draws = prng.permutation(key_draws, 2 * n_out) % n_in
    draws = prng.permutation(key_inputs, n_in)[draws]
    return np.stack([draws[:n_out], draws[n_out:]])


SCHEMES = {"first_kernel": first_kernel, "unique": unique, "random": random}


def make_wires(scheme: str, key: prng.Key, n_in: int, n_out: int, among: Sequence[int] | None = None) -> Wires:
    """Wires int `[2, n_out]` into `n_in` inputs, or into those of them that are named, by the scheme of that name."""
    if scheme not in SCHEMES:
        raise CircuitError(f"Unknown connections {scheme!r}: expected one of {', '.join(SCHEMES)}.")
    if among is None:
        return SCHEMES[scheme](key, n_in, n_out)
    wires: Wires = np.array(among)[SCHEMES[scheme](key, len(among), n_out)]
    return wires


def candidates(key: prng.Key, wires: Wires, count: int, inputs: Sequence[int]) -> Wires:
    """Draw further candidates for each wire of a layer, as evenly as its wiring reads its inputs.

    Those of a block of gates are what its wires read, and its share of the inputs that no wire reads, dealt in one
    random order after another. They are distinct, but that the first one is repeated if a block has fewer inputs.

    Args:
        key: The key of this layer.
        wires: The fixed wiring, int `[2, n_out]`, which becomes the first candidates.
        count: Candidates of each wire, k.
        inputs: The inputs that the layer may read.

    Returns:
        The candidates, int `[2, n_out, k]`.
    """
    unread, drawn = np.setdiff1d(inputs, wires), np.repeat(wires[..., None], count, axis=2)
    firsts = range(0, wires.shape[1], BLOCK)
    for number, first in enumerate(firsts):
        block = drawn[:, first : first + BLOCK].reshape(-1, count)
        pool = np.concatenate([block[:, 0], unread[number :: len(firsts)]])
        key, sub = prng.split(key)
        rounds = -(-(count - 1) * len(block) // len(pool))
        words = prng.random_bits(sub, rounds * len(pool)).reshape(rounds, len(pool))
        dealt = pool[np.argsort(words, axis=1, kind="stable")].reshape(-1)
        for rank in range(1, count):
            # A wire takes the input in its place, or the next one that it does not have yet.
            missing, turn = np.arange(len(block)), (rank - 1) * len(block)
            while len(missing) and turn < (rank - 1) * len(block) + len(dealt):
                block[missing, rank] = dealt[(missing + turn) % len(dealt)]
                missing = missing[(block[missing, :rank] == block[missing, rank, None]).any(axis=1)]
                turn += 1
            block[missing, rank] = block[missing, 0]
        drawn[:, first : first + BLOCK] = block.reshape(2, -1, count)
    return drawn


def rows(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what stands for each candidate, `[G, 2, k]`, in rows of as many as a gate has logits, `[R, 16]`."""
    flat = logits.reshape(-1)
    return np.pad(flat, (0, -len(flat) % gates.GATE_COUNT)).reshape(-1, gates.GATE_COUNT)


def one_hot(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """1 at the largest of `logits [..., k]`, of equals the first, else 0."""
    return np.asarray(np.eye(logits.shape[-1], dtype=logits.dtype)[logits.argmax(axis=-1)])


def repeated(candidates: Wires) -> npt.NDArray[np.bool_]:
    """Return which candidates, int `[..., k]`, repeat an earlier one of their wire."""
    equal = candidates[..., :, None] == candidates[..., None, :]
    return np.asarray(np.tril(equal, -1).any(axis=-1))


def check_within(neighbourhood: str, cells: Iterable[int]) -> None:
    """Raises CircuitError where one of these cells of a patch is not of the neighbourhood, or that is unknown."""
    if neighbourhood not in NEIGHBOURHOODS:
        raise CircuitError(f"Unknown neighbourhood {neighbourhood!r}: expected one of {', '.join(NEIGHBOURHOODS)}.")
    known = NEIGHBOURHOODS[neighbourhood]
    if beyond := sorted(set(cells).difference(known)):
        raise CircuitError(
            f"The circuit reads cell {beyond[0]} of the patch, which is not of the neighbourhood {neighbourhood}: that "
            f"has the cells {', '.join(map(str, known))}."
        )


ALL_ROUND_STREAM = 0x616C6C72
"""`fold_in` data of the turn and the mirror of `begin_all_round` ("allr")."""
RING = (1, 2, 5, 8, 7, 6, 3, 0)
"""The neighbours in a 3x3 patch clockwise, from the one above: sides are even, diagonals odd."""
BEGINNINGS = {
    "moore": ((7,), (0, 1), (3,), (5,)),
    "von-neumann": ((0,), (1,), (2,), (3,)),
    "hex": ((0, 1), (2,), (3, 4), (5,)),
    "line": ((0,), (1,), (0,), (1,)),
}
"""Of each perception kernel the places on the ring that it begins with, where nothing is turned or mirrored. The ring
of a neighbourhood has its own cells alone."""
ALL_ROUND_KERNELS = 4
STRAIGHT = 4
"""Channels of a cycle, which hand a signal on to each other."""


def begin_all_round(
    logits: Sequence[Array], wires: Sequence[Array], key: prng.Key, neighbourhood: str = "moore"
) -> None:
    """Swap wires of the first layer, and set a last gate to OR, in place: perception as `all_round` has it begin.

    Where all gates pass A on, a perception kernel's output is one neighbour's bit, so that a signal moves one way
    only. Four kernels with neighbours drawn at random rarely lead everywhere within the steps, and a cell that no
    signal reaches cannot learn to differ from the others of its kind. Four diagonals and one side do: in `n + 1`
    steps to each cell within `n`. In the other neighbourhoods every neighbour is one of the beginnings.

    `logits[l]` float `[K, out, 16]`, every gate the pass-through; `wires[l]` int `[K, 2, out]`, the first layer
    `first_kernel`, whose row 0 has each neighbour. `key` says how the ring is turned and mirrored.
    """
    turn, mirror = (int(word) for word in prng.random_bits(key, 2))
    ring = [cell for cell in RING if cell in NEIGHBOURHOODS[neighbourhood]]
    # Of the eight, sides stay sides: by quarters alone.
    turn *= 2 if len(ring) == len(RING) else 1
    for kernel, places in enumerate(BEGINNINGS[neighbourhood]):
        kernel_wires = [layer[kernel] for layer in wires]
        last = logits[-1][kernel, 0]
        if len(places) > 1:
            last[[gates.PASS_THROUGH, gates.OR]] = last[[gates.OR, gates.PASS_THROUGH]]
        neighbours = kernel_wires[0][0]
        for place, bit in zip(places, kernel_wires[-1][:, 0], strict=False):
            # The gate whose neighbour arrives at this output, and the one that has the neighbour we want, swap.
            here = _passed_on(kernel_wires[:-1], int(bit))
            wanted = ring[(turn + (-place if mirror & 1 else place)) % len(ring)]
            there = int(np.flatnonzero(neighbours == wanted)[0])
            neighbours[[here, there]] = neighbours[[there, here]]


def lead_straight(wires: Sequence[Array], channels: int, bits: int) -> None:
    """Swap wires of the update network's first layer, in place: half of the channels lead signals straight on.

    Where all gates pass A on, a channel becomes what some kernel says of some channel. Both are drawn at random, so
    that a signal turns at every step, and few get far. Here each of four channels becomes what the same kernel says of
    the next of them: what one of them has goes on in that kernel's direction for as long as there are steps. The other
    half stays as drawn, for signals that all go straight leave out what lies between.

    `wires[l]` int `[2, out]`. Of its inputs the first are the cell's `channels`, then come the `bits` that perception
    says of each channel, those of a kernel's first output first.
    """
    layer, taken = wires[0], set[int]()
    for channel in range(channels // 2):
        cycle, place = divmod(channel, STRAIGHT)
        source = (STRAIGHT * cycle + (place + 1) % STRAIGHT) % channels
        wanted = channels + source * bits + cycle % ALL_ROUND_KERNELS
        here = _passed_on(wires, channel)
        # The first gate that reads the bit, as A or as B, and that no other channel has, comes here and hands it on.
        there = next((int(each) for each in np.flatnonzero((layer == wanted).any(axis=0)) if each not in taken), here)
        layer[:, [here, there]] = layer[:, [there, here]]
        if layer[1, here] == wanted:
            layer[:, here] = layer[::-1, here]
        taken.add(here)


def _passed_on(wires: Sequence[Array], bit: int) -> int:
    """The gate of the first layer whose bit pass-through gates hand on as that bit of the last layer."""
    for layer in reversed(wires[1:]):
        bit = int(layer[0, bit])
    return bit
