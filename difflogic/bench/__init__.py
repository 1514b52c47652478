"""Benchmarks of all engines: named cases are verified, then timed alternately on the engines within one run.

`cases` defines the cases, `contender` opens a case and verifies its results, `runner` times it, `work` counts its
operations and bytes, `profile` splits a train step into its kernels and finds the bottleneck, `results` reads and
compares results files, and `scaling` summarizes the growth of the cost with the work.
"""
