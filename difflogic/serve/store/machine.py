"""Restrict a store to one machine at a time, since two machines would damage the database.

`machine.json` names the machine, and the file's modification time is the last heartbeat. Every process that has opened
the store sends a heartbeat every BEAT_S seconds. Another machine may take over GONE_S seconds after the last heartbeat.
"""

import json
import math
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

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
    """Identity of a machine, unchanged until the machine restarts."""

    name: str
    id: str
    """Identifier of the installed system (`/etc/machine-id`), which all containers of one image share."""
    boot: str | None

    def is_same(self, other: Self) -> bool:
        """Return whether `other` is this machine: it has the same boot identifier, or the same `name` and `id`."""
        # Containers of one machine have distinct names, but share the kernel, and file locks work between them.
        if self.boot is not None and self.boot == other.boot:
            return True
        return (self.name, self.id) == (other.name, other.id)


def here() -> Machine:
    """Return the identity of this machine."""
    try:
        identity = _ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        identity = ""
    return Machine(platform.node(), identity, boot_id())


class Occupancy:
    """Claim of this machine on a store, valid as long as one of its processes sends heartbeats."""

    def __init__(self, folder: Path) -> None:
        """Claim the store in `folder`. Raises StoreError if another machine uses the store."""
        self._path, self._here = folder / NAME, here()
        self._beaten = -BEAT_S
        self._checked: tuple[int, int] | None = None
        other = self._other()
        if other is not None and (wait := GONE_S - (age := self._age())) > 0:
            if age < 0:  # its clock was ahead: the waiting time begins now, and again after its next heartbeat
                os.utime(self._path)
                wait = GONE_S
            raise StoreError(
                f"The store {folder} is used by the machine {other.name}: stop the server and the workers there. If "
                f"{other.name} is gone or was renamed, try again in {math.ceil(wait)} seconds."
            )
        if self._claimed() != self._here:
            self._write()
        self.beat()

    def beat(self) -> None:
        """Send this machine's heartbeat. Raises StoreLostError if another machine has taken over the store."""
        try:
            status = self._path.stat()
            if (status.st_ino, status.st_mtime_ns) != self._checked:
                if (other := self._other()) is not None:
                    raise StoreLostError(
                        f"The machine {other.name} took over the store while this one was suspended: stop one server."
                    )
                self._checked = status.st_ino, status.st_mtime_ns
            if time.monotonic() - self._beaten >= BEAT_S:
                os.utime(self._path)
                self._beaten = time.monotonic()
        except FileNotFoundError:
            self._write()
        except OSError as error:
            raise StoreError(f"Cannot mark the store as in use: {error}.") from error

    def _write(self) -> None:
        try:
            files.write_atomically(self._path, json.dumps(asdict(self._here)).encode())
            self._path.chmod(0o600)
        except FileNotFoundError:  # another process of this machine has just written the same file
            return
        except OSError as error:
            raise StoreError(f"Cannot mark the store as in use: {error}.") from error

    def _other(self) -> Machine | None:
        """Return the other machine that claims the store, or None if there is none."""
        machine = self._claimed()
        return None if machine is None or machine.is_same(self._here) else machine

    def _claimed(self) -> Machine | None:
        with suppress(OSError, ValueError, TypeError):  # missing, or incomplete after a full disk
            return Machine(**json.loads(self._path.read_bytes()))
        return None

    def _age(self) -> float:
        """Return the seconds since the last heartbeat, measured by the clock of the file system."""
        # The clocks of two machines differ; the times of two files on one file system come from the same clock.
        mark = self._path.with_name(f"{NAME}.now")
        try:
            mark.touch()
            os.utime(mark)
            return mark.stat().st_mtime - self._path.stat().st_mtime
        except OSError as error:
            raise StoreError(f"Cannot write to the store {self._path.parent}: {error.strerror or error}.") from error
        finally:
            mark.unlink(missing_ok=True)
