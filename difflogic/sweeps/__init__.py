"""Sweeps: many runs (trials) that differ in some configuration fields, with a table, a page and a copy of the best run.

    described = Spec.of(preset="checkerboard-small", over={"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)

This package chooses and ranks trials, which jobs in the queue of the training service train: see
`difflogic.serve.sweep`, which begins a sweep, and `difflogic.serve.worker.sweeps`.

`trial_rows` and `html` return the table and the page of a finished or unfinished `Sweep`.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "trial_rows"]
