"""Read the folders of jobs, which may have been moved or damaged, and put each in its place again."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from difflogic.runs import attempts, manifest
from difflogic.serve.store import job_file
from difflogic.serve.store.files import DELETED, JOBS, LOST, JobFolder, put_aside
from difflogic.serve.store.job_file import JobFile, RecordError

MOVING = ".moving"
"""Ending of a folder's temporary name while it is moved to its place, in which another may still be."""


@dataclass
class Folders:
    """Content of the folder of jobs."""

    store: Path
    by_job: dict[str, tuple[JobFile, Path]] = field(default_factory=dict)
    """Records and their folders, by id; a folder with the id as its name goes before copies under other names."""
    others: list[Path] = field(default_factory=list)
    """Paths without a record or with an invalid one, and copies of jobs."""
    odd: dict[str, str] = field(default_factory=dict)
    """Errors of invalid records, by the names of their folders."""

    @classmethod
    def of(cls, store: Path) -> Folders:
        """Read the records of all folders. Raises OSError."""
        folders = cls(store)
        for path in sorted((store / JOBS).iterdir()):
            try:
                record = job_file.read(path)
            except RecordError as error:
                record, folders.odd[path.name] = None, str(error)
            if record is None:
                folders.others.append(path)
                continue
            other = folders.by_job.setdefault(record.id, (record, path))[1]
            if other != path:
                is_own = path.name == record.id
                if is_own:
                    folders.by_job[record.id] = record, path
                folders.others.append(other if is_own else path)
        return folders

    def leave_out(self, job: str, why: str) -> None:
        """Treat the record of a job as invalid."""
        _, path = self.by_job.pop(job)
        self.others.append(path)
        self.odd[path.name] = why

    def put_in_place(self, jobs: Collection[str]) -> tuple[list[str], list[Path]]:
        """Give the folders of jobs their names, and return the moved jobs, and paths that were put aside for them."""
        # By temporary names: two folders may have each other's.
        moving = {}
        for job, (_, path) in self.by_job.items():
            if job in jobs and path.name != job:
                moving[job] = path.rename(path.with_name(f"{job}{MOVING}"))
        aside = []
        for job, path in moving.items():
            own = path.with_name(job)
            if os.path.lexists(own):  # without a record, else it would be in `by_job`
                put_aside(self.store, own)
                aside.append(own)
            path.rename(own)
        return list(moving), aside


def back_in_place(store: Path, job: str) -> bool:
    """Move a missing folder of a job back from lost+found or an unfinished deletion; return whether there was one."""
    path = store / JOBS / job
    if os.path.lexists(path):
        return False
    source = next((folder for folder in (store / DELETED / job, store / LOST / job) if folder.is_dir()), None)
    if source is not None:
        source.rename(path)
    return source is not None


def runs_in_place(store: Path, configs: Mapping[str, str]) -> list[str]:
    """Move runs that are in other jobs' folders to their own jobs, by the configurations in their manifests.

    `configs` has the JSON of what each job trains, by its id. Returns the ids of the jobs that got their runs.
    """
    strangers: dict[str, str] = {}
    for job, config in configs.items():
        actual = _trained_in(JobFolder(store / JOBS / job).whole)
        if actual is not None and actual != json.loads(config):
            strangers[job] = json.dumps(actual, sort_keys=True)
    # Only if it certainly belongs to another job, whose place is free or has a stranger too: versions of difflogic
    # write one configuration differently. Jobs with the same configuration may exchange runs.
    owners = defaultdict(list)
    for job in strangers if len(strangers) > 1 else ():
        owners[json.dumps(json.loads(configs[job]), sort_keys=True)].append(job)
    moved = []
    for job, config in strangers.items():
        if owners[config]:
            moved.append(owners[config].pop())
            JobFolder(store / JOBS / job).whole.rename(_on_its_way(store, moved[-1]))
    for job in configs:
        if (run := _on_its_way(store, job)).is_dir():  # just moved, or left by a process that ended here
            own = JobFolder(store / JOBS / job).whole
            if own.exists():
                put_aside(store, own, f"{job}-run")
            run.rename(own)
    return moved


def _on_its_way(store: Path, job: str) -> Path:
    return store / JOBS / job / f"run{MOVING}"


def _trained_in(run: Path) -> object:
    """Return the configuration of a run, or of all its attempts, or None if it is unknown."""
    for path in (run / manifest.NAME, run / attempts.NAME, run / "attempt-1" / manifest.NAME):
        try:
            return json.loads(job_file.content(path) or "{}")["config"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
