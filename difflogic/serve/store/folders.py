"""Read the folders of jobs, and rename folders that were moved or swapped."""

import json
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from difflogic.runs import attempts, manifest
from difflogic.serve.store import job_file
from difflogic.serve.store.files import DELETED, JOBS, LOST, JobFolder, put_aside
from difflogic.serve.store.job_file import JobFile, RecordError

MOVING = ".moving"
"""Suffix of a folder's temporary name, used until its final name is free."""


@dataclass
class Folders:
    """Records and paths in the store's folder of jobs."""

    store: Path
    by_job: dict[str, tuple[JobFile, Path]] = field(default_factory=dict)
    """Record and folder of each job, by id; if there are several copies, the folder that is named after the id."""
    others: list[Path] = field(default_factory=list)
    """Paths without a valid record, and additional copies of jobs."""
    odd: dict[str, str] = field(default_factory=dict)
    """Error message of each invalid record, by folder name."""

    @classmethod
    def of(cls, store: Path) -> Self:
        """Read the records in all folders of jobs. Raises OSError."""
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
        """Treat the record of `job` as invalid, for the reason `why`."""
        _, path = self.by_job.pop(job)
        self.others.append(path)
        self.odd[path.name] = why

    def put_in_place(self, jobs: Collection[str]) -> tuple[list[str], list[Path]]:
        """Rename folders of `jobs` to the jobs' ids; return these jobs, and paths moved to lost+found to free names."""
        # The folders get temporary names first, since two folders may have each other's name.
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
    """Restore the missing folder of `job` from DELETED or lost+found, and return whether it was restored."""
    path = store / JOBS / job
    if os.path.lexists(path):
        return False
    source = next((folder for folder in (store / DELETED / job, store / LOST / job) if folder.is_dir()), None)
    if source is not None:
        source.rename(path)
    return source is not None


def runs_in_place(store: Path, configs: Mapping[str, str]) -> list[str]:
    """Move each misplaced run to the job whose configuration matches the run's manifest.

    `configs` maps job ids to configurations in JSON. Returns the ids of the jobs that have received a run.
    """
    strangers: dict[str, str] = {}
    for job, config in configs.items():
        actual = _trained_in(JobFolder(store / JOBS / job).whole)
        if actual is not None and actual != json.loads(config):
            strangers[job] = json.dumps(actual, sort_keys=True)
    # A run is moved only to a job that also has a wrong run, since versions of difflogic may write the same
    # configuration differently. Jobs with the same configuration may exchange runs.
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
    """Return the configuration in a run's manifest or in the files of its attempts, or None if unreadable."""
    for path in (run / manifest.NAME, run / attempts.NAME, run / "attempt-1" / manifest.NAME):
        try:
            return json.loads(job_file.content(path) or "{}")["config"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
