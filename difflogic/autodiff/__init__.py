"""The model in JAX and in PyTorch, which differentiate by themselves: to check gradients with, and to measure against.

Both are packages of the extra `bench`; nothing here is imported before it is asked for.
"""

import numpy as np


# Not taken from `core.gates`: a test of the engines must not share a mistake with them.
def _row(gate: int) -> tuple[int, int, int, int]:
    f00, f01, f10, f11 = ((gate >> (3 - index)) & 1 for index in range(4))
    return f00, f10 - f00, f01 - f00, f11 - f10 - f01 + f00


TABLE = np.array([_row(gate) for gate in range(16)], dtype=np.float32)
"""The sixteen gates as `c0 + ca*a + cb*b + cab*a*b`, float32 `[16, 4]`, from their truth tables."""
