"""How compiled code is made: vectors, atomics, threads, and the cache of what was compiled."""
