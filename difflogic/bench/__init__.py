"""Benchmarks: named cases that are verified and then timed, on all engines in turns within one run.

`cases` names what can be measured, `contender` opens and verifies, `runner` times, `work` counts what was
done, `profile` takes a train step apart and says what bounds it, `results` is the file and its comparison with
another, `scaling` says how the cost grows.
"""
