"""Run a post-processing job or a sweep in a separate process, which can be killed at any time.

    python -m difflogic.serve.worker.follow_up_process STORE JOB

A solver holds Python's global interpreter lock for minutes: a thread of the same process could neither send heartbeats
nor stop the solver. The worker sends the heartbeats as long as the process uses processor time.
"""

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
from typing import Any, Self

from difflogic.errors import DifflogicError, RunFolderError, StoreError
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import how_it_ended, say
from difflogic.system import files
from difflogic.system.child import python_command

GROUPS = os.name == "posix"
COMMAND = python_command("-m", "difflogic.serve.worker.follow_up_process")


class FollowUpProcess:
    """Process for a post-processing job or a sweep, which prints to the job's log and is killed at context exit."""

    def __init__(self, store: Path, job: str) -> None:
        """Start the process. Raises OSError."""
        # The outcome is written to a file: a full pipe that is not read would block the process.
        self._answer = tempfile.TemporaryFile()  # noqa: SIM115  it is closed with the context
        # In a separate process group, one signal ends the process and its child processes.
        self._process = subprocess.Popen(
            [*COMMAND, str(store), job], stdin=subprocess.PIPE, stdout=self._answer, process_group=0 if GROUPS else None
        )
        self._started = self._advanced = time.monotonic()
        self._processor_s: float | None = None

    def __enter__(self) -> Self:
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
        """Wait at most `seconds` for the process to end, and return whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            processor_s = processor_time(self.pid)
            # Processor time shows progress, output does not: a solver may compute for an hour and print nothing.
            if processor_s is None or processor_s != self._processor_s:
                self._processor_s, self._advanced = processor_s, time.monotonic()
            return False
        return True

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def stalled_s(self) -> float:
        """Seconds since the process last used processor time, or about 0 if the system does not report it."""
        return time.monotonic() - self._advanced

    def progress(self) -> dict[str, Any]:
        """Return the job's columns from the last report of the process, or {} before the first report."""
        reports = [line for line in self._lines() if "status" not in line]
        return reports[-1] if reports else {}

    def _lines(self) -> list[dict[str, Any]]:
        self._answer.seek(0)
        complete, _, _ = self._answer.read().rpartition(b"\n")
        return [json.loads(line) for line in complete.splitlines()]

    def outcome(self) -> dict[str, Any] | str:
        """Return `status`, `reason` and `result` of the job or, if the process failed, the reason as a clause."""
        status = self._process.returncode
        return how_it_ended(status, "its process") if status else self._lines()[-1]


def processor_time(process: int) -> float | None:
    """Return the processor seconds of a process and its descendants, or None if the system does not report them."""
    try:
        # The program's name is in parentheses and may contain spaces: the fields are those after the last parenthesis.
        # Among these, fields 11 and 12 are the ticks in user and in system mode.
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        tasks = Path(f"/proc/{process}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return None
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_time(child) or 0.0 for child in children)


def _end_with_worker() -> None:
    """Kill this process once its worker has ended and no solver holds the global interpreter lock.

    The next try may have begun by then. This is safe: both tries write the same bytes, and each file atomically.
    """
    while os.read(0, 1):
        pass
    if GROUPS:
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _result(store: Store, job: JobRecord, report: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    # Imported only if needed, since the import takes as long as a short post-processing job.
    if job.kind == "sweep":
        from difflogic.serve.worker.sweeps import sweep

        return sweep(store, job, report)
    from difflogic.serve.worker.follow_ups import follow

    return follow(store, job)


def main() -> None:
    """Run the post-processing job or sweep JOB of STORE, and write its outcome to standard output as JSON."""
    folder, job = sys.argv[1:]
    threading.Thread(target=_end_with_worker, daemon=True).start()
    # Only the outcome goes to the original output: what libraries print goes to the log.
    answer = os.dup(1)
    os.dup2(2, 1)
    store = Store.existing(Path(folder), durable=False)

    def report(line: dict[str, Any]) -> None:
        files.write_all(answer, json.dumps(line, allow_nan=False).encode() + b"\n")

    record = store.job(job)
    # For a sweep, these errors fail only this try: the next try continues the sweep.
    passing = (RunFolderError, StoreError, OSError) if record.kind == "sweep" else ()
    try:
        report({"status": "done", "reason": None, "result": _result(store, record, report)})
    except passing as error:
        say(str(error))
        sys.exit(1)
    except (DifflogicError, OSError, MemoryError) as error:
        report({"status": "failed", "reason": str(error) or "There was not enough memory.", "result": None})


if __name__ == "__main__":
    main()
