"""Write a job's log, which is everything that the worker process prints to standard output and standard error."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from difflogic.system.files import PLAIN, append, tail
from difflogic.system.words import visible

MOST_BYTES = 1 << 20
"""Maximum size of a log in bytes; of a larger log, the older half is removed."""
STREAMS = (1, 2)


def say(text: str) -> None:
    """Write a line with the time and `text` to the log."""
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {visible(text)}\n")
    sys.stderr.flush()


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """Append all output of this process to a file within the context; after an exception, this redirection remains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    trim(path)
    # The descriptors are redirected, not `sys.stdout`: drivers and compiled code write to 1 and 2 directly.
    originals = [os.dup(stream) for stream in STREAMS]
    # O_APPEND puts every write at the end, also writes of a child process that has opened the same file.
    _redirect([os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | PLAIN, 0o600)] * len(STREAMS))
    yield
    _redirect(originals)


def trim(path: Path) -> None:
    """Reduce a log that is larger than MOST_BYTES to its last complete lines, at most half of MOST_BYTES."""
    if not path.exists() or path.stat().st_size <= MOST_BYTES:
        return
    # Half is removed, so that the next line does not make the log too long again.
    half = tail(path, MOST_BYTES // 2)
    os.truncate(path, 0)  # not replaced by another file, since this one is open for appending
    append(path, half)


def last_words(path: Path) -> str:
    """Return the last line of a log, shortened to fit into a sentence, or "" if there is none."""
    with suppress(OSError):
        lines = [line.strip() for line in tail(path, 4096).decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""
    return ""


def how_it_ended(status: int, who: str = "its worker") -> str:
    """Return a clause about the exit status of a process, with `who` as its subject."""
    if status >= 0:
        return f"{who} ended with exit status {status}"
    name = signal.Signals(-status).name
    verbs = {"SIGKILL": "was killed", "SIGABRT": "was aborted", "SIGSEGV": "crashed", "SIGBUS": "crashed"}
    return f"{who} {verbs.get(name, 'was ended')} ({name})"


def _redirect(descriptors: list[int]) -> None:
    """Redirect standard output and standard error to `descriptors`, and close these descriptors."""
    sys.stdout.flush()
    sys.stderr.flush()
    for stream, descriptor in zip(STREAMS, descriptors, strict=True):
        os.dup2(descriptor, stream)
    for descriptor in set(descriptors):
        os.close(descriptor)
