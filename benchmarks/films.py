"""Learn rules of several states from recordings by a user's command, and evaluate the circuits independently.

python -m benchmarks.films 53001                  # the fourteen rules of a generator seed; --save stores the rows
python -m benchmarks.films 53001 --rules 0,3      # two of these rules

Each rule is trained by `difflogic train --data FILM --until-solved --within 120s`. NumPy then runs the resulting
circuit.json on a recording from other random states, and compares it with the rule.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.circuits.structured import TWO_INPUTS
from benchmarks.store import Line, append
from difflogic.bench.machine import stamp
from difflogic.model.straight_line import READS

States = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Generator = np.random.Generator
MOORE = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
SIDES = ((-1, 0), (0, -1), (0, 1), (1, 0))
CLIPS, PAIRS, SIDE = 16, 4, 32
"""Clips of a recording, each from a different random state; pairs of frames per clip; cells per side of the torus."""
DRAWN = 10
SECONDS = 120
FRESH = 1
"""Additional part of the seed of a recording for evaluation."""


def _around(states: States, cells: Sequence[tuple[int, int]] = MOORE) -> Numbers:
    """Return the states of the neighbours `cells` of each cell on a torus, `[len(cells), ...]`."""
    return np.stack([np.roll(states, (-dy, -dx), (-2, -1)) for dy, dx in cells]).astype(np.int64)


class Rule:
    """Rule of several states: name, number of states, and a function `step` of states `[..., H, W]`."""

    def __init__(self, name: str, states: int, step: Callable[[States], Any]) -> None:
        self.name, self.states, self.step = name, states, step
        self.channels = (states - 1).bit_length()

    def film(self, rng: Generator) -> tuple[States, States]:
        """Return pairs `x, y [CLIPS*PAIRS, SIDE, SIDE, channels]` of successive frames."""
        shares = rng.dirichlet(np.ones(self.states), CLIPS)
        soup = [rng.choice(self.states, (SIDE, SIDE), p=0.5 * each + 0.5 / self.states) for each in shares]
        frames = [np.array(soup, dtype=np.uint8)]
        for _ in range(PAIRS):
            frames.append(self.step(frames[-1]).astype(np.uint8))
        return self.bits(np.concatenate(frames[:-1])), self.bits(np.concatenate(frames[1:]))

    def bits(self, states: States) -> States:
        return np.stack([states >> bit & 1 for bit in range(self.channels)], axis=-1)


def cyclic(states: int, threshold: int, moore: bool) -> Rule:
    def step(now: States) -> Any:
        following = (now + 1) % states
        count = (_around(now, MOORE if moore else SIDES) == following).sum(axis=0)
        return np.where(count >= threshold, following, now)

    return Rule(f"cyclic {states}/{threshold}/{'moore' if moore else 'sides'}", states, step)


def generations(states: int, born: set[int], stays: set[int]) -> Rule:
    def step(now: States) -> Any:
        count = (_around(now) == 1).sum(axis=0)
        ages = np.where(now == 0, 0, (now + 1) % states)
        alive = np.where(np.isin(count, list(stays)), 1, 2 % states)
        return np.where(now == 0, np.isin(count, list(born)), np.where(now == 1, alive, ages))

    told = f"B{''.join(map(str, sorted(born)))}/S{''.join(map(str, sorted(stays)))}/{states}"
    return Rule(f"generations {told}", states, step)


def wireworld() -> Rule:
    def step(now: States) -> Any:
        heads = (_around(now) == 1).sum(axis=0)
        return np.choose(now, [0 * now, 0 * now + 2, 0 * now + 3, np.where((heads == 1) | (heads == 2), 1, 3)])

    return Rule("wireworld", 4, step)


def lattice_gas() -> Rule:
    """Return the HPP lattice gas: a bit per direction; particles that collide head-on turn by 90 degrees, then move."""

    def step(now: States) -> Any:
        east, north, west, south = (now >> bit & 1 for bit in range(4))
        upright, level = (east & west & ~north & ~south) & 1, (north & south & ~east & ~west) & 1
        turned = [each ^ upright ^ level for each in (east, north, west, south)]
        moves = ((0, 1), (-1, 0), (0, -1), (1, 0))
        return sum(np.roll(turned[bit], move, (-2, -1)) << bit for bit, move in enumerate(moves))

    return Rule("lattice gas", 16, step)


def counted(states: int, table: Numbers) -> Rule:
    """Return a rule with a table by the cell's state and the number of neighbours in state 1, clipped to the table."""

    def step(now: States) -> Any:
        count = (_around(now) == 1).sum(axis=0)
        return table[now, np.minimum(count, table.shape[1] - 1)]

    return Rule(f"counted {'/'.join(''.join(map(str, row)) for row in table.tolist())}", states, step)


def counted_twice(states: int, table: Numbers) -> Rule:
    """Return a rule with a table by the cell's state and the numbers of neighbours in state 1 and in state 2."""

    def step(now: States) -> Any:
        ones, twos = ((_around(now) == state).sum(axis=0) for state in (1, 2))
        return table[now, np.minimum(ones, table.shape[1] - 1), np.minimum(twos, table.shape[2] - 1)]

    return Rule(f"counted twice {table.tolist()}".replace(", ", ""), states, step)


def gates(channels: int, rng: Generator) -> Rule:
    """Sample a rule of which each bit is a tree of random two-input gates on random bits of the nine cells."""
    trees = []
    for _ in range(channels):
        leaves = [(int(rng.integers(9)), int(rng.integers(channels))) for _ in range(int(rng.integers(2, 7)))]
        trees.append((leaves, rng.choice(TWO_INPUTS, len(leaves) - 1).tolist()))

    def step(now: States) -> Any:
        nine = _around(now, [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)])
        found = np.zeros_like(now)
        for bit, (leaves, kinds) in enumerate(trees):
            values = [nine[cell] >> channel & 1 for cell, channel in leaves]
            for kind in kinds:
                a, b, *values[:] = values
                values.append(kind >> (3 - 2 * a - b) & 1)
            found |= (values[0] << bit).astype(np.uint8)
        return found

    return Rule(f"gates {trees}".replace(" ", ""), 1 << channels, step)


def drawn(rng: Generator) -> Rule:
    """Sample a rule of one of five families."""
    kind, states = int(rng.integers(5)), int(rng.integers(3, 9))
    if kind == 0:
        return cyclic(states, int(rng.integers(1, 4)), bool(rng.integers(2)))
    if kind == 1:
        born, stays = ({count for count in range(9) if rng.random() < 0.3} for _ in range(2))
        return generations(states, born | {int(rng.integers(1, 5))}, stays)
    if kind == 2:
        return gates(int(rng.integers(2, 4)), rng)
    states = int(rng.integers(3, 5))
    if kind == 3:
        return counted(states, rng.integers(0, states, (states, int(rng.integers(3, 6)))))
    return counted_twice(states, rng.integers(0, states, (states, *rng.integers(2, 5, 2).tolist())))


def rules(seed: int) -> list[Rule]:
    """Return the rules of a seed: four named ones and ten sampled ones."""
    rng = np.random.default_rng(seed)
    first = cyclic(int(rng.integers(3, 9)), 1, True)
    named = [first, generations(3, {2}, set()), wireworld(), lattice_gas()]
    return [*named, *(drawn(rng) for _ in range(DRAWN))]


def stepped(circuit: dict[str, Any], x: States) -> States:
    """Return the states after one step of a circuit.json from `x [N, H, W, C]`, computed without difflogic."""
    edges: Any = "wrap" if circuit["periodic"] else "constant"
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode=edges)
    height, width = x.shape[1:3]
    known = {
        f"in[{name}][{patch}]": wide[:, patch // 3 : patch // 3 + height, patch % 3 : patch % 3 + width, channel]
        for channel, name in enumerate(circuit.get("origin", range(x.shape[-1])))
        for patch in range(9)
    }
    for gate in circuit["gates"]:
        known[gate["id"]] = gate["gate"] >> (3 - 2 * known[gate["a"]] - known[gate["b"]]) & 1
    return np.stack([known[output] for output in circuit["outputs"]], axis=-1)


def trained(
    asked: list[str], out: Path, number: int, seconds: int
) -> tuple[dict[str, Any], list[dict[str, Any]], Line]:
    """Run `difflogic train --until-solved`; return circuit.json, the attempts, and the common fields of a row."""
    command = [sys.executable, "-m", "difflogic", "train", *asked, "--out", str(out)]
    command += ["--until-solved", "--within", f"{seconds}s", "--seed", str(number), "--engine", "cpu"]
    began = time.monotonic()
    ended = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - began
    if not (out / "circuit.json").exists():
        raise SystemExit(ended.stderr)
    circuit = json.loads((out / "circuit.json").read_text(encoding="utf-8"))
    attempts = json.loads((out / "restarts.json").read_text(encoding="utf-8"))["attempts"]
    said = re.search(r"^(Solved|Not solved)", ended.stdout, re.MULTILINE)
    line = {
        "number": number,
        "said_solved": said is not None and said[0] == "Solved",
        "seconds": round(took, 1),
        "within": seconds,
        "attempts": len(attempts),
        "gates": sum(READS[gate["gate"]] == 2 for gate in circuit["gates"]),
        "engine": "cpu",
        **stamp(),
    }
    return circuit, attempts, line


def run(rule: Rule, seed: int, number: int, seconds: int = SECONDS) -> Line:
    """Train on a recording of the rule, evaluate the circuit on another recording, and return the row."""
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, "film.npz")
        x, y = rule.film(np.random.default_rng([seed, number]))
        np.savez_compressed(film, x=x, y=y)
        circuit, _, line = trained(["--data", str(film)], Path(folder, "run"), number, seconds)
    fresh_x, fresh_y = rule.film(np.random.default_rng([seed, number, FRESH]))
    wrong = int(np.count_nonzero(stepped(circuit, fresh_x) != fresh_y))
    found = {"seed": seed, "rule": rule.name, "channels": rule.channels, "fresh_wrong": wrong}
    return {**found, "fresh_values": fresh_y.size, **line}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int, help="what the rules and films are drawn from")
    parser.add_argument("--rules", help="only these, counted from 0, with commas")
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results/films.jsonl")
    options = parser.parse_args()
    block = rules(options.seed)
    for number in map(int, options.rules.split(",")) if options.rules else range(len(block)):
        line = run(block[number], options.seed, number)
        print(json.dumps(line), flush=True)
        if options.save:
            append("films", [line])


if __name__ == "__main__":
    main()
