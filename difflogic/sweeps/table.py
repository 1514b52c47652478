"""Results of a sweep beside its trials: tables, a page, and the best run.

trials.csv  trials.json   a row for each trial
settings.csv              a row for each setting, over all its seeds, with the rate of success
index.html                how the metric depends on all fields together
best/                     a copy of the best trial's run folder
"""

import csv
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from difflogic.config.fields import plain
from difflogic.core.interval import wilson_interval
from difflogic.sweeps import page
from difflogic.sweeps.axes import SEED
from difflogic.sweeps.course import Sweep, Trial
from difflogic.sweeps.trial import Outcome
from difflogic.system import files

Row = dict[str, Any]
BEST = "best"
OF_OUTCOME = [each.name for each in fields(Outcome) if each.name != "status"]


def trial_rows(found: Sweep) -> list[Row]:
    """Return a row for each trial that is over; `seconds` is the only column that depends on time and machine."""
    return [
        {"trial": each.number, "status": each.status, **plain(dict(each.values)), found.spec.metric: each.value}
        | {name: getattr(each.outcome, name) for name in OF_OUTCOME}
        for each in sorted(found.trials, key=lambda trial: trial.number)
    ]


def settings(found: Sweep) -> list[Row]:
    """Return a row for each setting of the axes but the seed: its rate of success, and the metric of its trials."""
    groups: dict[str, list[Trial]] = {}
    for each in sorted(found.trials, key=lambda trial: trial.number):
        groups.setdefault(repr(_setting(each)), []).append(each)
    return [_row(found.spec.metric, group) for group in groups.values()]


def _setting(trial: Trial) -> Row:
    return {path: value for path, value in trial.values.items() if path != SEED}


def _row(metric: str, group: Sequence[Trial]) -> Row:
    ended = [each for each in group if each.status == "complete"]
    models, solved = (sum(getattr(each.outcome, name) for each in ended) for name in ("models", "solved"))
    low, high = wilson_interval(solved, models) if models else (None, None)
    values = [each.value for each in ended if each.value is not None]
    mean = sum(values) / len(values) if values else None
    if metric == "tts":
        # Over several trials too: the total effort for each solution.
        mean = sum(each.outcome.effort or 0.0 for each in ended) / solved if solved else None
    return dict(plain(_setting(group[0]))) | {
        "trials": len(group),
        "failed": sum(each.status == "failed" for each in group),
        "pruned": sum(each.status == "pruned" for each in group),
        "models": models,
        "solved": solved,
        "rate": solved / models if models else None,
        "rate_low": low,
        "rate_high": high,
        metric: mean,
    }


def write(found: Sweep) -> None:
    """Write the results so far. Raises OSError."""
    rows, grouped = trial_rows(found), settings(found)
    files.write_atomically(found.path / "trials.csv", _csv(rows))
    files.write_atomically(found.path / "settings.csv", _csv(grouped))
    document = {"metric": found.spec.metric, "trials": rows, "settings": grouped}
    files.write_atomically(found.path / "trials.json", json.dumps(document, indent=1).encode() + b"\n")
    files.write_atomically(found.path / "index.html", page.html(found).encode())
    if found.best is not None:
        _copy_best(found.path, found.best.folder)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for index, row in enumerate(rows):
        if not index:
            writer.writerow(row)
        writer.writerow("" if value is None else value for value in row.values())
    return text.getvalue().encode()


def _copy_best(path: Path, folder: str) -> None:
    """Copy the best run as a whole, by way of a temporary folder."""
    made = path / f"{BEST}{files.TEMPORARY}"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(path / folder, made, ignore=shutil.ignore_patterns(".lock"))
    files.replace_folder(made, path / BEST)
