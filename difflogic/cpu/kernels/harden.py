"""Stochastic hardening: in each epoch, evaluate a random share of the gates as their most probable functions."""

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import threefry2x32, word_of_bits
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.kernels.candidates import harden_wires
from difflogic.cpu.program import Program
from difflogic.engine.events import HARDENING_STREAM, Hardening


@inlined
def growing_share(hardening: Hardening, epochs: int) -> int:
    """Return the share of hard gates after `epochs` epochs, as `Hardening.share` does."""
    # An integer, in units of 2^-16: all engines compare the same number with the same 16 bits.
    grown = np.int64(epochs) - hardening.first
    return hardening.peak * max(0, min(int(grown), hardening.length)) // hardening.length


@inlined
def harden(first: int, last: int, share: int, key0: int, key1: int, program: Program, buffers: Buffers) -> None:
    """Sample the hard gates among `first` to `last`, as `Hardening.draw` does; set their coefficients and wires."""
    gates, logits = program.gates, buffers.logits
    key0, key1 = threefry2x32(key0, key1, np.uint32(0), np.uint32(HARDENING_STREAM))
    for gate in range(first, last):
        word = word_of_bits(key0, key1, gate, gates)
        if np.int64(word >> np.uint32(16)) < share:
            # The first of equal logits is chosen, as in all engines.
            best = logits[gate * GATE_COUNT : (gate + 1) * GATE_COUNT].argmax()
            # Only the coefficients change: `probs`, and with them the gradient, stay those of the softmax.
            for index in range(4):
                buffers.coefficients[4 * gate + index] = buffers.table[index * GATE_COUNT + best]
            if program.candidates > 1:
                harden_wires(gate, program, logits, buffers.shares)
