"""Learned wiring: compute inputs as weighted sums of their candidates, and gradients of the weights.

Each input of an instance has a separate row, after those of the nodes, for its value in the forward pass and its
adjoint in the backward pass. The gates of a segment share their candidates, which therefore stay in the L1 cache.
"""

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.gate_vectors import (
    divide,
    exp,
    group_largest,
    group_total,
    load_gate_vector,
    subtract,
    total,
)
from difflogic.cpu.codegen.vectors import TILE, add, add_sums, fma, load, mul, peek, splat, store, zeros
from difflogic.cpu.program import FIRST_GATE, FIRST_INSTANCE, GATES, REPLICAS, Program
from difflogic.engine.shape import Array


@inlined
def candidate_shares(first: int, last: int, program: Program, logits: Array, probs: Array, shares: Array) -> None:
    """Compute the softmax over the candidates of each wire, `shares [16*(P - G)]`, in rows `first` to `last`."""
    for row in range(first, last):
        x = load_gate_vector(logits, row * GATE_COUNT)
        powers = exp(subtract(x, group_largest(x, program.candidates)))
        w = divide(powers, group_total(powers, program.candidates))
        store(probs, row * GATE_COUNT, w)
        store(shares, (row - program.gates) * GATE_COUNT, w)


@inlined
def harden_wires(gate: int, program: Program, logits: Array, shares: Array) -> None:
    """Set the share of the most probable candidate of each of a gate's wires to 1, and all other shares to 0."""
    k = program.candidates
    for start in range(2 * k * gate, 2 * k * (gate + 1), k):
        first = GATE_COUNT * program.gates + start
        shares[start : start + k] = 0
        shares[start + logits[first : first + k].argmax()] = 1


@inlined
def choose(program: Program, segment: int, shares: Array, nodes: Array) -> None:
    """Compute the rows of a segment's inputs: sums of their candidates, weighted by `shares`."""
    k, segments, choices = program.candidates, program.segments, program.choices
    instance = segments[segment + FIRST_INSTANCE]
    place, row = 2 * k * instance, (program.nodes + 2 * instance) * TILE
    first = 2 * k * segments[segment + FIRST_GATE]
    for of_gate in range(first, first + 2 * k * segments[segment + GATES], 2 * k):
        for _ in range(segments[segment + REPLICAS]):
            for share in range(of_gate, of_gate + 2 * k, k):
                value = mul(splat(peek(shares, share)), load(nodes, peek(choices, place)))
                for j in range(1, k):
                    value = fma(splat(peek(shares, share + j)), load(nodes, peek(choices, place + j)), value)
                store(nodes, row, value)
                place += k
                row += TILE


@inlined
def choose_backward(program: Program, segment: int, shares: Array, nodes: Array, slots: Array, moments: Array) -> None:
    """Add `share_j * d` to candidates' slots and sums of `d * candidate_j` to `moments`; d is an input's adjoint."""
    k, segments, choices, size = program.candidates, program.segments, program.choices, program.choices.size // 2
    replicas = segments[segment + REPLICAS]
    for number in range(segments[segment + GATES]):
        of_gate = 2 * k * (segments[segment + FIRST_GATE] + number)
        first = segments[segment + FIRST_INSTANCE] + number * replicas
        # Four candidates at a time, since `add_sums` takes four vectors; with two candidates per wire, a group has
        # those of both wires.
        for group in range(0, 2 * k, 4):
            s0, s1 = splat(peek(shares, of_gate + group)), splat(peek(shares, of_gate + group + 1))
            s2, s3 = splat(peek(shares, of_gate + group + 2)), splat(peek(shares, of_gate + group + 3))
            sum0, sum1, sum2, sum3 = zeros(), zeros(), zeros(), zeros()
            for instance in range(first, first + replicas):
                row, place = (program.nodes + 2 * instance) * TILE, 2 * k * instance + group
                d = load(nodes, row + group // k * TILE)
                other = load(nodes, row + (group + 2) // k * TILE)
                sum0 = fma(d, load(nodes, peek(choices, place)), sum0)
                sum1 = fma(d, load(nodes, peek(choices, place + 1)), sum1)
                sum2 = fma(other, load(nodes, peek(choices, place + 2)), sum2)
                sum3 = fma(other, load(nodes, peek(choices, place + 3)), sum3)
                _add(slots, peek(choices, size + place), s0, d)
                _add(slots, peek(choices, size + place + 1), s1, d)
                _add(slots, peek(choices, size + place + 2), s2, other)
                _add(slots, peek(choices, size + place + 3), s3, other)
            add_sums(moments, program.wire_moments + of_gate + group, sum0, sum1, sum2, sum3)


@inlined
def _add(slots: Array, slot: int, share: object, d: object) -> None:
    store(slots, slot, fma(share, d, load(slots, slot)))


@inlined
def candidate_gradients(
    first: int, last: int, program: Program, partials: Array, probs: Array, gradients: Array
) -> bool:
    """Write gradients `w * (d_w - sum(w * d_w))`, with `w = probs`, of a row range; return whether all are finite."""
    zero = subtract(load_gate_vector(probs, 0), load_gate_vector(probs, 0))
    infinite = zero
    for row in range(first, last):
        place, d_w = program.wire_moments + (row - program.gates) * GATE_COUNT, zero
        for block in range(len(partials)):
            d_w = add(d_w, load_gate_vector(partials[block], place))
        w = load_gate_vector(probs, row * GATE_COUNT)
        d_logits = mul(w, subtract(d_w, group_total(mul(w, d_w), program.candidates)))
        store(gradients, row * GATE_COUNT, d_logits)
        infinite = fma(d_logits, zero, infinite)
    return bool(total(infinite) == 0)
