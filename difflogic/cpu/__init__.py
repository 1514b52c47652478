"""CPU engine: the kernels specified in `reference/kernels/`, and a training loop, compiled by Numba.

A *tile* is `TILE` consecutive cells. Inside a tile every node is one row of `TILE` floats, and a gate is a few SIMD
instructions on rows (`codegen/vectors.py`). The tiles of a CA step are independent. `runner.py` distributes them
over threads, in blocks of consecutive tiles, and starts a step only when the previous one is complete. Sums are taken
per block, then over the blocks in order, so results do not depend on the number of threads or on their timing.

The backward pass recomputes the nodes of a step from its state, which is faster than loading them from memory.
"""

import os
import re

from difflogic.errors import UsageError

# Check the settings before Numba is imported: it would raise its own errors or, worse, interpret every kernel.
_threads = os.environ.get("NUMBA_NUM_THREADS", "1")
if not re.fullmatch("0*[1-9][0-9]{0,8}", _threads):
    raise UsageError(f"NUMBA_NUM_THREADS must be 1 to 999,999,999, got {_threads!r}: correct or unset it.")
if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    raise UsageError("NUMBA_DISABLE_JIT is set, but the CPU engine has to be compiled: unset it.")
