"""Create the wiring of layers: the inputs of each gate, either fixed or as candidates from which training chooses.

Wires are int `[2, n_out]`, the indices of each gate's inputs `a` and `b`. The configuration field `connections` names
the scheme. Source: the authors' notebook, `get_moore_connections`, `get_unique_connections`, `get_random_connections`.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import gates, prng
from difflogic.errors import CircuitError

Array = npt.NDArray[Any]
Wires = npt.NDArray[np.int64]

CANDIDATES = (1, 2, 4, 8, 16)
"""Allowed numbers of candidates per wire; all divide 16, so that a wire's logits fit into one row of 16."""
CANDIDATE_STREAM = 0x77697265
"""Number of the random stream for sampling candidates (argument `data` of `fold_in`): "wire" in ASCII."""
BLOCK = 64
"""Number of consecutive gates whose wires share a pool of candidates, so that these fit into the first-level cache."""

CENTRE = 4
"""Index of the cell itself in its 3x3 patch; indices are `3*dy + dx`, `dy` and `dx` 0 to 2."""
PATCH = 9

NEIGHBOURHOODS: dict[str, tuple[int, ...]] = {
    "moore": tuple(range(PATCH)),
    "von-neumann": (1, 3, 4, 5, 7),
    "hex": (0, 1, 3, 4, 5, 7, 8),
    "line": (3, 4, 5),
}
"""Mapping from neighbourhoods to the indices of their cells in a 3x3 patch; the middle index is the cell itself.

Engines extract the complete patch, but perception is wired only to these cells. Hexagons are mapped to the square grid
as in Golly: each row is half a cell left of the row above, so a cell does not touch those top right and bottom left.
"""


def first_kernel(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """Return wires that pair each neighbour with the centre in random order; surplus gates repeat some pairs."""
    size = n_in if n_in in map(len, NEIGHBOURHOODS.values()) else PATCH
    if n_in != size or not size - 1 <= n_out < PATCH:
        most = "8" if size == PATCH else f"{size - 1} to 8"
        raise CircuitError(
            f"first_kernel requires {size} inputs and {most} gates, got {n_in} and {n_out}: use unique or random."
        )
    neighbours = np.array([cell for cell in range(n_in) if cell != n_in // 2])
    # Each gate of the first layer combines the cell with one neighbour, so that all neighbours are used. Neighbours
    # that are used twice are sampled, so that kernels with separate wiring differ.
    if len(neighbours) < n_out:
        neighbours = neighbours[prng.permutation(prng.fold_in(key, n_in), len(neighbours))]
    return np.stack([neighbours[prng.permutation(key, n_out) % len(neighbours)], np.full(n_out, n_in // 2)])


def unique_pairs(n_in: int, n_out: int) -> Wires:
    """Return the first `n_out` distinct pairs of inputs, `(i, i + offset)`, in a fixed order.

    The order is (0,1),(2,3),...; then (1,2),(3,4),...; then all pairs of offset 2, of offset 3, ...
    Raises CircuitError if fewer than `n_out` pairs exist.
    """
    # For 4 inputs: (0,1) (2,3), then (1,2), then (0,2) (1,3), then (0,3). The first `n_in / 2` gates use all inputs.
    neighbours = ((i, i + 1) for first in (0, 1) for i in range(first, n_in - 1, 2))
    others = ((i, i + offset) for offset in range(2, n_in) for i in range(n_in - offset))
    pairs = list(islice(chain(neighbours, others), n_out))
    if len(pairs) < n_out:
        raise CircuitError(
            f"Expected at most {len(pairs)} gates for unique connections of {n_in} inputs, got {n_out}: "
            "narrow the layer or use random connections."
        )
    return np.array(pairs, dtype=np.int64).T


def unique(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """Return the pairs of `unique_pairs` in random order."""
    return unique_pairs(n_in, n_out)[:, prng.permutation(key, n_out)]


def random(key: prng.Key, n_in: int, n_out: int) -> Wires:
    """Return two sampled inputs per gate such that all inputs are used about equally often."""
    # A permutation of 2 * n_out numbers modulo n_in contains every input equally often, except for the remainder;
    # the second permutation chooses which inputs the remainder contains.
    key_inputs, key_draws = prng.split(key)
    draws = prng.permutation(key_draws, 2 * n_out) % n_in
    draws = prng.permutation(key_inputs, n_in)[draws]
    return np.stack([draws[:n_out], draws[n_out:]])


SCHEMES = {"first_kernel": first_kernel, "unique": unique, "random": random}


def make_wires(scheme: str, key: prng.Key, n_in: int, n_out: int, among: Sequence[int] | None = None) -> Wires:
    """Return wires int `[2, n_out]` of a scheme in SCHEMES, from all `n_in` inputs or only from the inputs `among`."""
    if scheme not in SCHEMES:
        raise CircuitError(f"Unknown connections {scheme!r}: expected one of {', '.join(SCHEMES)}.")
    if among is None:
        return SCHEMES[scheme](key, n_in, n_out)
    wires: Wires = np.array(among)[SCHEMES[scheme](key, len(among), n_out)]
    return wires


def candidates(key: prng.Key, wires: Wires, count: int, inputs: Sequence[int]) -> Wires:
    """Sample additional candidates for each wire of a layer, such that inputs are used as evenly as in `wires`.

    Each block of gates has a pool: the inputs of its wires and a share of the layer's unused inputs. The pool is
    dealt to the wires of the block, repeatedly in new random orders. The candidates of a wire are distinct; if the
    pool is too small, the first candidate is repeated.

    Args:
        key: Random key of the layer.
        wires: The fixed wiring, int `[2, n_out]`, whose inputs become the first candidates.
        count: Number of candidates per wire, k.
        inputs: Inputs that the layer may use.

    Returns:
        The candidates, int `[2, n_out, k]`.
    """
    unread, sampled = np.setdiff1d(inputs, wires), np.repeat(wires[..., None], count, axis=2)
    firsts = range(0, wires.shape[1], BLOCK)
    for number, first in enumerate(firsts):
        block = sampled[:, first : first + BLOCK].reshape(-1, count)
        pool = np.concatenate([block[:, 0], unread[number :: len(firsts)]])
        key, sub = prng.split(key)
        rounds = -(-(count - 1) * len(block) // len(pool))
        words = prng.random_bits(sub, rounds * len(pool)).reshape(rounds, len(pool))
        dealt = pool[np.argsort(words, axis=1, kind="stable")].reshape(-1)
        for rank in range(1, count):
            # A wire takes the input dealt to it, or the next input in the pool that is not yet one of its candidates.
            missing, turn = np.arange(len(block)), (rank - 1) * len(block)
            while len(missing) and turn < (rank - 1) * len(block) + len(dealt):
                block[missing, rank] = dealt[(missing + turn) % len(dealt)]
                missing = missing[(block[missing, :rank] == block[missing, rank, None]).any(axis=1)]
                turn += 1
            block[missing, rank] = block[missing, 0]
        sampled[:, first : first + BLOCK] = block.reshape(2, -1, count)
    return sampled


def rows(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reshape candidates' values, `[G, 2, k]`, to rows of 16 as for gate logits, `[R, 16]`; zeros pad the last row."""
    flat = logits.reshape(-1)
    return np.pad(flat, (0, -len(flat) % gates.GATE_COUNT)).reshape(-1, gates.GATE_COUNT)


def one_hot(logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array with 1 at the first maximum of `logits [..., k]` along the last axis, and 0 elsewhere."""
    return np.asarray(np.eye(logits.shape[-1], dtype=logits.dtype)[logits.argmax(axis=-1)])


def repeated(candidates: Wires) -> npt.NDArray[np.bool_]:
    """Return the mask `[..., k]` of the candidates that repeat an earlier candidate of their wire."""
    equal = candidates[..., :, None] == candidates[..., None, :]
    return np.asarray(np.tril(equal, -1).any(axis=-1))


def check_within(neighbourhood: str, cells: Iterable[int]) -> None:
    """Raise CircuitError if `neighbourhood` is unknown or does not contain all `cells`, indices in a 3x3 patch."""
    if neighbourhood not in NEIGHBOURHOODS:
        raise CircuitError(f"Unknown neighbourhood {neighbourhood!r}: expected one of {', '.join(NEIGHBOURHOODS)}.")
    allowed = NEIGHBOURHOODS[neighbourhood]
    if beyond := sorted(set(cells).difference(allowed)):
        raise CircuitError(
            f"The circuit reads cell {beyond[0]} of the patch, but the neighbourhood {neighbourhood} only contains "
            f"the cells {', '.join(map(str, allowed))}."
        )


ALL_ROUND_STREAM = 0x616C6C72
"""Number of the random stream of `begin_all_round` (argument `data` of `fold_in`): "allr" in ASCII."""
RING = (1, 2, 5, 8, 7, 6, 3, 0)
"""Indices of neighbours in a 3x3 patch, clockwise from the top: sides at even places, diagonals at odd places."""
BEGINNINGS = {
    "moore": ((7,), (0, 1), (3,), (5,)),
    "von-neumann": ((0,), (1,), (2,), (3,)),
    "hex": ((0, 1), (2,), (3, 4), (5,)),
    "line": ((0,), (1,), (0,), (1,)),
}
"""Indices in the ring of the cells that each perception kernel initially outputs, before rotation and reflection. The
ring of a neighbourhood is RING without the cells outside the neighbourhood."""
ALL_ROUND_KERNELS = 4
STRAIGHT = 4
"""Number of channels per cycle of `lead_straight`, in which each channel depends on the next channel."""


def begin_all_round(
    logits: Sequence[Array], wires: Sequence[Array], key: prng.Key, neighbourhood: str = "moore"
) -> None:
    """Initialize perception for `all_round`, in place: swap first-layer wires, and set some last-layer gates to OR.

    If all gates pass through input `a`, a perception kernel's output is one neighbour's bit, so that signals move in
    one direction. With random neighbours, signals of four kernels rarely reach all cells within the steps, and a cell
    that is not reached cannot learn to differ from equal cells. Signals along four diagonals and one side reach each
    cell within distance `n` in `n + 1` steps. In neighbourhoods other than `moore`, the kernels output all neighbours.

    `logits[l]` is float `[K, out, 16]` of pass-through gates; `wires[l]` is int `[K, 2, out]`, the first layer from
    `first_kernel`, whose row 0 contains each neighbour. `key` selects a rotation and reflection of the neighbours.
    """
    turn, mirror = (int(word) for word in prng.random_bits(key, 2))
    ring = [cell for cell in RING if cell in NEIGHBOURHOODS[neighbourhood]]
    # A ring of eight is rotated by quarter turns only, so that sides remain sides.
    turn *= 2 if len(ring) == len(RING) else 1
    for kernel, places in enumerate(BEGINNINGS[neighbourhood]):
        kernel_wires = [layer[kernel] for layer in wires]
        last = logits[-1][kernel, 0]
        if len(places) > 1:
            last[[gates.PASS_THROUGH, gates.OR]] = last[[gates.OR, gates.PASS_THROUGH]]
        neighbours = kernel_wires[0][0]
        for place, bit in zip(places, kernel_wires[-1][:, 0], strict=False):
            # The gate that leads to this output swaps its neighbour with the gate of the target neighbour.
            gate = _passed_on(kernel_wires[:-1], int(bit))
            target = ring[(turn + (-place if mirror & 1 else place)) % len(ring)]
            reader = int(np.flatnonzero(neighbours == target)[0])
            neighbours[[gate, reader]] = neighbours[[reader, gate]]


def lead_straight(wires: Sequence[Array], channels: int, bits: int) -> None:
    """Swap wires of the update network's first layer, in place, so that signals in half of the channels move straight.

    If all gates pass through input `a`, a channel becomes the output of a random kernel for a random channel, so that
    signals turn at every step and rarely get far. Here, channels form cycles of four: each becomes the output of one
    kernel for the next channel of its cycle, so that a signal moves in the direction of that kernel at every step. The
    other half stays random, because signals that all move straight miss the cells in between.

    `wires[l]` is int `[2, out]`. The inputs are the cell's `channels`, then `bits` perception outputs per channel,
    beginning with the first output of every kernel.
    """
    layer, taken = wires[0], set[int]()
    for channel in range(channels // 2):
        cycle, place = divmod(channel, STRAIGHT)
        source = (STRAIGHT * cycle + (place + 1) % STRAIGHT) % channels
        target = channels + source * bits + cycle % ALL_ROUND_KERNELS
        gate = _passed_on(wires, channel)
        # The gate swaps wires with the first gate that uses the bit and is not yet taken by another channel.
        reader = next((int(n) for n in np.flatnonzero((layer == target).any(axis=0)) if n not in taken), gate)
        layer[:, [gate, reader]] = layer[:, [reader, gate]]
        if layer[1, gate] == target:
            layer[:, gate] = layer[::-1, gate]
        taken.add(gate)


def _passed_on(wires: Sequence[Array], bit: int) -> int:
    """Return the index of the first-layer gate whose output becomes output `bit` if all later gates output `a`."""
    for layer in reversed(wires[1:]):
        bit = int(layer[0, bit])
    return bit
