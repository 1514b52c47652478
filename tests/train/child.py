"""A training process to interrupt: `python -m tests.train.child FOLDER [--resume] [--engine E] [--pause S]
[--kill-at N] [--population M]`.

`--kill-at N`: SIGKILL at the N-th file operation after the run began, in the middle of a write where it is one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflogic.devices.open import open_engine
from difflogic.train.observer import Beginning, Observer
from difflogic.train.trainer import Trainer
from tests.train.tiny import tiny_config


class Killer(Observer):
    def __init__(self, at: int, pause: float) -> None:
        self.left, self.pause = at, pause

    def began(self, beginning: Beginning) -> None:
        if self.left:
            os.write = self._counted(os.write)
            os.fsync = self._counted(os.fsync)
            Path.replace = self._counted(Path.replace)

    def advanced(self, epoch: int) -> None:
        sys.stdout.write(f"{epoch}\n")
        sys.stdout.flush()
        time.sleep(self.pause)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.left -= 1
            if self.left:
                return function(*arguments)
            if function.__name__ == "write":
                function(arguments[0], arguments[1][: len(arguments[1]) // 2])
            return os.kill(os.getpid(), signal.SIGKILL)

        return call


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--engine", default="reference")
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--kill-at", type=int, default=0)
    parser.add_argument("--population", type=int)
    options = parser.parse_args()
    where = {"resume" if options.resume else "out": options.folder}
    trainer = Trainer(tiny_config(), open_engine(options.engine))
    run = trainer.run(**where, population=options.population, observer=Killer(options.kill_at, options.pause))
    sys.exit(0 if run.interrupted is None else 128 + run.interrupted)


if __name__ == "__main__":
    main()
