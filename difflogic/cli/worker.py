"""`difflogic worker`: more hands for a store."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

import click

from difflogic.cli.options import megabytes


@click.command("worker")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--workers",
    default="auto",
    metavar="DEVICES",
    help="A list such as cpu,gpu:0; auto: each GPU and the processor [auto].",
)
@click.option("--max-memory", type=megabytes, metavar="MB", help="Device memory that a job may take (GPU).")
def command(folder: Path, workers: str, max_memory: int | None) -> None:
    """Train the jobs in FOLDER, that of a `difflogic serve` on this machine, beside its own workers.

    A job is never trained twice: whoever takes it holds it, and where a worker dies or hangs, the job goes on from its
    last checkpoint. Ctrl-C saves what is under way and hands it back.

    Example: difflogic worker difflogic-jobs --workers gpu:1
    """
    from difflogic.serve import devices, logs
    from difflogic.serve.store import Store
    from difflogic.serve.supervisor import Supervisor

    wanted = devices.parse(workers)
    Store.existing(folder).close()
    logs.set_up()
    supervisor = Supervisor(folder, wanted, max_memory=max_memory)

    def stop(number: int, frame: FrameType | None) -> None:
        supervisor.stop()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
    supervisor.run()
