"""Train classifiers of gates on Fashion-MNIST, and test them on its test set.

python -m benchmarks.images --save                  # all networks, three seeds each
python -m benchmarks.images 8000 --circuit --save   # one network, with a simplified and compiled circuit
python -m benchmarks.images --report --write        # write the table of docs/how-to/classify.md

The images are those of Debian's package dataset-fashion-mnist. Settings were chosen on 5,000 training images that
were held out at random. The seeds are used for no other purpose.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import difflogic
from benchmarks.store import CHECKOUT, Line, append, inserted, load
from benchmarks.tables import in_c
from difflogic.bench.machine import stamp
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.policies.classifier import function_of

FILE, FOLDER = "images", Path("/usr/share/datasets/fashion-mnist")
FIRST, SEEDS = 75_001, 3
LEARNED = {"candidates": 8, "learning_rate": 0.06, "bits": 7}
NETWORKS: dict[str, dict[str, Any]] = {
    "8000": {
        "steps": 16 * 60_000,
        "logic": LEARNED | {"widths": [4000] * 2, "temperature": 0.7, "final_temperature": 0.7},
    },
    # More gates generalise with a larger range of preferences, and with shifted images.
    "32000": {
        "steps": 20 * 60_000,
        "table": {"shift": 1},
        "logic": LEARNED | {"widths": [16_000] * 2, "temperature": 1.0, "final_temperature": 1.0},
    },
}
"""Fields of each network's configuration, by its number of gates."""
PAGE = CHECKOUT / "docs/how-to/classify.md"
BEGIN = "<!-- generated: python -m benchmarks.images --report --write -->"


def measured(network: str, seed: int, circuit: bool) -> Line:
    """Train a network and, if `circuit`, simplify and compile its circuit; return the line."""
    train, test = (difflogic.load_table(FOLDER / f"{name}-images-idx3-ubyte.gz") for name in ("train", "t10k"))
    fields = NETWORKS[network]
    begin = time.perf_counter()
    run = difflogic.fit(table=train, test=test, engine="cpu", set={"seed": seed, **fields})
    seconds = time.perf_counter() - begin
    function = function_of(run.best.agent.actor, run.config.table)
    line = {"network": network, "seed": seed, "accuracy": run.score, "seconds": round(seconds), "fields": fields}
    if circuit:
        begin = time.perf_counter()
        small = difflogic.simplify(function)
        assert small.ok
        line |= {"simplify_seconds": round(time.perf_counter() - begin)}
        line |= {"gates": [gate_count(function), gate_count(small.netlist)], **in_c(small.netlist)}
    return line | stamp()


def newest() -> dict[str, list[Line]]:
    """Return the newest line of each seed by network with its current fields, the smallest network first."""
    current = [line for line in load(FILE) if line["fields"] == NETWORKS.get(line["network"])]
    latest = {(line["network"], line["seed"]): line for line in current}
    lines: dict[str, list[Line]] = {}
    for line in sorted(latest.values(), key=lambda line: int(line["network"])):
        lines.setdefault(line["network"], []).append(line)
    return lines


def mean_accuracy(lines: list[Line]) -> str:
    """Return the mean accuracy of several seeds as text."""
    return f"{100 * statistics.mean(line['accuracy'] for line in lines):.1f} %"


def report() -> str:
    """Return a table in Markdown with a row for each network."""
    heads = ["gates", "accuracy, mean of seeds", "of each seed", "training", "with class decision", "simplified"]
    rows = [f"| {' | '.join([*heads, 'bytes compiled', 'images/s, one core'])} |", f"|{'---:|' * 8}"]
    for network, lines in newest().items():
        cells = [f"{int(network):,}", mean_accuracy(lines)]
        cells += [", ".join(f"{100 * line['accuracy']:.1f}" for line in lines)]
        cells += [f"{statistics.median(line['seconds'] for line in lines):,.0f} s"]
        for line in [line for line in lines if "gates" in line][:1]:
            cells += [f"{line['gates'][0]:,}", f"{line['gates'][1]:,}", f"{line['c_bytes']:,}"]
            cells += [f"{1e3 / line['ns_a_row']:.1f} million"]
        rows.append(f"| {' | '.join(cells + [''] * (8 - len(cells)))} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=[*NETWORKS], help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--circuit", action="store_true", help="simplify and compile the circuit of the first seed")
    parser.add_argument("--save", action="store_true", help="store the lines")
    parser.add_argument("--report", action="store_true", help="print the table")
    parser.add_argument("--write", action="store_true", help="with --report: put it into the page")
    options = parser.parse_args()
    if options.report:
        text = report()
        if options.write:
            PAGE.write_text(inserted(PAGE.read_text(encoding="utf-8"), BEGIN, f"\n{text}"), encoding="utf-8")
        print(text)
        return
    for network in options.networks:
        for seed in range(options.first, options.first + options.seeds):
            line = measured(network, seed, options.circuit and seed == options.first)
            if options.save:
                append(FILE, [line])
            shown = ("network", "seed", "accuracy", "gates", "c_bytes", "ns_a_row", "seconds")
            print({key: line[key] for key in shown if key in line}, flush=True)


if __name__ == "__main__":
    main()
