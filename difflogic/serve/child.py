"""A worker's process as its supervisor sees it."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from difflogic.serve.phases import Limits

COMMAND = (sys.executable, "-m", "difflogic.serve.worker")


class Child:
    """A process that was started. It ends by itself when this one does, however: it sees its standard input end."""

    def __init__(
        self,
        store: Path,
        device: str,
        engines: Sequence[str],
        limits: Limits,
        max_memory: int | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Raises OSError."""
        self.device = device
        self.name = f"{device.replace(':', '-')}-{secrets.token_hex(4)}"
        arguments = ["--name", self.name, "--device", device, "--engines", ",".join(engines)]
        arguments += ["--limits", limits.to_json()]
        arguments += [] if max_memory is None else ["--max-memory", str(max_memory)]
        self._process = subprocess.Popen(
            [*command, str(store), *arguments],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the supervisor alone, which lets its workers save
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        if self.status is None:
            self._process.terminate()

    def kill(self) -> None:
        """End it now, if it has not ended, and wait for that."""
        if self.status is None:
            self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Let go of a process that has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()


def how_it_ended(status: int, who: str = "its worker") -> str:
    """In words, to be continued."""
    if status >= 0:
        return f"{who} ended with exit status {status}"
    name = signal.Signals(-status).name
    known = {"SIGKILL": "was killed", "SIGABRT": "was aborted", "SIGSEGV": "crashed", "SIGBUS": "crashed"}
    return f"{who} {known.get(name, 'was ended')} ({name})"
