"""The engine for machines without a GPU: the same kernels in Numba, one file per twin in `reference/`.

A *tile* is `TILE` consecutive cells. Inside a tile every node is one row of `TILE` floats, and a gate is a
handful of vector instructions on rows (`vectors.py`). Tiles of one CA step are independent; `schedule.py`
hands them to threads, in blocks where they are many, and lets no step begin before the one it needs is complete.
Sums are taken per block and then over blocks in order, so that results depend neither on the number of threads nor
on their timing.

The backward pass recomputes a step's nodes from its state: cheaper than fetching them from memory.
"""
