"""Read every RLE pattern of Golly's package, and compare 64 steps with `bgolly` cell by cell.

    python -m benchmarks.golly_patterns --write  # writes the table of docs/results/patterns.md

Patterns larger than 512x512 cells are only read. A pattern without a bounded grid runs on a torus so large that nothing
wraps around. Patterns are refused if their rule reads more than 3x3 cells, or if they need another kind of grid.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.store import CHECKOUT, inserted
from difflogic.circuits import rle
from difflogic.circuits.export import golly
from difflogic.circuits.readers import source
from difflogic.circuits.simulation import engines
from difflogic.circuits.synthesis import tools
from difflogic.circuits.synthesis.convert import lean
from difflogic.core import patterns, rules
from difflogic.core.bits import pack_planes, unpack_planes
from difflogic.engine.simulation import SimulationSpec
from difflogic.errors import ConfigError, DifflogicError
from difflogic.model.cell_netlist import CellNetlist

PATTERNS = Path("/usr/share/golly/Patterns")
STEPS, MOST_SIDE = 64, 512
PAGE = CHECKOUT / "docs" / "results" / "patterns.md"
BEGIN = "<!-- generated: python -m benchmarks.golly_patterns --write -->"


@cache
def circuit(rule: str, periodic: bool) -> CellNetlist:
    return lean(source.load(Path(rule), periodic).netlist)


def after(pattern: patterns.Pattern) -> np.ndarray:
    """Return the states of a pattern after all steps, without empty rows and columns at the border."""
    is_bounded = pattern.is_periodic is not None
    netlist = circuit(pattern.rule, pattern.is_periodic is not False)
    grid = pattern.states if is_bounded else np.pad(pattern.states, STEPS + 2)
    patterns.check_states(grid, pattern.rule, netlist.channels)
    spec = SimulationSpec(netlist, *grid.shape)
    start = pack_planes(patterns.bits_of(grid, netlist.channels))
    simulation = engines.open_simulation(spec, start, "numba").simulation
    simulation.run(STEPS)
    return golly.cut(rle.numbers(unpack_planes(simulation.planes(), grid.shape[1])))


def of_golly(path: Path, rule: str) -> np.ndarray:
    try:
        is_history = rules.parse(rule).has_history
        algorithm = "RuleLoader" if is_history else "QuickLife" if rules.parse(rule).states == 2 else "Generations"
    except ConfigError:
        algorithm = "RuleLoader"
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-q", "-a", algorithm, "-m", str(STEPS), "-s", "/usr/share/golly/Rules/", "-o", "after.rle"]
        tools.run_in(Path(folder), "bgolly", *options, str(path))
        return golly.cut(patterns.read(Path(folder) / "after.rle").states)


def result(path: Path) -> str:
    """Return the result for a file: `equal`, `DIFFERENT`, `read` if it is too large to be compared, or the refusal."""
    try:
        pattern = patterns.read(path)
        if reason := rules.refusal(pattern.rule):
            return reason.partition(": ")[0].removeprefix(f"{pattern.rule!r} ")
        circuit(pattern.rule, pattern.is_periodic is not False)
        if max(pattern.states.shape) > MOST_SIDE:
            return "read"
        return "equal" if np.array_equal(after(pattern), of_golly(path, pattern.rule)) else "DIFFERENT"
    except DifflogicError as error:
        return str(error).removeprefix(f"{path}: ").partition(": ")[0]


def table(results: dict[str, str]) -> str:
    """Return Markdown tables: the number of files by result, and the reason for each refusal."""
    counts = Counter(each if each in ("equal", "DIFFERENT", "read") else "refused" for each in results.values())
    rows = [f"| RLE patterns | equal to `bgolly` after {STEPS} steps | only read, larger | refused | different |"]
    numbers = [len(results), *(counts[key] for key in ("equal", "read", "refused", "DIFFERENT"))]
    rows += ["|--|--|--|--|--|", f"| {' | '.join(map(str, numbers))} |", "", "| refused | reason |", "|--|--|"]
    return "\n".join([*rows, *(f"| `{name}` | {why} |" for name, why in results.items() if why not in counts)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="words in the paths of files [all files]")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    asked, results = parser.parse_args(), {}
    for path in sorted(PATTERNS.rglob("*.rle")):
        if not asked.names or any(name in str(path) for name in asked.names):
            results[str(path.relative_to(PATTERNS))] = result(path)
            print(path.relative_to(PATTERNS), results[str(path.relative_to(PATTERNS))], flush=True)
    print(table(results))
    if asked.write:
        PAGE.write_text(inserted(PAGE.read_text(encoding="utf-8"), BEGIN, f"\n{table(results)}"), encoding="utf-8")


if __name__ == "__main__":
    main()
