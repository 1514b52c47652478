"""What of a store may go: jobs that ended long ago, the oldest where the disk is needed, and files of no job."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from difflogic.errors import StoreError
from difflogic.serve.folders import JOBS
from difflogic.serve.jobs import ENDED, ConflictError, Job, UnknownJobError
from difflogic.serve.store import Store
from difflogic.train.catalogue import size_of

DAY_S = 24 * 3600.0
ORPHAN_S = 3600.0
"""A folder that is younger may belong to a job that is just being submitted."""
ALL = 1_000_000_000
"""More jobs than there are."""


@dataclass(frozen=True)
class Removed:
    """Something that went, or would go."""

    name: str
    """A job's id, or a folder's name."""
    why: str
    bytes: int


@dataclass(frozen=True)
class Collected:
    """What came of a collection."""

    removed: list[Removed]
    bytes_left: int
    """Of all jobs that stay."""


def collect(store: Store, keep_days: float | None = None, quota: int | None = None, dry: bool = False) -> Collected:
    """Delete jobs that ended more than `keep_days` ago, then the oldest of those that ended until `quota` bytes hold
    all jobs, and files of no job. `dry`: only say what would go.

    Jobs that wait, run or pause stay, and so does what a follow-up still needs. Raises StoreError.
    """
    try:
        jobs = store.jobs(limit=ALL)
        sizes = {job.id: _size(store.place(job.id).path) for job in jobs}
        left = sum(sizes.values())
        removed = []
        for job in _expendable(jobs):
            why = _why(store, job, keep_days, None if quota is None else left - quota)
            if why is not None and (dry or _deleted(store, job)):
                removed.append(Removed(job.id, why, sizes[job.id]))
                left -= sizes[job.id]
        removed += [_remove(path, dry) for path in _orphans(store, {job.id for job in jobs})]
    except OSError as error:
        raise StoreError(f"Cannot clean {store.folder}: {error}.") from error
    return Collected(removed, left)


def used(store: Store) -> int:
    """Bytes of all jobs' files. Raises OSError."""
    return _size(store.folder / JOBS)


def _expendable(jobs: list[Job]) -> list[Job]:
    """Jobs that are over and that no other one waits for, the longest over first."""
    needed = {job.source for job in jobs if not job.is_over}
    over = [job for job in jobs if job.status in ENDED and job.id not in needed]
    return sorted(over, key=lambda job: str(job.ended))


def _why(store: Store, job: Job, keep_days: float | None, too_much: int | None) -> str | None:
    """Why a job goes; None where it stays."""
    days = (store.clock() - datetime.fromisoformat(str(job.ended)).timestamp()) / DAY_S
    if keep_days is not None and days > keep_days:
        return f"{job.status} {days:.0f} days ago"
    if too_much is not None and too_much > 0:
        return f"{job.status} {days:.0f} days ago, and the quota is used up"
    return None


def _deleted(store: Store, job: Job) -> bool:
    """False where someone has begun to use it since."""
    try:
        store.delete(job.id, only_over=True)
    except (ConflictError, UnknownJobError):
        return False
    return True


def _orphans(store: Store, known: set[str]) -> Iterator[Path]:
    for path in sorted((store.folder / JOBS).iterdir()):
        if path.name not in known and store.clock() - path.stat().st_mtime > ORPHAN_S:
            yield path


def _remove(path: Path, dry: bool) -> Removed:
    found = Removed(path.name, "belongs to no job", _size(path))
    if not dry:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def _size(path: Path) -> int:
    """Bytes; 0 where there is nothing. A file may go away while its folder is counted."""
    try:
        return size_of(path) if path.is_dir() else path.stat().st_size
    except FileNotFoundError:
        return 0
