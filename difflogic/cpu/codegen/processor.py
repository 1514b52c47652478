"""The processor that code is compiled for."""

from llvmlite import binding
from numba.core import config


def target() -> tuple[str, str]:
    """The processor's name and its features, as LLVM writes them and Numba's settings may override."""
    features = config.CPU_FEATURES
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return config.CPU_NAME or binding.get_host_cpu_name(), features


PARTS = (8, 16)
"""What PART may be."""
PART = 16 if "+avx512f" in target()[1].split(",") else 8
"""Floats of a row that are done at a time where many rows are at work: the register of AVX2, or two of NEON; the
register of AVX-512. Results do not depend on it."""
