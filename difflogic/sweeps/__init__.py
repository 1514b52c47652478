"""Sweeps: many runs (trials) that differ in some configuration fields, with a table, a page and a copy of the best run.

    described = Spec.of(preset="checkerboard-small", over={"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)

This package only chooses and ranks trials. They are trained as jobs of the training service: `difflogic.serve.sweep`
starts a sweep from the command line or Python, `difflogic.serve.worker.sweeps` a sweep on a server.

`trial_rows` and `html` return the table and the page of a finished or unfinished `Sweep`.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "trial_rows"]
