"""A worker that dies of every job: `python -m tests.serve.dying STORE --name NAME ...`."""

from __future__ import annotations

import os

from difflogic.serve import worker
from difflogic.serve.job_log import say
from difflogic.serve.lease import Lease


def _train(self: worker.Worker, lease: Lease) -> None:
    say("the driver is broken")
    os._exit(7)


if __name__ == "__main__":
    worker.Worker._train = _train
    worker.main()
