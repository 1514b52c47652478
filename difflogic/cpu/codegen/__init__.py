"""Compiled code is made with these: vectors, atomics, threads, and the cache of what was compiled."""
