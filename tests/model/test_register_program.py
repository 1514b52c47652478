"""Netlists as programs over few registers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from difflogic.core import gates
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.straight_line import register_program
from tests.export_cases import life
from tests.random_netlists import netlists


@given(netlists(), st.integers(0, 2**32 - 1))
def test_the_program_computes_the_netlist(netlist: CellNetlist, seed: int) -> None:
    program = register_program(netlist)
    words = np.random.default_rng(seed).integers(0, 2**64, (netlist.inputs, 1), dtype=np.uint64)
    truth = np.where(gates.TRUTH == 1, np.uint64(2**64 - 1), np.uint64(0))
    registers = np.zeros((program.registers, 1), dtype=np.uint64)
    registers[: len(program.patches)] = words[program.patches]
    for gate, a, b, out in program.code:
        x, y = registers[a], registers[b]
        f00, f01, f10, f11 = truth[gate]
        registers[out] = ~x & ~y & f00 | ~x & y & f01 | x & ~y & f10 | x & y & f11
    np.testing.assert_array_equal(registers[program.outputs], netlist.evaluate(words))


def test_registers_are_used_again() -> None:
    program = register_program(life())
    assert len(program.code) == 28
    assert program.registers < 9 + 28 / 2


def test_a_long_chain_needs_two_registers() -> None:
    """An input that every gate reads, and the value that is handed on in the place of the other."""
    wires = [(0, 1), *((1, 9 + index) for index in range(99))]
    chain = CellNetlist.build(1, False, [6] * 100, wires, [108])
    assert register_program(chain).registers == 2
