"""Measuring: named cases that are verified first and timed then, engine beside engine in the same run.

`cases` names what can be measured, `contender` opens and verifies, `rounds` times, `work` counts what was
done, `profile` takes a train step apart, `limits` says what bounds it, `results` is the file.
"""
