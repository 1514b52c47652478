"""Kernels in Numba, one file for each reference in `reference/kernels/`."""
