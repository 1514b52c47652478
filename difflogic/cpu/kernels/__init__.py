"""The kernels in Numba, one file per twin in `reference/kernels/`."""
