"""Netlists as programs over few slots."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic import gates
from difflogic.netlist import Netlist
from difflogic.slots import slot_program
from tests.random_netlists import netlists
from tests.scenes import life


@given(netlists(), st.integers(0, 2**32 - 1))
def test_the_program_computes_the_netlist(netlist: Netlist, seed: int) -> None:
    program = slot_program(netlist)
    words = np.random.default_rng(seed).integers(0, 2**64, (netlist.inputs, 1), dtype=np.uint64)
    truth = np.where(gates.TRUTH == 1, np.uint64(2**64 - 1), np.uint64(0))
    slots = np.zeros((program.slots, 1), dtype=np.uint64)
    slots[: len(program.patches)] = words[program.patches]
    for gate, a, b, out in program.code:
        x, y = slots[a], slots[b]
        f00, f01, f10, f11 = truth[gate]
        slots[out] = ~x & ~y & f00 | ~x & y & f01 | x & ~y & f10 | x & y & f11
    np.testing.assert_array_equal(slots[program.outputs], netlist.evaluate(words))


def test_slots_are_used_again() -> None:
    program = slot_program(life())
    assert len(program.code) == 26
    assert program.slots < 9 + 26 / 2


def test_a_long_chain_needs_two_slots() -> None:
    """An input that every gate reads, and the value that is handed on in the place of the other."""
    wires = [(0, 1), *((1, 9 + index) for index in range(99))]
    chain = Netlist.build(1, False, [6] * 100, wires, [108])
    assert slot_program(chain).slots == 2
