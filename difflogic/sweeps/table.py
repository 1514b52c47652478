"""Writer of the results of a sweep to its folder: tables, a page and the best run.

trials.csv  trials.json   one row per trial
settings.csv              one row per setting, for all its seeds, with the success rate
index.html                diagram of the metric and all axes, with a table
best/                     copy of the best trial's run folder
"""

import csv
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import fields
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


def trial_rows(sweep: Sweep) -> list[Row]:
    """Return one row per trial that has ended, by number; only the entry `seconds` depends on the machine."""
    return [
        {"trial": trial.number, "status": trial.status, **plain(dict(trial.values)), sweep.spec.metric: trial.value}
        | {name: getattr(trial.outcome, name) for name in OF_OUTCOME}
        for trial in sorted(sweep.trials, key=lambda trial: trial.number)
    ]


def settings(sweep: Sweep) -> list[Row]:
    """Return one row per setting (values without the seed), with success rate and mean metric of complete trials."""
    groups: dict[str, list[Trial]] = {}
    for trial in sorted(sweep.trials, key=lambda trial: trial.number):
        groups.setdefault(repr(_setting(trial)), []).append(trial)
    return [_row(sweep.spec.metric, group) for group in groups.values()]


def _setting(trial: Trial) -> Row:
    return {path: value for path, value in trial.values.items() if path != SEED}


def _row(metric: str, group: Sequence[Trial]) -> Row:
    ended = [trial for trial in group if trial.status == "complete"]
    models, solved = (sum(getattr(trial.outcome, name) for trial in ended) for name in ("models", "solved"))
    low, high = wilson_interval(solved, models) if models else (None, None)
    values = [trial.value for trial in ended if trial.value is not None]
    mean = sum(values) / len(values) if values else None
    if metric == "tts":
        # For the metric tts, the mean is the total effort of all trials divided by the number of solutions.
        mean = sum(trial.outcome.effort or 0.0 for trial in ended) / solved if solved else None
    return dict(plain(_setting(group[0]))) | {
        "trials": len(group),
        "failed": sum(trial.status == "failed" for trial in group),
        "pruned": sum(trial.status == "pruned" for trial in group),
        "models": models,
        "solved": solved,
        "rate": solved / models if models else None,
        "rate_low": low,
        "rate_high": high,
        metric: mean,
    }


def write(sweep: Sweep) -> None:
    """Write all tables, the page and the copy of the best run so far. Raises OSError."""
    rows, grouped = trial_rows(sweep), settings(sweep)
    files.write_atomically(sweep.path / "trials.csv", _csv(rows))
    files.write_atomically(sweep.path / "settings.csv", _csv(grouped))
    document = {"metric": sweep.spec.metric, "trials": rows, "settings": grouped}
    files.write_atomically(sweep.path / "trials.json", json.dumps(document, indent=1).encode() + b"\n")
    files.write_atomically(sweep.path / "index.html", page.html(sweep).encode())
    if sweep.best is not None:
        # A temporary folder is filled and then renamed, so that the copy in place is always complete.
        copy = sweep.path / f"{BEST}{files.TEMPORARY}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sweep.path / sweep.best.folder, copy, ignore=shutil.ignore_patterns(".lock"))
        files.replace_folder(copy, sweep.path / BEST)


def _csv(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    # Iterating over the first row, a dict, yields the header. None becomes an empty field.
    csv.writer(text, lineterminator="\n").writerows([*rows[:1], *(row.values() for row in rows)])
    return text.getvalue().encode()
