"""Run a worker that fails once, to test the recovery of its job.

    python -m benchmarks.service.faulty KIND EPOCH MARK STORE '{...}'

The worker fails at the first opportunity from EPOCH on, unless the file MARK exists, which it creates before failing:

    abort    a submit with a destroyed buffer ends the process inside the GPU library
    hang     the CPU engine does not return
    full     the disk is full when a checkpoint is written
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from difflogic.runs import checkpoint
from difflogic.serve.worker import worker


def _abort(first: int, mark: Path) -> None:
    from difflogic.gpu.model import GpuModel

    train = GpuModel.train

    def faulty(model: GpuModel, epochs: int) -> None:
        if model._epoch >= first and not mark.exists():
            mark.touch()
            # wgpu ends the process inside its library, as a broken driver would, without an exception or `finally`
            # blocks.
            model.workspace.buffers["history"].destroy()
        train(model, epochs)

    GpuModel.train = faulty


def _hang(first: int, mark: Path) -> None:
    from difflogic.cpu.model import CpuModel
    from difflogic.engine import control

    train = CpuModel.train

    def faulty(model: CpuModel, epochs: int) -> None:
        if model.work.buffers.control[control.EPOCH] >= first and not mark.exists():
            mark.touch()
            while True:
                time.sleep(1)
        train(model, epochs)

    CpuModel.train = faulty


def _full(first: int, mark: Path) -> None:
    save = checkpoint.written_beside

    def faulty(path: Path, data: bytes) -> AbstractContextManager[Path]:
        if checkpoint.decode(data, path).epoch < first or mark.exists():
            return save(path, data)
        mark.touch()
        # Only the next write fails: the disk is full for a moment, and the next attempt succeeds.
        write = os.write

        def refuse(descriptor: int, rest: Any) -> int:
            os.write = write
            write(descriptor, rest[: len(rest) // 2])  # a nearly full disk writes a part before it fails
            raise OSError(28, os.strerror(28))

        os.write = refuse
        return save(path, data)

    checkpoint.written_beside = faulty


KINDS = {"abort": _abort, "hang": _hang, "full": _full}


def main() -> None:
    kind, first, mark = sys.argv[1:4]
    KINDS[kind](int(first), Path(mark))
    del sys.argv[1:4]
    worker.main()


if __name__ == "__main__":
    main()
