"""The one machine that uses a store: two would destroy the database, wherever its folder is mounted from.

`machine.json` says which one it is, and the time of that file is its last sign of life: every process that has the
store open gives one, BEAT_S after the last. Another machine may take the store GONE_S after the last one.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from difflogic.errors import StoreError
from difflogic.serve.store.clock import boot_id
from difflogic.serve.store.jobs import StoreLostError
from difflogic.system import files

NAME = "machine.json"
BEAT_S = 10.0
GONE_S = 60.0
_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Machine:
    """A machine, from one start to the next."""

    name: str
    id: str
    """What its system was called when it was installed; containers of one image have the same."""
    boot: str | None

    def is_same(self, other: Machine) -> bool:
        """Whether both are one machine: under one kernel, or after a new start by name and id together."""
        # Containers of one machine have names of their own, and one kernel, whose locks hold for all of them.
        if self.boot is not None and self.boot == other.boot:
            return True
        return (self.name, self.id) == (other.name, other.id)


def here() -> Machine:
    """This machine."""
    try:
        identity = _ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        identity = ""
    return Machine(platform.node(), identity, boot_id())


class Occupancy:
    """This machine's claim to a store, for as long as one of its processes has it open."""

    def __init__(self, folder: Path) -> None:
        """Claim it. Raises StoreError where another machine uses it."""
        self._path, self._here = folder / NAME, here()
        self._beaten = -BEAT_S
        self._checked: tuple[int, int] | None = None
        other = self._other()
        if other is not None and (left := GONE_S - (age := self._age())) > 0:
            if age < 0:  # its clock was ahead: it is counted from now, and anew should it be alive
                os.utime(self._path)
                left = GONE_S
            raise StoreError(
                f"The store {folder} is used by the machine {other.name}: stop the server and the workers there. Where "
                f"it is gone, or was given another name, the store can be used in {math.ceil(left)} seconds."
            )
        if self._claimed() != self._here:
            self._write()
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat of this machine. Raises StoreLostError if another machine has taken the store."""
        try:
            status = self._path.stat()
            if (status.st_ino, status.st_mtime_ns) != self._checked:
                if (other := self._other()) is not None:
                    raise StoreLostError(
                        f"The machine {other.name} took over the store while this one was suspended: stop one of them."
                    )
                self._checked = status.st_ino, status.st_mtime_ns
            if time.monotonic() - self._beaten >= BEAT_S:
                os.utime(self._path)
                self._beaten = time.monotonic()
        except FileNotFoundError:
            self._write()
        except OSError as error:
            raise StoreError(f"The store cannot be marked as used: {error}.") from error

    def _write(self) -> None:
        try:
            files.write_atomically(self._path, json.dumps(asdict(self._here)).encode())
            self._path.chmod(0o600)
        except FileNotFoundError:  # another process of this machine has written the same
            return
        except OSError as error:
            raise StoreError(f"The store cannot be marked as used: {error}.") from error

    def _other(self) -> Machine | None:
        """Whoever claims the store, where that is not this machine."""
        found = self._claimed()
        return None if found is None or found.is_same(self._here) else found

    def _claimed(self) -> Machine | None:
        with suppress(OSError, ValueError, TypeError):  # none, or what a full disk left of it: it is claimed anew
            return Machine(**json.loads(self._path.read_bytes()))
        return None

    def _age(self) -> float:
        """Seconds since the last heartbeat, by the clock of the file system."""
        # The clocks of two machines differ; the times of two files come from one of them.
        mark = self._path.with_name(f"{NAME}.now")
        try:
            mark.touch()
            os.utime(mark)
            return mark.stat().st_mtime - self._path.stat().st_mtime
        except OSError as error:
            raise StoreError(f"Cannot write to the store {self._path.parent}: {error.strerror or error}.") from error
        finally:
            mark.unlink(missing_ok=True)
