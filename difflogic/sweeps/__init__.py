"""Sweeps: many runs that differ in some fields, each a trial, with a table, a page and the best of them.

    done = sweep("checkerboard-small", {"optimizer.lr": "0.02:0.2:log", "seed": range(4)}, trials=40)
    done.best.values, done.path / "index.html"
    resume_sweep(done.path, trials=80)

What is exported here is all that other rooms use. `Sweep` may be made of the trials that an observer has heard of so
far: then `trial_rows` and `html` are the table and the page of a sweep under way.
"""

from difflogic.sweeps.course import Sweep, SweepObserver, Trial
from difflogic.sweeps.page import html
from difflogic.sweeps.run import resume_sweep, sweep
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.table import trial_rows

__all__ = ["Spec", "Sweep", "SweepObserver", "Trial", "html", "resume_sweep", "sweep", "trial_rows"]
