"""Kernels in NumPy, one file per shader in `shaders/`, with the same stem."""
