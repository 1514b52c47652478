"""Kernels in Numba; their references in NumPy are in `reference/kernels/`."""
