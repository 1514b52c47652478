"""One try at a training job: from its newest checkpoint that can be read, else from the beginning."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from difflogic import checkpoint
from difflogic.config import Config
from difflogic.errors import CheckpointError
from difflogic.serve.job_log import say
from difflogic.serve.jobs import Job
from difflogic.serve.watch import Watch
from difflogic.train.folder import RunFolder
from difflogic.train.loop import Run, Trainer
from difflogic.train.placement import Placement


def train(job: Job, path: Path, placement: Placement, watch: Watch) -> Run:
    """Train a job in its run folder, from where it is. Raises what `Trainer.run` raises."""
    assert job.config is not None
    trainer = Trainer(Config.from_dict(job.config), placement.engine, placement.reason)
    for file in _checkpoints(path):
        try:
            return trainer.run(resume=file, stop_when_solved=job.stop_when_solved, observer=watch)
        except CheckpointError as error:
            if watch.began_at is not None:
                raise
            say(f"{file.name} cannot be used: {error}")
    _make_way(path)
    return trainer.run(out=path, population=job.population, stop_when_solved=job.stop_when_solved, observer=watch)


def _checkpoints(path: Path) -> Iterator[Path]:
    """The newest first."""
    for name in (checkpoint.NAME, checkpoint.PREVIOUS):
        if (path / name).exists():
            yield path / name


def _make_way(path: Path) -> None:
    """No checkpoint can be used: put what is there aside. Raises RunFolderError where another process holds it."""
    if not path.exists():
        return
    RunFolder(path).close()
    if not list(_checkpoints(path)):  # its worker was lost before the first checkpoint
        shutil.rmtree(path)
        return
    aside = next(each for number in range(1, 1000) if not (each := path.with_name(f"unusable-{number}")).exists())
    path.rename(aside)
    say(f"no checkpoint can be used: the run begins again; what was there is kept in {aside.name}")
