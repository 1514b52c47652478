"""Definition of the sixteen two-input gates by truth tables and real coefficients.

A gate's id is its truth table: bit `3 - (2a + b)` of the id is the output for inputs `(a, b)`, so
the id's four bits, most significant first, are the outputs for 00, 01, 10, 11.

Relaxed to real numbers, a gate is `c0 + ca*a + cb*b + cab*a*b`. The four coefficients are linear in the
truth table, so a softmax mixture of the sixteen gates is again a polynomial of this form.
Source: Miotti et al. 2025 (arXiv 2506.04912), section 2; the authors' notebook, `bin_op_all_combinations`.
"""

import numpy as np

GATE_COUNT = 16
PASS_THROUGH = 3
"""Id of the gate `A`, whose output is its input `a`; training initializes every gate with this function."""
OR = 7

NAMES = (
    "FALSE", "AND", "A AND NOT B", "A", "NOT A AND B", "B", "XOR", "OR",
    "NOR", "XNOR", "NOT B", "A OR NOT B", "NOT A", "NOT A OR B", "NAND", "TRUE",
)  # fmt: skip

_ids = np.arange(GATE_COUNT)
TRUTH = np.stack([(_ids >> (3 - row)) & 1 for row in range(4)], axis=1)
"""Output of each gate for inputs 00, 01, 10, 11, int `[16, 4]`."""

# From c0 + ca*a + cb*b + cab*a*b at the four corners: f00 = c0, f10 = c0 + ca, f01 = c0 + cb, f11 = sum of all four.
_f00, _f01, _f10, _f11 = TRUTH.T
TABLE = np.stack([_f00, _f10 - _f00, _f01 - _f00, _f11 - _f10 - _f01 + _f00], axis=1)
"""Coefficients `(c0, ca, cb, cab)` of each gate, int `[16, 4]`."""

INPUT_WISE = TRUTH - 0.5
"""Weights float `[16, 4]` that convert an input-wise gate's four parameters to logits: `parameters @ INPUT_WISE.T`.

The sigmoid of each parameter is the soft gate's output in one row of the truth table: the softmax of the logits is a
product of one probability per row. Source: Rüttgers et al. 2025 (arXiv 2510.03250).
"""

# All modules share these arrays: an accidental write would change every circuit of the process.
for _constant in (TRUTH, TABLE, INPUT_WISE):
    _constant.setflags(write=False)
