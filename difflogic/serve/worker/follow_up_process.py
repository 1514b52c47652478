"""A follow-up or a sweep in a process of its own, which can be ended at any moment.

    python -m difflogic.serve.worker.follow_up_process STORE JOB

A solver holds Python's lock for minutes, in which a thread beside it could neither say that it is alive nor end it.
Here the worker looks on, and what shows that the follow-up goes on is the time that it takes of a processor.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from difflogic.errors import DifflogicError, RunFolderError, StoreError
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import how_it_ended, say
from difflogic.system import files
from difflogic.system.child import python_command

GROUPS = os.name == "posix"
COMMAND = python_command("-m", "difflogic.serve.worker.follow_up_process")


class FollowUpProcess:
    """The process of a follow-up, as its worker sees it; leaving the context kills it. Both write to one log."""

    def __init__(self, store: Path, job: str) -> None:
        """Raises OSError."""
        # A file and no pipe: a pipe that nobody reads would block a process with a long answer.
        self._answer = tempfile.TemporaryFile()  # noqa: SIM115  it is closed with the context
        # A group of its own: what ends it ends the processes that it began too, at once and whatever they do.
        self._process = subprocess.Popen(
            [*COMMAND, str(store), job], stdin=subprocess.PIPE, stdout=self._answer, process_group=0 if GROUPS else None
        )
        self._begun = self._moved = time.monotonic()
        self._took: float | None = None

    def __enter__(self) -> FollowUpProcess:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL) if GROUPS else self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._answer.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_over(self, seconds: float) -> bool:
        """Wait for so many seconds at most; returns whether the process has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            took = processor_time(self.pid)
            # Processor time and not output: a solver may compute for an hour and say nothing.
            if took is None or took != self._took:
                self._took, self._moved = took, time.monotonic()
            return False
        return True

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    @property
    def stalled_s(self) -> float:
        """Seconds for which no processor has worked for it; 0 where the system does not tell."""
        return time.monotonic() - self._moved

    def progress(self) -> dict[str, Any]:
        """Columns of the job, as it told of them last; empty where it tells of none."""
        told = [line for line in self._lines() if "status" not in line]
        return told[-1] if told else {}

    def _lines(self) -> list[dict[str, Any]]:
        self._answer.seek(0)
        whole, _, _ = self._answer.read().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def outcome(self) -> dict[str, Any] | str:
        """Return `status`, `reason` and `result`; if the process failed, the beginning of a sentence that says how."""
        status = self._process.returncode
        return how_it_ended(status, "its process") if status else self._lines()[-1]


def processor_time(process: int) -> float | None:
    """Seconds that processors worked for a process and those that it began; None where the system does not tell."""
    try:
        # The name of the program stands in parentheses and may hold spaces: the fields are counted after the last one.
        # Numbers 11 and 12 of the rest are the ticks in user and in system mode.
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        tasks = Path(f"/proc/{process}/task").iterdir()
        begun = [int(each) for task in tasks for each in (task / "children").read_text().split()]
    except OSError:
        return None
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_time(each) or 0.0 for each in begun)


def _end_with_worker() -> None:
    """End this process once its worker is gone, as soon as no solver holds Python's lock.

    Until then the next try may have begun: both write the same bytes, each file at once, so that no harm is done.
    """
    while os.read(0, 1):
        pass
    if GROUPS:
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _result(store: Store, job: JobRecord, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    # Loaded for what is asked alone: what a sweep needs takes as long as a short follow-up.
    if job.kind == "sweep":
        from difflogic.serve.worker.sweeps import sweep

        return sweep(store, job, tell)
    from difflogic.serve.worker.follow_ups import follow

    return follow(store, job)


def main() -> None:
    """Do the follow-up JOB of STORE, and write its outcome to standard output, as JSON."""
    folder, job = sys.argv[1:]
    threading.Thread(target=_end_with_worker, daemon=True).start()
    # What libraries print goes to the log, and only the outcome to the original output.
    answer = os.dup(1)
    os.dup2(2, 1)
    store = Store.existing(Path(folder), durable=False)

    def tell(told: dict[str, Any]) -> None:
        files.write_all(answer, json.dumps(told, allow_nan=False).encode() + b"\n")

    record = store.job(job)
    # A sweep goes on from where it is, with the next try.
    again = (RunFolderError, StoreError, OSError) if record.kind == "sweep" else ()
    try:
        tell({"status": "done", "reason": None, "result": _result(store, record, tell)})
    except again as error:
        say(str(error))
        sys.exit(1)
    except (DifflogicError, OSError, MemoryError) as error:
        tell({"status": "failed", "reason": str(error) or "There was not enough memory.", "result": None})


if __name__ == "__main__":
    main()
