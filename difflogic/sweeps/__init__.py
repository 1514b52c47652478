"""Sweeps: many runs that differ in some fields, each a trial, with a table, a page and the best of them.

    described = Spec.of(preset="checkerboard-small", over={"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)

Here is what a sweep decides and tells: which trials there are, in which order they are ranked, and what came of them.
Trials are trained as jobs of the service's queue: see `difflogic.serve.sweep`, which begins a sweep, and
`difflogic.serve.worker.sweeps`.

What is exported here is all that other rooms use. `Sweep` may be made of the trials that an observer has heard of so
far: then `trial_rows` and `html` are the table and the page of a sweep under way.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "trial_rows"]
