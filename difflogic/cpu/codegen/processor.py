"""Name and features of the processor for which code is compiled."""

from llvmlite import binding
from numba.core import config


def target() -> tuple[str, str]:
    """Return the processor's name and features in LLVM's notation, or those in Numba's settings, if any."""
    features = config.CPU_FEATURES
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    return config.CPU_NAME or binding.get_host_cpu_name(), features


PARTS = (8, 16)
"""Possible values of PART."""
PART = 16 if "+avx512f" in target()[1].split(",") else 8
"""Number of floats of a row that kernels with many rows process at a time: one register of AVX-512 or AVX2, or
two registers of NEON. Results do not depend on PART."""
