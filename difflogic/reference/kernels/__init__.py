"""Kernels in NumPy, one file per shader, with the same stem."""
