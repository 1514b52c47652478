"""Compiled code finds replacements for a gate: an existing value, a new gate, or two.

A node is a row of words, its values on samples of the inputs. A gate is flipped, and what reads it computed again: its
*care set* are the samples on which an output notices, and only there a replacement has to agree.

A replacement is a literal, a gate on two literals, or one on a literal and a new gate. For an AND both sides must be 1
wherever the gate is (they *cover* it), so pairs are tried of the few literals that do; an OR is the same for what is
to be 0. For an XOR two hashes are compared: they are linear, so that `hash(x XOR y)` is `hash(x) XOR hash(y)`.
Source: Lee, Riener, Mishchenko, Brayton and De Micheli, *A simulation-guided paradigm for logic synthesis and
verification* (2022).
"""

from typing import NamedTuple

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.engine.shape import Array


class Nodes(NamedTuple):
    """A graph on its way. Literals are as in `circuits.synthesis.xag`, but an XOR may read inverted ones too."""

    inputs: int
    xor: Array
    """uint8 `[N]`."""
    a: Array
    """int64 `[N]`: the literals that a gate reads, and..."""
    b: Array
    outputs: Array
    """int64: literals."""
    values: Array
    """uint64 `[N, W]`."""
    order: Array
    """int64 `[N]`: the gates that outputs need, each after those it reads..."""
    place: Array
    """int64 `[N]`: ...and where each is there; -1 where a number is free."""
    readers: Array
    """int64 `[N]`: how often each node is read."""
    numbers: Array
    """int64 `[2]`: COUNT and RANDOM."""


COUNT, RANDOM = range(2)
"""How many gates there are; the state of the random numbers."""


class Scratch(NamedTuple):
    """The scratch memory of the search for a replacement."""

    flipped: Array
    """uint64 `[N, W]`: values once a gate is flipped."""
    behind: Array
    """uint8 `[N]`: 1 where a node depends on the gate, 2 where its values changed as well."""
    on: Array
    """uint64 `[2, W]`: where a function, and its new gate, have to be 1..."""
    off: Array
    """uint64 `[2, W]`: ...and 0."""
    divisors: Array
    """int64 `[N]`: the nodes that may be read."""
    covers: Array
    """int64 `[2, 2, MOST_COVERS]`: of both functions the literals that are 1 wherever it is, and wherever it is not."""
    covering: Array
    """int64 `[2, 2]`: how many."""
    hashes: Array
    """uint64 `[N]`."""
    stack: Array
    """int64 `[4N + outputs]`."""
    outer: Array
    """int64 `[3]`: of the gate around the one looked for, whether it is an XOR, its literal, whether inverted."""
    best: Array
    """int64 `[BEST]`: the best replacement."""


GAIN, TIES, GATES, XOR, A, B, INVERTED, INNER_XOR, INNER_A, INNER_B, NODE, ENOUGH, BEST = range(13)
"""Of a replacement: the gates it saves, how many are as good, its new gates, the outer gate on `A` and `B`, whether the
result is inverted, and the inner gate, of which `B` then is the inversion alone; whose it is; and one more than the
most that counts as a gain."""


ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
HASHED = 16
"""Words that a hash is made of; what they cannot tell apart is compared."""
MOST_COVERS = 50
"""Of so many literals that cover a function pairs are tried."""
_POLYNOMIAL = np.uint64(0x42F0E1EBA9EA3693)
_ONE, _TOP = np.uint64(1), np.uint64(63)


@inlined
def below(nodes: Nodes, most: int) -> np.int64:
    """A random number from 0 on (xorshift)."""
    state = np.uint64(nodes.numbers[RANDOM])
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    nodes.numbers[RANDOM] = np.int64(state)
    return np.int64((state >> np.uint64(11)) % np.uint64(most))


@inlined
def inversion(literal: int) -> np.uint64:
    """Return what a row of values is XORed with: the literal inverts all of it, or nothing."""
    return ONES if literal & 1 else np.uint64(0)


@inlined
def compute(nodes: Nodes, node: int, x: Array, y: Array, out: Array) -> bool:
    """The gate's value from rows of values; returns whether it is another than before."""
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
    """Flip a gate; `on` and `off` become where an output notices, by the gate's value. What depends on it is marked."""
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
        # Only what reads a changed value is computed again: most of a graph never notices that one gate was flipped.
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
    """Return how many gates go when `node` is read no longer, while three others are."""
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
    nodes: Nodes,
    work: Scratch,
    gates: int,
    xor: int,
    a: int,
    b: int,
    inverted: int,
    inner_xor: int,
    inner_a: int,
    inner_b: int,
) -> None:
    """Keep a replacement if it saves more than the best; among equals, a random one."""
    best = work.best
    node = best[NODE]
    x, y = nodes.a[node] >> 1, nodes.b[node] >> 1
    if gates == 1 and ((a >> 1 == x and b >> 1 == y) or (a >> 1 == y and b >> 1 == x)):
        return  # the gate that is there
    gain = freed(nodes, work.stack, node, a >> 1, (inner_a if gates == 2 else b) >> 1, inner_b >> 1) - gates
    # Where a step back is wanted, all that it may be are equal: otherwise none would ever be taken.
    gain = min(gain, best[ENOUGH] - 1)
    if gain < best[GAIN]:
        return
    best[TIES] = 1 if gain > best[GAIN] else best[TIES] + 1
    if best[TIES] == 1 or below(nodes, best[TIES]) == 0:
        best[GAIN], best[GATES], best[XOR], best[A], best[B], best[INVERTED] = gain, gates, xor, a, b, inverted
        best[INNER_XOR], best[INNER_A], best[INNER_B] = inner_xor, inner_a, inner_b


@inlined
def classify(nodes: Nodes, work: Scratch, level: int, count: int) -> None:
    """Find which literals cover what is to be 1, and what is to be 0; those that do both are the function."""
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
            weigh(nodes, work, 0, 0, plain, 0, 0, 0, 0, 0)
        elif level == 0 and inverted_on == 0 and plain_off == 0:
            weigh(nodes, work, 0, 0, inverted, 0, 0, 0, 0, 0)


@inlined
def meet(nodes: Nodes, one: int, other: int, unwanted: Array) -> bool:
    """Return whether an AND of two literals lets something unwanted through."""
    x, y = inversion(one), inversion(other)
    for word in range(len(unwanted)):
        if (nodes.values[one >> 1, word] ^ x) & (nodes.values[other >> 1, word] ^ y) & unwanted[word]:
            return True
    return False


@inlined
def offer(nodes: Nodes, work: Scratch, level: int, xor: int, a: int, b: int, inverted: int) -> None:
    """A gate that does what `level` asks for: the whole function, or the inner gate of one."""
    is_xor, outer, outer_inverted = work.outer
    if level == 0:
        weigh(nodes, work, 1, xor, a, b, inverted, 0, 0, 0)
    elif a >> 1 != outer >> 1 and b >> 1 != outer >> 1:
        weigh(nodes, work, 2, is_xor, outer, inverted, outer_inverted, xor, a, b)


@inlined
def ands(nodes: Nodes, work: Scratch, level: int) -> None:
    """ANDs of two covering literals that let nothing unwanted through, and ORs, which are the same of the opposite."""
    for side in range(2):
        unwanted = work.on[level] if side else work.off[level]
        for index in range(work.covering[level, side]):
            one = work.covers[level, side, index]
            for further in range(index + 1, work.covering[level, side]):
                other = work.covers[level, side, further]
                # Both are 1 wherever the function is, so that their AND is too; it is the function if it is 0 wherever
                # that is 0.
                if not meet(nodes, one, other, unwanted):
                    offer(nodes, work, level, 0, one, other, side)


@inlined
def hash_of(row: Array, care: Array, extra: Array) -> np.uint64:
    """A linear hash of a row where `care` or `extra` is 1."""
    found = np.uint64(0)
    for word in range(min(len(row), HASHED)):
        # A cyclic redundancy check (ECMA-182): shifts and XORs alone, hence linear. Equal hashes are no proof, so that
        # `differ` looks at all words.
        found = (found << _ONE) ^ (_POLYNOMIAL if found >> _TOP else np.uint64(0))
        found ^= row[word] & (care[word] | extra[word])
    return found


@inlined
def differ(nodes: Nodes, one: int, other: int, on: Array, off: Array) -> int:
    """1 where an XOR of two nodes is not what it is to be, 2 where it is not the opposite; or both."""
    wrong = opposite = np.uint64(0)
    for word in range(len(on)):
        value = nodes.values[one, word] ^ nodes.values[other, word]
        wrong |= (on[word] & ~value) | (off[word] & value)
        opposite |= (on[word] & value) | (off[word] & ~value)
        if wrong and opposite:
            return 3
    return (1 if wrong else 0) + (2 if opposite else 0)


@inlined
def xors(nodes: Nodes, work: Scratch, level: int, count: int) -> None:
    """XORs of two nodes: the hash of one says what the hash of the other has to be."""
    on, off = work.on[level], work.off[level]
    wanted = hash_of(on, on, on)
    opposite = hash_of(off, off, off)
    for index in range(count):
        work.hashes[index] = hash_of(nodes.values[work.divisors[index]], on, off)
    for index in range(count):
        one = work.hashes[index] ^ wanted
        other = work.hashes[index] ^ opposite
        for further in range(index + 1, count):
            if work.hashes[further] == one or work.hashes[further] == other:
                x, y = work.divisors[index], work.divisors[further]
                found = differ(nodes, x, y, on, off)
                if found != 3 and x != 0 and y != 0:
                    offer(nodes, work, level, 1, 2 * x, 2 * y, found == 1)


@inlined
def ask(nodes: Nodes, work: Scratch, question: int) -> int:
    """Return what the next gate has to be: first the function itself, then the inner gate of each outer one.

    An outer AND has a literal that covers the function, an outer OR one that covers its opposite, an XOR any.
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
            # What the outer literal stops is a don't-care of the inner gate.
            work.on[1, word], work.off[1, word] = off, on & through
        else:
            work.on[1, word], work.off[1, word] = on, off & through
    return 1


@inlined
def add_inputs(nodes: Nodes, work: Scratch, gate: int, count: int) -> int:
    """The inputs that a gate reads are divisors, each once."""
    for node in (nodes.a[gate] >> 1, nodes.b[gate] >> 1):
        if 0 < node <= nodes.inputs and not work.behind[node]:
            work.behind[node] = 1
            work.divisors[count] = node
            count += 1
    return count


@inlined
def choose_divisors(nodes: Nodes, work: Scratch, node: int, most: int) -> int:
    """Nodes that do not depend on the gate, the nearest in the order, with the inputs around them."""
    # By depth first, what a gate reads stands before it, and what else is made of that stands around it.
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
def look_for(nodes: Nodes, work: Scratch, node: int, least: int, most_gates: int, most_divisors: int) -> bool:
    """The best replacement of a gate into `best`; returns whether there is one that saves `least`."""
    work.best[:] = 0
    work.best[NODE], work.best[GAIN], work.best[ENOUGH] = node, least, 0 if least < 0 else nodes.numbers[COUNT] + 1
    gates = min(most_gates, freed(nodes, work.stack, node, 0, 0, 0) - least)
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
    found: bool = work.best[TIES] > 0
    return found
