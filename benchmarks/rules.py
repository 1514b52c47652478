"""Build, simplify and prove circuits of the rules in Golly's package, and compare their steps with bgolly.

python -m benchmarks.rules                        # all rules; --save writes docs/results/rules.md
python -m benchmarks.rules WireWorld Byl-Loop     # two rules
python -m benchmarks.rules --recordings           # induce each rule from a recording of random states

A rule runs for 100 steps on a torus, from the largest pattern of the package that uses the rule and fits into 160x160
cells, or else from random states. Simplification ends after `--seconds`, and the proof after twice that time.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, partial
from pathlib import Path
from types import FrameType

import numpy as np
import numpy.typing as npt

import difflogic
from benchmarks import films
from difflogic.circuits import rle
from difflogic.circuits.export.golly import cut
from difflogic.circuits.readers import rule_file
from difflogic.circuits.synthesis.function import live_gates
from difflogic.circuits.synthesis.observed import observed
from difflogic.circuits.synthesis.simplify import simplified
from difflogic.core import patterns
from difflogic.core.bits import pack_bits, unpack_bits
from difflogic.errors import DifflogicError
from difflogic.model.cell_netlist import CellNetlist

GOLLY = Path("/usr/share/golly")
PAGE = Path("docs/results/rules.md")
STEPS, SIDE, MARGIN, MOST = 100, 64, 16, 160
HEAD = """# Rules of several states as circuits

    difflogic build Langtons-Loops -o loops                  # the circuit of a rule of Golly's package
    python -m benchmarks.rules --seconds {seconds} --save            # this table, of {date}

Each rule is a `.rule` file of Debian's package `golly`, from which `difflogic build` makes a circuit. Gates are
two-input gates per cell: as built from the file's table or tree, and after {seconds} seconds of simplification. The
circuit and `bgolly` compute the same {steps} steps on a torus: {equal} of {rules} rules agree.

| rule | states | channels | gates as built | gates simplified | proof | initial state | equal to bgolly |
|---|---|---|---|---|---|---|---|
"""

RECORDINGS = "\n## From recordings\n"
NINE = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]

States = npt.NDArray[np.int64]


@cache
def package() -> dict[str, list[tuple[int, str, States]]]:
    """Return the patterns of the package by their rule: size, name and states."""
    fitting: dict[str, list[tuple[int, str, States]]] = {}
    for path in sorted((GOLLY / "Patterns").rglob("*.rle")):
        with suppress(DifflogicError):
            held = patterns.read(path)
            if max(held.states.shape) <= MOST and held.states.any():
                entry = held.states.size, path.stem, held.states.astype(np.int64)
                fitting.setdefault(held.rule.lower(), []).append(entry)
    return fitting


def moved_by_golly(rule: str, grid: States, states: int) -> States:
    """Return the states of a grid after all steps by bgolly, without empty rows and columns at the border."""
    height, width = grid.shape
    bounded = f"{rule}:T{width},{height}"
    words = [word for row in grid for word in (*rle.runs_of(row, states == 2), "$")]
    head = f"x = {width}, y = {height}, rule = {bounded}"
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before.rle"), Path(folder, "after.rle")
        before.write_text("\n".join([head, *rle.wrapped([*words[:-1], "!"]), ""]), encoding="ascii")
        command = ["bgolly", "-q", "-q", "-a", "RuleLoader", "-s", f"{GOLLY / 'Rules'}/", "-r", bounded]
        subprocess.run([*command, "-m", str(STEPS), "-o", after, before], check=True, capture_output=True)
        return cut(patterns.read(after).states.astype(np.int64))


def bits_of(states: States, channels: int) -> films.States:
    """Return the channels of states, uint8 `[..., C]`, channel 0 the lowest bit."""
    bits: films.States = (states[..., None] >> np.arange(channels) & 1).astype(np.uint8)
    return bits


def of_file(path: Path) -> films.Rule:
    """Return a rule that evaluates the decision diagram of a file, without a circuit."""
    rule = rule_file.load(path)
    children = np.array([child for _, child in rule.nodes])

    def step(now: films.States) -> films.States:
        around, node = films._around(now, NINE), np.full(now.shape, len(children) - 1)
        for cell in rule.cells:
            node = children[node, around[cell]]
        return node.astype(np.uint8)

    return films.Rule(path.stem, rule.states, step)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt a search at its time limit; the search returns its best result so far."""
    raise KeyboardInterrupt


def built(path: Path, seconds: float) -> tuple[CellNetlist, str]:
    """Return the simplified circuit of a rule, and the result of the proof as text."""
    netlist, equal = difflogic.load(path).netlist, None
    signal.setitimer(signal.ITIMER_REAL, seconds, 2 * seconds)
    with suppress(KeyboardInterrupt):  # an interrupt between two passes leaves the original circuit
        small = simplified(netlist, on_pass=lambda step: None)
        netlist, equal = small.netlist, small.verdict.equal
    signal.setitimer(signal.ITIMER_REAL, 0)
    return netlist, {True: "equal", False: "NOT EQUAL", None: "not decided"}[equal]


def row(path: Path, seconds: float) -> tuple[list[str], bool]:
    """Return the row of a rule in the table, and whether its circuit agrees with bgolly."""
    rule = rule_file.load(path)
    soup = np.random.default_rng(7).integers(0, rule.states, (SIDE, SIDE))
    name, grid = "random states", soup
    if fitting := package().get(path.stem.lower()):
        _, name, states = max(fitting, key=lambda each: each[:2])
        grid = np.pad(states, MARGIN)
    netlist, proof = built(path, seconds)
    after = cut(rle.numbers(netlist.after(bits_of(grid, netlist.channels), STEPS)))
    agrees = np.array_equal(after, moved_by_golly(path.stem, grid, rule.states))
    gates = live_gates(difflogic.load(path).netlist)
    counts = [rule.states, (rule.states - 1).bit_length(), gates, live_gates(netlist)]
    return [f"`{path.stem}`", *map(str, counts), proof, name, "yes" if agrees else "NO"], agrees


def recorded(path: Path, seconds: float) -> tuple[list[str], bool]:
    """Induce a rule from a recording; return its row, and whether it is right on all frames of another recording."""
    file, rule, random = rule_file.load(path), of_file(path), np.random.default_rng(7)
    x, y = rule.film(random)
    words = [f"`{path.stem}`", str(file.states), str((file.states - 1).bit_length())]
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        graph = observed(difflogic.Dataset.of(x, y), periodic=True, neighbourhood=file.neighbourhood)
    except KeyboardInterrupt:
        return [*words, f"none within {seconds:g} s", ""], False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if graph is None:
        return [*words, "no short rule", ""], False
    x, y = rule.film(random)
    around = films._around(np.moveaxis(x, -1, 0).astype(np.int64), NINE)  # [9, C, N, H, W]
    inputs = np.moveaxis(around, 0, 1).reshape(graph.inputs, -1).astype(np.uint8)
    values, outputs = graph.evaluate(pack_bits(inputs)), np.array(graph.outputs)
    found = unpack_bits(values[outputs >> 1], inputs.shape[1]) ^ (outputs & 1)[:, None]
    right = (found == np.moveaxis(y, -1, 0).reshape(len(outputs), -1)).all(axis=0)
    return [*words, str(len(graph.gates)), f"{100 * right.mean():.3f} %"], bool(right.all())


def rows(names: Sequence[str], one: Callable[[Path], tuple[list[str], bool]]) -> Iterator[tuple[list[str], bool]]:
    """Yield and print the rows of rules."""
    for path in sorted((GOLLY / "Rules").glob("*.rule")):
        if not names or path.stem in names:
            words, agrees = one(path)
            print("| " + " | ".join(words) + " |", flush=True)
            yield words, agrees


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the rules of Golly's package and compare them with bgolly.")
    parser.add_argument("names", nargs="*", help="only these rules")
    parser.add_argument("--seconds", type=float, default=10, help="limit of the search for a rule's circuit")
    parser.add_argument("--recordings", action="store_true", help="induce rules from recordings instead")
    parser.add_argument("--save", action="store_true", help=f"write {PAGE}")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, interrupt)
    text, _, kept = PAGE.read_text(encoding="utf-8").partition(RECORDINGS)
    if given.recordings:
        table = list(rows(given.names, partial(recorded, seconds=given.seconds)))
        if given.save:
            PAGE.write_text(text + RECORDINGS + _recordings_of(table), encoding="utf-8")
        return
    difflogic.simplify(GOLLY / "Rules/WireWorld.rule")  # compiles the searches before any time limit
    table = list(rows(given.names, partial(row, seconds=given.seconds)))
    equal = sum(agrees for _, agrees in table)
    print(f"{equal} of {len(table)} rules agree with bgolly.")
    if given.save:
        head = HEAD.format(date=date.today(), seconds=f"{given.seconds:g}", steps=STEPS, equal=equal, rules=len(table))
        PAGE.write_text(head + _lines(table) + RECORDINGS + kept, encoding="utf-8")


def _recordings_of(table: Sequence[tuple[list[str], bool]]) -> str:
    """Return the Markdown of the section on recordings."""
    induced, right = sum(words[-1] != "" for words, _ in table), sum(agrees for _, agrees in table)
    return f"""
    python -m benchmarks.rules --recordings --save           # this table, of {date.today()}

For each rule `difflogic build` induces a rule from 64 pairs of frames of 32x32 cells: {films.CLIPS} random initial
states with {films.PAIRS} steps each. The result is compared with the file on 64 fresh pairs. {induced} of {len(table)}
rules are induced, {right} without a wrong cell. A rule that is not shorter than its recording, such as that of a
self-replicating loop, is rejected. If random states hardly ever meet the transitions of a rule, as with Perrier's,
`build` induces that cells do not change.

| rule | states | channels | gates as built | right cells of fresh frames |
|---|---|---|---|---|
{_lines(table)}"""


def _lines(table: Sequence[tuple[list[str], bool]]) -> str:
    return "".join("| " + " | ".join(words) + " |\n" for words, _ in table)


if __name__ == "__main__":
    main()
