"""The engine for machines without a GPU: the same kernels in Numba, one file per twin in `reference/kernels/`.

A *tile* is `TILE` consecutive cells. Inside a tile every node is one row of `TILE` floats, and a gate is a
handful of vector instructions on rows (`codegen/vectors.py`). Tiles of one CA step are independent; `runner.py`
hands them to threads, in blocks where they are many, and lets no step begin before the one it needs is complete.
Sums are taken per block and then over blocks in order, so that results depend neither on the number of threads nor
on their timing.

The backward pass recomputes a step's nodes from its state: cheaper than fetching them from memory.
"""

import os
import re

from difflogic.errors import UsageError

# Before Numba is loaded, which would raise errors of its own or, worse, interpret every kernel.
_threads = os.environ.get("NUMBA_NUM_THREADS", "1")
if not re.fullmatch("0*[1-9][0-9]{0,8}", _threads):
    raise UsageError(f"NUMBA_NUM_THREADS must be a whole number from 1 on, got {_threads!r}: set another, or none.")
if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
    raise UsageError("NUMBA_DISABLE_JIT is set, but the CPU engine has to be compiled: unset it.")
