"""The model in JAX and in PyTorch with automatic differentiation, to check gradients and to compare speed.

Both packages belong to the extra `bench`, and are imported only on use.
"""

import numpy as np


# Not imported from `core.gates`: an error there would otherwise escape the comparison of engines with this model.
def _row(gate: int) -> tuple[int, int, int, int]:
    f00, f01, f10, f11 = ((gate >> (3 - index)) & 1 for index in range(4))
    return f00, f10 - f00, f01 - f00, f11 - f10 - f01 + f00


TABLE = np.array([_row(gate) for gate in range(16)], dtype=np.float32)
"""Coefficients of the sixteen gates, `c0 + ca*a + cb*b + cab*a*b`, float32 `[16, 4]`."""
