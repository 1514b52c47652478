"""A worker that dies of every job: `python -m tests.serve.dying STORE --name NAME ...`."""

from __future__ import annotations

import os

from difflogic.serve.worker import worker
from difflogic.serve.worker.lease import Lease
from difflogic.serve.worker.log import say


def _train(self: worker.WorkerProcess, lease: Lease) -> None:
    say("the driver is broken")
    os._exit(7)


if __name__ == "__main__":
    worker.WorkerProcess._train = _train
    worker.main()
