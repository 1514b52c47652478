"""Benchmarks of all engines: named cases are verified, then timed on all engines in turn within one run.

`cases` defines the cases, `contender` opens a case and verifies its results, `runner` times it, `work` counts its
operations and bytes, `profile` measures the kernels of a train step and finds the bottleneck, `results` loads and
compares results files, and `scaling` summarizes how the time grows with the work.
"""
