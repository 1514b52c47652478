"""List of runs on disk: a summary of each run folder below a folder, or the reason why it is unreadable."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from difflogic.errors import CheckpointError, NotFoundError, RunFolderError
from difflogic.runs import attempts, checkpoint, chosen, jsonl, manifest
from difflogic.runs import folder as folders
from difflogic.runs.journal import JSONL, Row, last_evaluated, read_rows

MARKS = (attempts.NAME, manifest.NAME, checkpoint.NAME, checkpoint.PREVIOUS)
"""Names of files that identify a run folder, which contains at least one of them."""
DEPTH = 4
"""Maximum depth of folders in the search for run folders; it does not descend into run folders."""


@dataclass(frozen=True)
class Entry:
    """Summary of a run from its manifest and metrics."""

    path: Path
    name: str
    status: str
    """One of `running`, `complete`, `built` (not trained), `interrupted`, `failed`, and `killed` (recorded as running,
    but no process has locked its folder)."""
    engine: str
    """Kind of the last engine: `cpu`, `gpu` or `reference`."""
    seed: int
    members: int
    epoch: int
    """Number of epochs in the metrics, which may exceed the number in the manifest."""
    epochs: int
    soft_loss: float | None
    """Lowest soft loss over the models in their last epoch, or None if none is finite."""
    hard_loss: int | None
    """Number of mismatches of the best circuit so far."""
    solved: int | None
    """Number of models without mismatches in their last evaluation, at least 1 if the best circuit has none. Agents are
    solved if their score reaches the threshold; None for a configuration without a threshold, such as a classifier."""
    size: int
    """Total size of the files in the folder, in bytes."""
    started: str
    """Time at which the run started, in ISO 8601."""
    attempts: int = 1
    score: float | None = None
    """Highest score over the agents in their last evaluation; None for automata. Agents count steps as epochs."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


@dataclass(frozen=True)
class Broken:
    """Run folder that cannot be read."""

    path: Path
    why: str


def find(folder: Path) -> Iterator[Path]:
    """Yield the run folders at and below `folder`, sorted by name. Raises NotFoundError if `folder` does not exist."""
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise NotFoundError(f"{folder} {problem}: expected a folder that contains runs.")
    return _search(folder)


def _search(top: Path) -> Iterator[Path]:
    for name, children, _ in os.walk(top):  # skips folders that cannot be read, such as those of other users
        folder = Path(name)
        is_run = any((folder / mark).exists() for mark in MARKS)
        if is_run:
            yield folder
        # Run folders inside a run folder are its attempts.
        is_last = is_run or len(folder.relative_to(top).parts) == DEPTH
        children[:] = [] if is_last else sorted(children)


def read(path: Path) -> Entry | Broken:
    """Return the summary of a run folder, or Broken with the reason if its files are unusable."""
    try:
        if attempts.is_in(path):
            return _entry_of_attempts(path)
        record = _record(path)
        if manifest.is_policy(record):
            return _entry_of_agents(path, record)
        return _entry(path, record, read_rows(path, record.get("seeds", [record["seed"]])))
    except OSError as error:
        return Broken(path, f"{error.filename or path}: {error.strerror or error}")
    except (RunFolderError, CheckpointError) as error:
        return Broken(path, str(error).removesuffix("."))
    except KeyError as error:
        return Broken(path, f"its {manifest.NAME} has no {error.args[0]!r}")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        return Broken(path, f"its {manifest.NAME} cannot be used: {error}")


def _entry_of_attempts(path: Path) -> Entry | Broken:
    record, entry = attempts.read(path), read(chosen.run_folder(path))
    if isinstance(entry, Broken):
        return entry
    last, has_budget = record.attempts[-1], record.restarts is not None
    status = "complete" if record.is_over else "killed" if last.status == "running" else "interrupted"
    # During an attempt, only the metrics in its own folder show its progress.
    own = read(path / last.folder)
    done = record.with_attempt(replace(last, epoch=own.epoch or last.epoch) if isinstance(own, Entry) else last)
    return replace(
        entry,
        path=path,
        status="running" if folders.is_held(path) else status,
        epoch=round(done.effort / record.population) if has_budget else done.attempts[-1].epoch,
        epochs=record.config.epochs // (record.population if has_budget else 1),
        seed=record.config.seed,
        size=size_of(path),
        attempts=len(record.attempts),
    )


def _record(path: Path) -> dict[str, Any]:
    record = json.loads((path / manifest.NAME).read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError("expected a JSON object")
    if record["format"] != manifest.FORMAT:
        version = record.get("versions", {}).get("difflogic", "unknown")
        raise ValueError(f"expected format {manifest.FORMAT}, got {record['format']}, written by difflogic {version}")
    return record


def _entry(path: Path, record: dict[str, Any], rows: list[list[Row]]) -> Entry:
    # Solved models are counted from the metrics, so that listing runs need not read checkpoints of populations.
    last, wrong = [last_evaluated(member) for member in rows], checkpoint.fewest_wrong(path)
    right = sum(row is not None and row.hard_loss == 0 for row in last)
    soft = [member[-1].soft_loss for member in rows if member and member[-1].soft_loss == member[-1].soft_loss]
    return Entry(
        **_of_every_run(path, record),
        epoch=min(len(member) for member in rows),
        epochs=int(record["config"]["train"]["epochs"]),
        soft_loss=min(soft, default=None),
        hard_loss=wrong,
        solved=max(1, right) if wrong == 0 else 0,
    )


def _of_every_run(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    status = str(record["status"])
    # The operating system has released the lock if the process was killed.
    status = "killed" if status == "running" and not folders.is_held(path) else status
    return {
        "path": path,
        "name": str(record["name"]),
        "status": status,
        "engine": str([record, *record["resumes"]][-1]["engine"]["engine"]),
        "seed": int(record["seed"]),
        "members": len(record.get("seeds", [0])),
        "size": size_of(path),
        "started": datetime.fromisoformat(record["started"]).isoformat(timespec="seconds"),
    }


def _entry_of_agents(path: Path, record: dict[str, Any]) -> Entry:
    rows, seeds = list(jsonl.objects(path / JSONL)), record.get("seeds", [record["seed"]])
    scores = [[row["score"] for row in rows[k :: len(seeds)] if row["score"] is not None] for k in range(len(seeds))]
    latest = [scores_of_agent[-1] for scores_of_agent in scores if scores_of_agent]
    least = record["config"]["evaluation"].get("threshold")
    return Entry(
        **_of_every_run(path, record),
        epoch=int(rows[-1]["steps"]) if rows else 0,
        epochs=int(record["config"]["steps"]),
        soft_loss=None,
        hard_loss=None,
        solved=None if least is None else sum(score >= least for score in latest),
        score=max(latest, default=None),
    )


def size_of(path: Path) -> int:
    """Return the total size in bytes of all files in a folder and its subfolders. Raises OSError."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
