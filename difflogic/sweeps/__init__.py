"""Sweeps: many runs (trials) that differ in some fields, with a table, a page and the best one.

    described = Spec.of(preset="checkerboard-small", over={"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)

A sweep decides which trials there are and how they are ranked. They are trained as jobs of the service's queue: see
`difflogic.serve.sweep`, which begins a sweep, and `difflogic.serve.worker.sweeps`.

A `Sweep` may be unfinished: then `trial_rows` and `html` return the table and the page of the trials so far.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "trial_rows"]
