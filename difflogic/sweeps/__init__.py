"""Sweeps: many runs (trials) that differ in some fields, with a table, a page and a copy of the best run.

    described = Spec.of(preset="checkerboard-small", over={"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)

A sweep chooses and ranks its trials. Jobs in the queue of the service train the trials: see `difflogic.serve.sweep`,
which begins a sweep, and `difflogic.serve.worker.sweeps`.

For an unfinished `Sweep`, `trial_rows` and `html` return the table and the page of the trials so far.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "trial_rows"]
