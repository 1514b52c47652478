"""Resubstitution by simulation: find a literal, a new gate, or two new gates that can replace a gate.

The values of a node on all samples of the inputs are a row of words. The *care set* of a gate consists of the samples
in which an output changes if the gate is flipped; to find it, the readers of the flipped gate are recomputed. A
replacement has to agree with the gate only in the care set.

A replacement is a literal, a gate of two literals, or a gate of a literal and a new gate. Both inputs of an AND must be
1 wherever its result must be 1 (they *cover* the gate), so only pairs of covering literals are tried. An OR is the dual
case. For an XOR, linear hashes are compared: `hash(x XOR y)` is `hash(x) XOR hash(y)`.
Source: Lee, Riener, Mishchenko, Brayton and De Micheli, *A simulation-guided paradigm for logic synthesis and
verification* (2022).
"""

from typing import NamedTuple

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.engine.shape import Array


class Nodes(NamedTuple):
    """Mutable graph of ANDs and XORs. Literals are as in `circuits.synthesis.xag`; XORs may read inverted ones."""

    inputs: int
    xor: Array
    """uint8 `[N]`: 1 for an XOR, 0 for an AND."""
    a: Array
    """int64 `[N]`: first literal that each gate reads; `b` is the second."""
    b: Array
    outputs: Array
    """int64 `[outputs]`: literal of each output."""
    values: Array
    """uint64 `[N, W]`: values of each node on the samples."""
    order: Array
    """int64 `[N]`: gates that outputs depend on, in topological order."""
    place: Array
    """int64 `[N]`: index of each gate in `order`; -1 if the node number is unused."""
    readers: Array
    """int64 `[N]`: number of readers (fanout) of each node."""
    numbers: Array
    """int64 `[2]`: see COUNT and RANDOM."""


COUNT, RANDOM = range(2)
"""Indices in `Nodes.numbers`: the number of gates, and the state of the random generator."""


class Scratch(NamedTuple):
    """Scratch memory of the search for a replacement."""

    flipped: Array
    """uint64 `[N, W]`: values after a gate is flipped."""
    behind: Array
    """uint8 `[N]`: 1 if a node depends on the gate, 2 if its values have changed, too."""
    on: Array
    """uint64 `[2, W]`: samples in which the gate (0) or a new inner gate (1) must be 1."""
    off: Array
    """uint64 `[2, W]`: samples in which the gate (0) or a new inner gate (1) must be 0."""
    divisors: Array
    """int64 `[N]`: nodes that a replacement may read."""
    covers: Array
    """int64 `[2, 2, MOST_COVERS]`: for each gate, as in `on`, literals that cover it, and that cover its inverse."""
    covering: Array
    """int64 `[2, 2]`: number of literals in each row of `covers`."""
    hashes: Array
    """uint64 `[N]`: hash of each divisor."""
    stack: Array
    """int64 `[4N + outputs]`: scratch for stacks of nodes."""
    outer: Array
    """int64 `[3]`: the outer of two new gates: 1 for an XOR, the literal that it reads, 1 if its result is inverted."""
    best: Array
    """int64 `[BEST]`: the best replacement so far."""


GAIN, TIES, GATES, XOR, A, B, INVERTED, INNER_XOR, INNER_A, INNER_B, NODE, ENOUGH, BEST = range(13)
"""Indices in `Scratch.best`: gates saved, number of equally good replacements, new gates, outer gate with inputs A and
B, whether its result is inverted, inner gate (B is then only its inversion), gate to replace, and ENOUGH: gains of at
least ENOUGH - 1 count as equal. BEST is the length."""


ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
HASHED = 16
"""Maximum number of words of a row that a hash covers; if hashes are equal, all words are compared."""
MOST_COVERS = 50
"""Maximum number of covering literals that are tried in pairs."""
NO_INNER = (0, 0, 0)
"""Argument `inner` of `weigh`, a gate's XOR, A and B, for a replacement without an inner gate."""
_POLYNOMIAL = np.uint64(0x42F0E1EBA9EA3693)
_ONE, _TOP = np.uint64(1), np.uint64(63)


@inlined
def below(nodes: Nodes, most: int) -> np.int64:
    """Return a random number from 0 to `most - 1` (xorshift)."""
    state = np.uint64(nodes.numbers[RANDOM])
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    nodes.numbers[RANDOM] = np.int64(state)
    return np.int64((state >> np.uint64(11)) % np.uint64(most))


@inlined
def inversion(literal: int) -> np.uint64:
    """Return the mask to XOR with a node's values for a literal: all ones if the literal is inverted, otherwise 0."""
    return ONES if literal & 1 else np.uint64(0)


@inlined
def compute(nodes: Nodes, node: int, x: Array, y: Array, out: Array) -> bool:
    """Write a gate's values for input values `x` and `y` to `out`; return whether the stored values differ."""
    a, b = inversion(nodes.a[node]), inversion(nodes.b[node])
    changed = np.uint64(0)
    if nodes.xor[node]:
        for word in range(len(out)):
            value = x[word] ^ y[word] ^ a ^ b
            changed |= value ^ nodes.values[node, word]
            out[word] = value
    else:
        for word in range(len(out)):
            value = (x[word] ^ a) & (y[word] ^ b)
            changed |= value ^ nodes.values[node, word]
            out[word] = value
    return bool(changed != 0)


@inlined
def find_care(nodes: Nodes, work: Scratch, node: int) -> None:
    """Compute the care set of a gate, split by the gate's value into `on` and `off`; mark nodes that depend on it."""
    words = nodes.values.shape[1]
    work.behind[:] = 0
    work.behind[node] = 2
    for word in range(words):
        work.flipped[node, word] = ~nodes.values[node, word]
        work.off[0, word] = np.uint64(0)
    for place in range(nodes.place[node] + 1, nodes.numbers[COUNT]):
        reader = nodes.order[place]
        a, b = nodes.a[reader] >> 1, nodes.b[reader] >> 1
        most = max(work.behind[a], work.behind[b])
        # Only readers of a changed value are recomputed: most of the graph does not change when one gate is flipped.
        if most == 2:
            x = work.flipped[a] if work.behind[a] == 2 else nodes.values[a]
            y = work.flipped[b] if work.behind[b] == 2 else nodes.values[b]
            work.behind[reader] = 1 + compute(nodes, reader, x, y, work.flipped[reader])
        elif most:
            work.behind[reader] = 1
    for output in nodes.outputs:
        if work.behind[output >> 1] == 2:
            for word in range(words):
                work.off[0, word] |= work.flipped[output >> 1, word] ^ nodes.values[output >> 1, word]
    for word in range(words):
        work.on[0, word] = work.off[0, word] & nodes.values[node, word]
        work.off[0, word] &= ~nodes.values[node, word]


@inlined
def freed(nodes: Nodes, stack: Array, node: int, x: int, y: int, z: int) -> int:
    """Return the size of a gate's fanout-free cone: the gate and those removed with it, if nodes x, y and z stay."""
    nodes.readers[x] += 1
    nodes.readers[y] += 1
    nodes.readers[z] += 1
    stack[0], height, done = node, 1, 0
    while done < height:
        gone = stack[done]
        done += 1
        for read in (nodes.a[gone] >> 1, nodes.b[gone] >> 1):
            nodes.readers[read] -= 1
            if nodes.readers[read] == 0 and read > nodes.inputs:
                stack[height] = read
                height += 1
    for index in range(height):
        nodes.readers[nodes.a[stack[index]] >> 1] += 1
        nodes.readers[nodes.b[stack[index]] >> 1] += 1
    nodes.readers[x] -= 1
    nodes.readers[y] -= 1
    nodes.readers[z] -= 1
    return height


@inlined
def weigh(
    nodes: Nodes, work: Scratch, gates: int, xor: int, a: int, b: int, inverted: int, inner: tuple[int, int, int]
) -> None:
    """Store a replacement in `best` if it saves more gates than the stored one; break ties at random."""
    best = work.best
    node, (inner_xor, inner_a, inner_b) = best[NODE], inner
    x, y = nodes.a[node] >> 1, nodes.b[node] >> 1
    if gates == 1 and ((a >> 1 == x and b >> 1 == y) or (a >> 1 == y and b >> 1 == x)):
        return  # the gate itself
    gain = freed(nodes, work.stack, node, a >> 1, (inner_a if gates == 2 else b) >> 1, inner_b >> 1) - gates
    # If a loss is allowed (ENOUGH is 0), all larger gains count as -1; otherwise a loss would never be chosen.
    gain = min(gain, best[ENOUGH] - 1)
    if gain < best[GAIN]:
        return
    best[TIES] = 1 if gain > best[GAIN] else best[TIES] + 1
    if best[TIES] == 1 or below(nodes, best[TIES]) == 0:
        best[GAIN], best[GATES], best[XOR], best[A], best[B], best[INVERTED] = gain, gates, xor, a, b, inverted
        best[INNER_XOR], best[INNER_A], best[INNER_B] = inner_xor, inner_a, inner_b


@inlined
def classify(nodes: Nodes, work: Scratch, level: int, count: int) -> None:
    """List literals that cover the function or its inverse; at level 0, weigh a literal that is the function."""
    on, off = work.on[level], work.off[level]
    work.covering[level] = 0
    for index in range(count):
        node = work.divisors[index]
        plain_on = plain_off = inverted_on = inverted_off = np.uint64(0)
        for word in range(nodes.values.shape[1]):
            value = nodes.values[node, word]
            plain_on |= on[word] & ~value
            inverted_on |= on[word] & value
            plain_off |= off[word] & ~value
            inverted_off |= off[word] & value
            if plain_on != 0 and inverted_on != 0 and plain_off != 0 and inverted_off != 0:
                break
        plain, inverted = 2 * node, 2 * node + 1
        sides = ((plain, 0, plain_on), (plain, 1, plain_off), (inverted, 0, inverted_on), (inverted, 1, inverted_off))
        for literal, side, misses in sides:
            if misses == 0 and work.covering[level, side] < MOST_COVERS:
                work.covers[level, side, work.covering[level, side]] = literal
                work.covering[level, side] += 1
        if level == 0 and plain_on == 0 and inverted_off == 0:
            weigh(nodes, work, 0, 0, plain, 0, 0, NO_INNER)
        elif level == 0 and inverted_on == 0 and plain_off == 0:
            weigh(nodes, work, 0, 0, inverted, 0, 0, NO_INNER)


@inlined
def meet(nodes: Nodes, literal: int, other: int, unwanted: Array) -> bool:
    """Return whether the AND of two literals is 1 in a sample of the mask `unwanted`."""
    x, y = inversion(literal), inversion(other)
    for word in range(len(unwanted)):
        if (nodes.values[literal >> 1, word] ^ x) & (nodes.values[other >> 1, word] ^ y) & unwanted[word]:
            return True
    return False


@inlined
def offer(nodes: Nodes, work: Scratch, level: int, xor: int, a: int, b: int, inverted: int) -> None:
    """Weigh a replacement with this new gate: as the only new gate (level 0), or as the inner one of two (level 1)."""
    is_xor, outer, outer_inverted = work.outer
    if level == 0:
        weigh(nodes, work, 1, xor, a, b, inverted, NO_INNER)
    elif a >> 1 != outer >> 1 and b >> 1 != outer >> 1:
        weigh(nodes, work, 2, is_xor, outer, inverted, outer_inverted, (xor, a, b))


@inlined
def ands(nodes: Nodes, work: Scratch, level: int) -> None:
    """Try ANDs of two literals that cover the function, and inverted ANDs (ORs) of two that cover its inverse."""
    for side in range(2):
        unwanted = work.on[level] if side else work.off[level]
        for index in range(work.covering[level, side]):
            literal = work.covers[level, side, index]
            for further in range(index + 1, work.covering[level, side]):
                other = work.covers[level, side, further]
                # Both are 1 wherever the function is 1, and so is their AND. If it is 0 elsewhere, it is the function.
                if not meet(nodes, literal, other, unwanted):
                    offer(nodes, work, level, 0, literal, other, side)


@inlined
def hash_of(row: Array, care: Array, extra: Array) -> np.uint64:
    """Return a linear hash of the samples of a row in which `care` or `extra` is 1."""
    crc = np.uint64(0)
    for word in range(min(len(row), HASHED)):
        # A cyclic redundancy check (ECMA-182): only shifts and XORs, hence linear. Equal hashes prove nothing, so that
        # `differ` compares all words.
        crc = (crc << _ONE) ^ (_POLYNOMIAL if crc >> _TOP else np.uint64(0))
        crc ^= row[word] & (care[word] | extra[word])
    return crc


@inlined
def differ(nodes: Nodes, node: int, other: int, on: Array, off: Array) -> int:
    """Return 1 if the XOR of two nodes is not the function (`on`, `off`), plus 2 if it is not the inverse."""
    wrong = opposite = np.uint64(0)
    for word in range(len(on)):
        value = nodes.values[node, word] ^ nodes.values[other, word]
        wrong |= (on[word] & ~value) | (off[word] & value)
        opposite |= (on[word] & value) | (off[word] & ~value)
        if wrong and opposite:
            return 3
    return (1 if wrong else 0) + (2 if opposite else 0)


@inlined
def xors(nodes: Nodes, work: Scratch, level: int, count: int) -> None:
    """Try XORs of two nodes: the hash of the function and that of one node give the hash of the other."""
    on, off = work.on[level], work.off[level]
    function = hash_of(on, on, on)
    opposite = hash_of(off, off, off)
    for index in range(count):
        work.hashes[index] = hash_of(nodes.values[work.divisors[index]], on, off)
    for index in range(count):
        plain_match = work.hashes[index] ^ function
        inverted_match = work.hashes[index] ^ opposite
        for further in range(index + 1, count):
            if work.hashes[further] == plain_match or work.hashes[further] == inverted_match:
                x, y = work.divisors[index], work.divisors[further]
                mismatch = differ(nodes, x, y, on, off)
                if mismatch != 3 and x != 0 and y != 0:
                    offer(nodes, work, level, 1, 2 * x, 2 * y, mismatch == 1)


@inlined
def ask(nodes: Nodes, work: Scratch, question: int) -> int:
    """Prepare search number `question`: set its target function (`on`, `off`) and return its level, 0 or 1.

    Level 0 is the gate's own function, set by `find_care`. At level 1, an outer gate and an input of it are fixed, and
    the search is for the inner gate. The input covers the function (AND) or its inverse (OR), or is any divisor (XOR).
    """
    ands, ors = work.covering[0]
    if question == 0:
        return 0
    is_xor, side = question > ands + ors, int(question > ands)
    outer = 2 * work.divisors[question - ands - ors] if is_xor else work.covers[0, side, question - 1 - ands * side]
    work.outer[0], work.outer[1], work.outer[2] = is_xor, outer, side and not is_xor
    inverted = inversion(outer)
    for word in range(nodes.values.shape[1]):
        through = nodes.values[outer >> 1, word] ^ inverted
        on, off = work.on[0, word], work.off[0, word]
        if is_xor:
            work.on[1, word], work.off[1, word] = (on & ~through) | (off & through), (off & ~through) | (on & through)
        elif side:
            # Samples that the outer literal decides are don't-cares of the inner gate.
            work.on[1, word], work.off[1, word] = off, on & through
        else:
            work.on[1, word], work.off[1, word] = on, off & through
    return 1


@inlined
def add_inputs(nodes: Nodes, work: Scratch, gate: int, count: int) -> int:
    """Add the graph inputs that a gate reads to the `count` divisors, each once; return the new number of divisors."""
    for node in (nodes.a[gate] >> 1, nodes.b[gate] >> 1):
        if 0 < node <= nodes.inputs and not work.behind[node]:
            work.behind[node] = 1
            work.divisors[count] = node
            count += 1
    return count


@inlined
def choose_divisors(nodes: Nodes, work: Scratch, node: int, most: int) -> int:
    """Choose divisors: nodes near the gate in topological order that do not depend on it, and inputs that they read."""
    # In depth-first order the inputs of a gate come before it, and gates that share inputs with it are near.
    work.divisors[0] = 0
    count = add_inputs(nodes, work, node, 1)
    low = high = nodes.place[node]
    last = nodes.numbers[COUNT] - 1
    while count < most - 5 and (low > 0 or high < last):
        low, high = low - 1, high + 1
        for place in (low, high):
            if 0 <= place <= last:
                gate = nodes.order[place]
                count = add_inputs(nodes, work, gate, count)
                if not work.behind[gate]:
                    work.divisors[count] = gate
                    count += 1
    return count


@inlined
def look_for(nodes: Nodes, work: Scratch, node: int, least: int, most_divisors: int) -> bool:
    """Write the best replacement of a gate to `best`; return whether it saves at least `least` gates."""
    work.best[:] = 0
    work.best[NODE], work.best[GAIN], work.best[ENOUGH] = node, least, 0 if least < 0 else nodes.numbers[COUNT] + 1
    gates = min(2, freed(nodes, work.stack, node, 0, 0, 0) - least)
    find_care(nodes, work, node)
    count = choose_divisors(nodes, work, node, most_divisors)
    question, questions = 0, 1
    while question < questions:
        level = ask(nodes, work, question)
        classify(nodes, work, level, count)
        if gates > level:
            ands(nodes, work, level)
            if level == 0 or not work.outer[0]:
                xors(nodes, work, level, count)
        if level == 0 and gates == 2 and work.best[GAIN] <= 0:
            questions += work.covering[0, 0] + work.covering[0, 1] + count - 1
        question += 1
    return bool(work.best[TIES] > 0)
