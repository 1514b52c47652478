"""Compare classifiers of gates with a linear model and boosted trees, on each split of each table.

python -m benchmarks.tables --accuracy --save    # all test splits; append lines to results/tables.jsonl
python -m benchmarks.tables --splits 1 --save    # the first test split, with a simplified and compiled circuit
python -m benchmarks.tables wine --first 71001   # the splits on which settings were chosen
python -m benchmarks.tables --report --write     # write the table of docs/how-to/classify.md

The tables are part of scikit-learn. All three programs learn from the same rows and are evaluated on the same held-out
rows, which were not used to choose settings. Only a population of gate classifiers excludes some rows from training, to
choose the best wiring.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
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
FIRST, SPLITS = 73_001, 8
"""First test split, and their number. Settings were chosen on 71001 to 71008; 72001 to 72008 tested older settings."""
POPULATION = 1
PAGE = CHECKOUT / "docs/how-to/classify.md"
BEGIN = "<!-- generated: python -m benchmarks.tables --report --write -->"
TIMER = """
#include <stdio.h>
#include <time.h>
#include "net.h"
void run(const uint64_t *code, uint64_t *result);
int main(void) {
    static uint64_t code[NET_THRESHOLDS], result[NET_RESULT_BITS], sum;
    const int rounds = ROUNDS;
    for (int i = 0; i < NET_THRESHOLDS; i++) code[i] = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
    const clock_t begin = clock();
    for (int k = 0; k < rounds; k++) { code[k % NET_THRESHOLDS] ^= sum; run(code, result); sum += result[0]; }
    printf("%.4f %llu\\n", 1e9 * (double)(clock() - begin) / CLOCKS_PER_SEC / rounds / 64, (unsigned long long)sum);
    return 0;
}
"""


def table_of(name: str) -> LabelledTable:
    """Return a table of scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return LabelledTable.of(x, y, label=name)


def in_c(function: difflogic.FunctionNetlist) -> dict[str, Any]:
    """Compile the exported header; return the bytes of the gates, and nanoseconds per row for 64 rows at a time."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        header = difflogic.export(function, ["c"], name="net").files["net.h"]
        (folder / "net.h").write_text(str(header))
        (folder / "time.c").write_text(TIMER)
        (folder / "gates.c").write_text(
            '#include "net.h"\nvoid run(const uint64_t *code, uint64_t *result) { net_gates(code, result); }\n'
        )
        flags = ["gcc", "-std=c99", "-O2", f"-DROUNDS={max(200, 200_000_000 // gate_count(function))}"]
        # gcc takes 8 s for 20,000 gates, so they are compiled once and linked to the timer.
        subprocess.run([*flags, "-c", "gates.c"], cwd=folder, check=True)
        subprocess.run([*flags, "time.c", "gates.o", "-o", "time"], cwd=folder, check=True)
        # The text segment has instructions and constants, and nothing that a linker would add.
        text, took = (
            subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
            for command in (["/usr/bin/size", "gates.o"], ["./time"])
        )
    return {"c_bytes": int(text.splitlines()[1].split()[0]), "ns_a_row": float(took.split()[0])}


def others(x: np.ndarray, y: np.ndarray, learned: np.ndarray, held_out: np.ndarray) -> dict[str, float]:
    """Return the accuracy of scikit-learn's linear model, on standardised numbers, and of its boosted trees."""
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


def measured(name: str, split: int, population: int, fields: dict[str, Any], simplified: bool) -> dict[str, Any]:
    table = table_of(name)
    config = of_table(table, population=population).with_(table={"split": split}).with_(**fields)
    parts = table.parts(config.table)
    begin = time.perf_counter()
    run = difflogic.fit(config, table=table, population=population, engine="cpu")
    seconds = time.perf_counter() - begin
    function = function_of(run.best.agent.actor, run.config.table)
    x, y = table.x[parts.held_out], table.y[parts.held_out]
    right = int((function(x) == y).sum())
    assert right == sum(run.best.score.returns)
    circuit: dict[str, Any] = {"gates": [gate_count(function)]}
    if simplified:
        begin = time.perf_counter()
        small = difflogic.simplify(function)
        assert small.ok
        circuit["simplify_seconds"] = round(time.perf_counter() - begin, 1)
        circuit["gates"].append(gate_count(small.netlist))
        circuit |= {"thresholds": small.netlist.inputs, **in_c(small.netlist)}
    return {
        "table": name, "split": split, "population": population, "right": right, "rows": len(y),
        "accuracy": right / len(y), "seeds": [each.score.mean for each in run.members], "seconds": round(seconds, 2),
        **others(table.x, table.y, np.concatenate([parts.learned, parts.validation]), parts.held_out),
        **circuit, "fields": fields, **stamp(),
    }  # fmt: skip


def report() -> str:
    """Return a Markdown table with a row per data set, from the newest line of each test split."""
    heads = ["table", "rows held out", "gates", "linear model", "gradient boosting", "two-input gates"]
    newest = {(line["table"], line["split"]): line for line in load(FILE) if line["split"] >= FIRST}
    in_circuits = any("c_bytes" in line for line in newest.values())
    heads += ["simplified", "bytes compiled", "ns a row"] if in_circuits else []
    rows = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for name in TABLES:
        lines = [line for (table, _), line in newest.items() if table == name]
        if not lines:
            continue
        means = [
            f"{100 * statistics.mean(line[key] for line in lines):.1f} %" for key in ("accuracy", "linear", "boosting")
        ]
        sizes = [f"{statistics.median(line['gates'][0] for line in lines):,.0f}"]
        for line in [line for line in lines if "c_bytes" in line][:1]:
            sizes += [f"{line['gates'][1]:,}", f"{line['c_bytes']:,}", f"{line['ns_a_row']:.0f}"]
        sizes += [""] * (4 - len(sizes)) if in_circuits else []
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
    parser.add_argument("--accuracy", action="store_true", help="leave the circuit as it is, which is quick")
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
            line = measured(name, split, asked.population, parse(asked.set), not asked.accuracy)
            if asked.save:
                append(FILE, [line])
            told = ("table", "split", "accuracy", "linear", "boosting", "gates", "c_bytes", "ns_a_row", "seconds")
            print({key: line[key] for key in told if key in line}, flush=True)


if __name__ == "__main__":
    main()
