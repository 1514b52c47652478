"""How right are classifiers of gates, beside a linear model and boosted trees? A line for each split of each table.

python -m benchmarks.tables --save               # the splits of the proof, kept in results/tables.jsonl
python -m benchmarks.tables wine --first 71001   # those that settings were chosen on
python -m benchmarks.tables --report --write     # the table of docs/how-to/classify.md

The tables are those that scikit-learn brings along. All three programs have the same held-out rows, which nobody looked
at before the settings were chosen. The gates give up some of the other rows, by which the best wiring is chosen.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

import difflogic
from benchmarks.store import CHECKOUT, append, inserted, load
from difflogic.bench.machine import stamp
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.config.agent_presets import of_table
from difflogic.config.table import LabelledTable
from difflogic.policies.classifier import function_of

FILE, TABLES = "tables", ("digits", "breast_cancer", "wine")
FIRST, SPLITS = 72_001, 8
"""The splits of the proof. Settings were chosen on 71001 to 71008."""
POPULATION = 1
PAGE = CHECKOUT / "docs/how-to/classify.md"
BEGIN = "<!-- generated: python -m benchmarks.tables --report --write -->"


def table_of(name: str) -> LabelledTable:
    """A table of scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return LabelledTable.of(x, y, label=name)


def others(x: np.ndarray, y: np.ndarray, learned: np.ndarray, held_out: np.ndarray) -> dict[str, float]:
    """The accuracy of a linear model on standardised numbers, and of boosted trees, as scikit-learn has them."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }
    return {
        name: float(model.fit(x[learned], y[learned]).score(x[held_out], y[held_out])) for name, model in models.items()
    }


def measured(name: str, split: int, population: int, fields: dict[str, Any]) -> dict[str, Any]:
    table = table_of(name)
    config = of_table(table).with_(table={"split": split}).with_(**fields)
    parts = table.parts(config.table)
    begin = time.perf_counter()
    run = difflogic.fit(config, table=table, population=population, engine="cpu")
    seconds = time.perf_counter() - begin
    function = function_of(run.best.agent.actor, run.config.table)
    x, y = table.x[parts.held_out], table.y[parts.held_out]
    right = int((function(x) == y).sum())
    assert right == sum(run.best.score.returns)
    return {
        "table": name, "split": split, "population": population, "right": right, "rows": len(y),
        "accuracy": right / len(y), "seeds": [each.score.mean for each in run.members], "seconds": round(seconds, 2),
        **others(table.x, table.y, np.concatenate([parts.learned, parts.validation]), parts.held_out),
        "gates": [gate_count(function)], "fields": fields, **stamp(),
    }  # fmt: skip


def report() -> str:
    """A table in Markdown: a row for each table, of the newest line of each split of the proof."""
    heads = ["table", "rows held out", "gates", "linear model", "gradient boosting", "two-input gates"]
    rows = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    newest = {(line["table"], line["split"]): line for line in load(FILE) if line["split"] >= FIRST}
    for name in TABLES:
        lines = [line for (table, _), line in newest.items() if table == name]
        if not lines:
            continue
        means = [
            f"{100 * statistics.mean(line[key] for line in lines):.1f} %" for key in ("accuracy", "linear", "boosting")
        ]
        sizes = [f"{statistics.median(line['gates'][0] for line in lines):,.0f}"]
        cells = [name.replace("_", " "), f"{len(lines)} x {lines[0]['rows']}", *means, *sizes]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=TABLES, help="of scikit-learn")
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--population", type=int, default=POPULATION)
    parser.add_argument("--set", action="append", default=[], help="SECTION.FIELD=VALUE")
    parser.add_argument("--save", action="store_true", help="keep the lines")
    parser.add_argument("--report", action="store_true", help="print the table")
    parser.add_argument("--write", action="store_true", help="with --report: put it into the page")
    asked = parser.parse_args()
    if asked.report:
        text = report()
        if asked.write:
            PAGE.write_text(inserted(PAGE.read_text(encoding="utf-8"), BEGIN, f"\n{text}"), encoding="utf-8")
        print(text)
        return
    from difflogic.cli.request import parse

    for name in asked.tables:
        for split in range(asked.first, asked.first + asked.splits):
            line = measured(name, split, asked.population, parse(asked.set))
            if asked.save:
                append(FILE, [line])
            told = ("table", "split", "accuracy", "linear", "boosting", "gates", "seconds")
            print({key: line[key] for key in told}, flush=True)


if __name__ == "__main__":
    main()
