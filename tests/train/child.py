"""A training process to interrupt."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import difflogic.cpu.model
import difflogic.gpu.model
from difflogic.devices.open import open_engine
from difflogic.train.observer import Beginning, Observer
from difflogic.train.trainer import Trainer
from tests.train.tiny import tiny_config

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


def start(folder: Path, **options: Any) -> BaseProcess:
    """Run `train` in a process that is forked from one that has all imports and no engine."""
    process = _CONTEXT.Process(target=train, args=(folder,), kwargs=options, daemon=True)
    process.start()
    return process


def pipe() -> tuple[Connection, Connection]:
    """Return the ends of a pipe by which a child sends epochs and waits for an answer after each."""
    return _CONTEXT.Pipe()


def train(
    folder: Path,
    engine: str,
    population: int | None = None,
    resume: bool = False,
    kill_at: int = 0,
    told: Connection | None = None,
) -> None:
    """`kill_at`: SIGKILL at this file operation after the run began, in the middle of a write where it is one."""
    difflogic.cpu.model.CALL_SECONDS = difflogic.gpu.model.SUBMIT_SECONDS = 0.0  # epoch by epoch
    trainer = Trainer(tiny_config(), open_engine(engine))
    where = {"resume" if resume else "out": folder}
    trainer.run(**where, population=population, observer=_Killer(kill_at, told))


class _Killer(Observer):
    def __init__(self, at: int, told: Connection | None) -> None:
        self.left, self.told = at, told

    def began(self, beginning: Beginning) -> None:
        if self.left:
            os.write = self._counted(os.write)
            os.fsync = self._counted(os.fsync)
            Path.replace = self._counted(Path.replace)

    def advanced(self, epoch: int) -> None:
        if self.told:
            self.told.send(epoch)
            self.told.recv()

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.left -= 1
            if self.left:
                return function(*arguments)
            if function.__name__ == "write":
                function(arguments[0], arguments[1][: len(arguments[1]) // 2])
            return os.kill(os.getpid(), signal.SIGKILL)

        return call
