"""The folders of jobs as they are found, whatever somebody did to them, and how each gets its place again."""

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
"""What is added to the name of a folder that is on its way to its place, where another one may still be."""


@dataclass
class Folders:
    """What is found where the folders of jobs are."""

    store: Path
    by_job: dict[str, tuple[JobFile, Path]] = field(default_factory=dict)
    """Records and their folders, by id; a folder of that name goes before a copy under another."""
    others: list[Path] = field(default_factory=list)
    """Whatever has no record, or one that is odd, or is the copy of a job that has its folder."""
    odd: dict[str, str] = field(default_factory=dict)
    """What is wrong with a record, by the name of its folder."""

    @classmethod
    def of(cls, store: Path) -> Folders:
        """Raises OSError."""
        found = cls(store)
        for path in sorted((store / JOBS).iterdir()):
            try:
                record = job_file.read(path)
            except RecordError as error:
                record, found.odd[path.name] = None, str(error)
            if record is None:
                found.others.append(path)
                continue
            other = found.by_job.setdefault(record.id, (record, path))[1]
            if other != path:
                is_own = path.name == record.id
                if is_own:
                    found.by_job[record.id] = record, path
                found.others.append(other if is_own else path)
        return found

    def leave_out(self, job: str, why: str) -> None:
        """The record of a job cannot be used."""
        _, path = self.by_job.pop(job)
        self.others.append(path)
        self.odd[path.name] = why

    def put_in_place(self, jobs: Collection[str]) -> tuple[list[str], list[Path]]:
        """Give the folders of jobs their names. Returns whose were moved, and what was put aside for them."""
        # By names that nobody has: two folders may have each other's.
        moving = {}
        for job, (_, path) in self.by_job.items():
            if job in jobs and path.name != job:
                moving[job] = path.rename(path.with_name(f"{job}{MOVING}"))
        aside = []
        for job, path in moving.items():
            own = path.with_name(job)
            if os.path.lexists(own):  # without a record, else it would be the folder that counts
                put_aside(self.store, own)
                aside.append(own)
            path.rename(own)
        return list(moving), aside


def back_in_place(store: Path, job: str) -> bool:
    """Whether the folder of a job came back: from lost+found, with the database that knows it, or from a deletion that
    was broken off before it was one.
    """
    path = store / JOBS / job
    if os.path.lexists(path):
        return False
    found = next((each for each in (store / DELETED / job, store / LOST / job) if each.is_dir()), None)
    if found is not None:
        found.rename(path)
    return found is not None


def runs_in_place(store: Path, configs: Mapping[str, str]) -> list[str]:
    """Give runs that lie in each other's jobs back to these, by what their manifests say. Returns whose they are.

    `configs`: the JSON of what each job trains, by its id.
    """
    strangers: dict[str, str] = {}
    for job, config in configs.items():
        found = _trained_in(JobFolder(store / JOBS / job).whole)
        if found is not None and found != json.loads(config):
            strangers[job] = json.dumps(found, sort_keys=True)
    # Only if it is another job's for sure, whose own place is free or has a stranger too: versions of difflogic write
    # one configuration differently. Jobs that train the same may exchange runs.
    owners = defaultdict(list)
    for job in strangers if len(strangers) > 1 else ():
        owners[json.dumps(json.loads(configs[job]), sort_keys=True)].append(job)
    moved = []
    for job, config in strangers.items():
        if owners[config]:
            moved.append(owners[config].pop())
            JobFolder(store / JOBS / job).whole.rename(_on_its_way(store, moved[-1]))
    for job in configs:
        if (run := _on_its_way(store, job)).is_dir():  # since a moment ago, or since a process ended here
            own = JobFolder(store / JOBS / job).whole
            if own.exists():
                put_aside(store, own, f"{job}-run")
            run.rename(own)
    return moved


def _on_its_way(store: Path, job: str) -> Path:
    return store / JOBS / job / f"run{MOVING}"


def _trained_in(run: Path) -> object:
    """The configuration of a run, or of all its attempts; None where none is told."""
    for path in (run / manifest.NAME, run / attempts.NAME, run / "attempt-1" / manifest.NAME):
        try:
            return json.loads(job_file.content(path) or "{}")["config"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
