"""Building blocks of compiled code: SIMD vectors, atomics, threads, and the cache of machine code."""
