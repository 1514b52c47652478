"""The kernels in NumPy, one file per shader, of the same stem."""
