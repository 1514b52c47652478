"""Self-replicating loops of the zoo: circuits built from the rules of Golly's package, with a loop as initial state."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

import difflogic
from benchmarks import rules
from benchmarks.zoo import states
from difflogic.circuits import rle
from difflogic.circuits.export.golly import cut
from difflogic.circuits.synthesis.function import live_gates
from difflogic.core import patterns, text_picture
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist

LOOPS = {
    "langtons-loops": ("Langtons-Loops", "Langtons-Loops", 449, "C. G. Langton, Physica D 10, 1984"),
    "byl-loop": ("Byl-Loop", "Byl-Loop", 150, "J. Byl, Physica D 34, 1989"),
    "chou-reggia-loop": (
        "Chou-Reggia-2",
        "Chou-Reggia-Loop-2",
        156,
        "J. A. Reggia, S. L. Armentrout, H.-H. Chou and Y. Peng, Science 259, 1993",
    ),
}
"""Golly's rule and pattern, number of steps until there are several copies, and authors, by name."""
SIDE, SECONDS, SCALE = 62, 30, 4
GAP = ((4, 4), (4, 4), (0, 0))
"""Padding of a state in the image, in pixels."""


def entry(name: str) -> tuple[dict[str, Any], list[int]]:
    """Return the entry of a loop, and its gates before and after simplification. Raises AssertionError."""
    rule, pattern, steps, authors = LOOPS[name]
    file = rules.GOLLY / "Rules" / f"{rule}.rule"
    signal.signal(signal.SIGALRM, rules.interrupt)
    netlist, proof = rules.built(file, SECONDS)
    assert proof == "equal", f"{name}: {proof}"
    loop = patterns.read(rules.GOLLY / "Patterns/Loops" / f"{pattern}.rle").states.astype(np.int64)
    rest = SIDE - np.array(loop.shape)
    grid = rules.bits_of(np.pad(loop, np.stack([rest // 2, rest - rest // 2], axis=1)), netlist.channels)
    habitat = {"start": "picture", "height": SIDE, "width": SIDE, "steps": steps, "picture": text_picture.encode(grid)}
    circuit = json.loads(netlist_json.to_json(netlist)) | {"habitat": habitat, "proved": True}
    table = rules.of_file(file)
    text = f"{states.proved(table, circuit)} Rule: {authors}; its table is that of Golly's {rule}.rule."
    does = f"a rule of {table.states} states, {rule}: a loop that copies itself"
    return circuit | {"does": does, "text": text}, [live_gates(difflogic.load(file).netlist), live_gates(netlist)]


def copies(netlist: CellNetlist) -> int:
    """Return the number of loops after all steps of the scenario that equal the initial loop in any orientation."""
    assert netlist.scenario is not None
    grid = netlist.scenario.grid(netlist.origin)
    assert grid is not None
    start, last = (rle.numbers(bits) for bits in (grid, netlist.after(grid, netlist.scenario.steps)))
    turned = [np.rot90(cut(start), times) for times in range(4)]
    return sum(int((sliding_window_view(last, loop.shape) == loop).all(axis=(2, 3)).sum()) for loop in turned)


def image() -> Image.Image:
    """Return a row of states for each loop, each state as `difflogic simulate` draws it."""
    rows = []
    for name, (*_, steps, _) in LOOPS.items():
        row = []
        for count in (1, steps // 3, steps):
            with TemporaryDirectory() as folder:
                words = [name, "--size", f"{SIDE}x{SIDE}", "--steps", str(count), "-o", f"{folder}/state.png"]
                subprocess.run([sys.executable, "-m", "difflogic", "simulate", *words], capture_output=True, check=True)
                with Image.open(f"{folder}/state.png") as state:
                    cells = np.asarray(state.convert("RGB")).repeat(SCALE, axis=0).repeat(SCALE, axis=1)
                row.append(np.pad(cells, GAP, constant_values=255))
        rows.append(np.hstack(row))
    return Image.fromarray(np.vstack(rows))
