"""Reader and writer of `manifest.json`, a description of a run that is sufficient to repeat it years later."""

import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from difflogic.config import document
from difflogic.config.document import Document
from difflogic.engine.api import EngineInfo
from difflogic.version import __version__

NAME = "manifest.json"
FORMAT = 1
BUILT = "built"
"""Status of a run whose circuit was built without training."""

Manifest = dict[str, Any]


def begin(
    config: Document, engine: EngineInfo, reason: str, init_from: Path | None, seeds: Sequence[int] = ()
) -> Manifest:
    """Return the manifest of a run that starts now; `reason` is why `engine` was chosen, `seeds` is for populations."""
    data = config.to_dict()
    return {
        "format": FORMAT,
        "name": data["name"],
        "status": "running",
        "seed": data["seed"],
        **({"seeds": list(seeds)} if len(seeds) > 1 else {}),
        "config": data,
        "init_from": None if init_from is None else str(init_from),
        "started": now(),
        "ended": None,
        "epoch": 0,
        "resumes": [],
        **_here(engine, reason),
    }


def resume(earlier: Manifest, config: Document, engine: EngineInfo, reason: str, epoch: int) -> Manifest:
    """Return the `earlier` manifest with an entry for resuming after `epoch`; `reason` is why `engine` was chosen."""
    current = _here(engine, reason)
    entry = {"resumed": now(), "after_epoch": epoch, **current}
    resumes = [*earlier.get("resumes", []), entry]
    return {**earlier, "config": config.to_dict(), "status": "running", "ended": None, "resumes": resumes}


def placed(manifest: Manifest, engine: EngineInfo, reason: str, measured: Sequence[dict[str, Any]]) -> Manifest:
    """Return the manifest with the fastest engine of an engine benchmark and the measurements `measured`."""
    return {**manifest, "engine": {**asdict(engine), "why": reason}, "measured": list(measured)}


def end(manifest: Manifest, status: str, epoch: int, summary: str) -> Manifest:
    """Return the manifest of a run that ends now, with its status, epoch and result (the first line of `summary`)."""
    return {**manifest, "status": status, "ended": now(), "epoch": epoch, "result": summary.splitlines()[0]}


def to_json(manifest: Manifest) -> str:
    """Return the contents of manifest.json."""
    return json.dumps(manifest, indent=2) + "\n"


def read(folder: Path) -> Manifest:
    """Return the manifest of a run folder, or {} if it is unreadable, since training does not depend on it."""
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def is_policy(manifest: Manifest) -> bool:
    """Return whether a manifest describes a run of agents or classifiers."""
    return document.is_policy(manifest.get("config"))


def last_engine(manifest: Manifest) -> EngineInfo | None:
    """Return the engine that last trained the run, or None if the manifest does not contain it."""
    try:
        entry = [manifest, *manifest["resumes"]][-1]["engine"]
        return EngineInfo(**{key: value for key, value in entry.items() if key != "why"})
    except (KeyError, TypeError, AttributeError):
        return None


def now() -> str:
    """Return the current local time with its UTC offset in ISO 8601."""
    return datetime.now(UTC).astimezone().isoformat(timespec="seconds")


def _here(engine: EngineInfo, reason: str) -> Manifest:
    return {"engine": {**asdict(engine), "why": reason}, "versions": versions(), "commit": git_commit()}


def versions() -> dict[str, str]:
    """Return software versions by name; NumPy and wgpu are included only if they are loaded."""
    numbers = {"difflogic": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in ("numpy", "wgpu"):
        if package in sys.modules:
            numbers[package] = importlib.metadata.version(package)
    return numbers


@cache
def git_commit() -> str | None:
    """Return the commit of this package's git checkout, with `-dirty` appended if modified, or None without one."""
    # Cached, since loaded code does not change and calling git takes longer than a short run.
    checkout = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return None
    # `--exclude=*` ignores tags, so that the result is always a commit hash.
    command = [git, "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None
