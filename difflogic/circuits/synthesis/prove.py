"""Combinational equivalence checking of two circuits by independent checkers.

Outputs are compared as functions of inputs: for a cell, its next state as a function of its neighbourhood. If one
circuit lacks outputs and inputs of the other, the common outputs are compared for all values of all inputs of both.
Two automata with equal cells and equal boundaries are equal in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from difflogic.circuits.synthesis import tools, truth_tables
from difflogic.circuits.synthesis.blif import to_blif
from difflogic.circuits.synthesis.matching import matched
from difflogic.circuits.synthesis.miter import Miter, make_miter
from difflogic.circuits.synthesis.sat import Solver
from difflogic.circuits.synthesis.sweep import LARGE, biased_words, differ_anywhere, swept
from difflogic.core import wiring
from difflogic.core.bits import pack_bits
from difflogic.errors import ToolError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.netlist import Netlist
from difflogic.reference.engine import ReferenceEngine

_SAMPLES, _SEED = 4096, 3

EASY, CONFLICTS = 10_000, 1_000_000
"""Maximum number of conflicts per query before and after SAT sweeping; reaching the latter takes minutes."""


@dataclass(frozen=True)
class Counterexample:
    """Input values on which two circuits differ."""

    ones: tuple[str, ...]
    """Names of the inputs that are 1; all other inputs are 0."""
    outputs: tuple[tuple[str, int, int], ...]
    """Name of each output that differs, with its value in each circuit."""


@dataclass(frozen=True)
class Equivalence:
    """Result of the checker `judge`; `equal` is None if it did not decide, and `how` is its method or message."""

    judge: str
    equal: bool | None
    how: str
    counterexample: Counterexample | None = None
    proves: bool = True
    """False if the checker compared only samples, which is no proof."""


def prove(one: Netlist, other: Netlist, judges: Sequence[str] | None = None) -> list[Equivalence]:
    """Return the result of each checker in `judges`, by default all, on the equivalence of two netlists.

    If they differ, difflogic's result has a counterexample. Raises CircuitError if names of visible outputs differ.
    """
    miter = make_miter(one, other)
    return [JUDGES[name](miter, one, other) for name in (JUDGES if judges is None else judges)]


def together(verdicts: Sequence[Equivalence]) -> bool | None:
    """Return False if any checker found a difference, otherwise True if one proved equality, otherwise None."""
    # A counterexample outweighs every proof, since it can be verified.
    if any(verdict.equal is False for verdict in verdicts):
        return False
    return True if any(verdict.equal and verdict.proves for verdict in verdicts) else None


def network(circuit: Circuit, netlist: CellNetlist) -> Equivalence:
    """Compare the trained network, run in hard mode by the NumPy reference, with the gates extracted from it.

    On 3x3 grids, only the centre is compared: its neighbourhood is the complete grid, whatever the boundary is.
    """
    # One channel has 512 neighbourhoods. Two have 2^18, too many for the reference, so samples are compared.
    exhaustive = circuit.channels == 1
    if exhaustive:
        grids = np.arange(1 << wiring.PATCH)[:, None] >> np.arange(wiring.PATCH) & 1
    else:
        grids = np.random.default_rng(_SEED).integers(0, 2, (_SAMPLES, wiring.PATCH * circuit.channels))
    x = grids.reshape(len(grids), circuit.channels, 3, 3).transpose(0, 2, 3, 1).astype(np.float32)
    hard = ReferenceEngine().rollout(circuit, x, 1, mode="hard")[-1][:, 1, 1]
    ours = netlist.rollout(x, 1)[-1][:, 1, 1]
    equal = bool(np.array_equal(hard, ours))
    what = f"all {len(x)}" if exhaustive else f"{len(x)} random"
    how = f"trained network and its gates {'agree' if equal else 'differ'} on {what} neighbourhoods"
    return Equivalence("network", equal, how, proves=False)


def own(miter: Miter, one: Netlist, other: Netlist) -> Equivalence:
    """Compare each output for all values of at most `truth_tables.MOST_EXHAUSTIVE` inputs, otherwise by SAT."""
    is_large = len(miter.joint.gates) > LARGE
    if not is_large and (verdict := _decided(miter, one, other, EASY, "by structure")).equal is not None:
        return verdict
    # After SAT sweeping of the miter, queries about outputs are easy: counting bits takes a second, not hours.
    if all(a == b for _, a, b in miter.pairs()):
        return _decided(miter, one, other, EASY, "by structure")
    joint = matched(miter.joint, biased_words(miter.joint.inputs)) if is_large else swept(miter.joint)
    return _decided(replace(miter, joint=joint), one, other, EASY if is_large else CONFLICTS, "by SAT sweeping")


def _decided(miter: Miter, one: Netlist, other: Netlist, conflicts: int, merged: str) -> Equivalence:
    """Decide each output by the cheapest method; `merged` names the one that made equal outputs one literal."""
    ways = dict.fromkeys((merged, "by exhaustion", "by SAT"), 0)
    widest = 0
    with Solver(miter.joint, conflicts) as solver:
        for name, a, b in miter.pairs():
            support = len(miter.joint.support((a, b)))
            if a == b:
                ways[merged] += 1
                continue
            if support <= truth_tables.MOST_EXHAUSTIVE:
                way, widest = "by exhaustion", max(widest, support)
                answer: tuple[int, ...] | bool | None = differ_anywhere(miter.joint, a, b)
            else:
                way, answer = "by SAT", solver.differ(a, b)
            if answer is None:
                return Equivalence("difflogic", None, f"{name}: SAT gave up after {conflicts} conflicts")
            if isinstance(answer, tuple):
                return Equivalence("difflogic", False, way, evaluated(miter, one, other, answer))
            ways[way] += 1
    parts = [f"{count} {way}" for way, count in ways.items() if count]
    detail = f" (up to {1 << widest} combinations of inputs)" if ways["by exhaustion"] else ""
    return Equivalence("difflogic", True, f"outputs: {', '.join(parts)}{detail}")


def evaluated(miter: Miter, one: Netlist, other: Netlist, inputs: Sequence[int]) -> Counterexample | None:
    """Return the counterexample with the values `inputs` of `miter.names`; None if the circuits agree on these."""
    values = dict(zip(miter.names, inputs, strict=True))
    # The netlists are evaluated, not their graphs, so that the conversion is verified too.
    results = []
    for netlist in (one, other):
        bits = np.array([[values[name]] for name in netlist.input_names], dtype=np.uint8)
        results.append(dict(zip(netlist.output_names, netlist.evaluate(pack_bits(bits))[:, 0].tolist(), strict=True)))
    a, b = results
    outputs = tuple((name, a[name] & 1, b[name] & 1) for name in miter.outputs if (a[name] ^ b[name]) & 1)
    ones = tuple(name for name, value in values.items() if value)
    return Counterexample(ones, outputs) if outputs else None


def _external(tool: str, arguments: list[str], yes: str, no: str) -> Judge:
    """Return a checker that runs `tool` on both netlists; its output contains `yes` if equal, `no` if different."""

    def judge(miter: Miter, one: Netlist, other: Netlist) -> Equivalence:
        pair = {"one": one, "other": other}
        files = {f"{name}.blif": to_blif(netlist, miter.names, miter.outputs, name) for name, netlist in pair.items()}
        try:
            printed = tools.run(tool, arguments, files)
        except ToolError as error:
            return Equivalence(tool, None, str(error))
        if yes in printed:
            return Equivalence(tool, True, f"says {yes!r}")
        if no in printed:
            return Equivalence(tool, False, f"says {no!r}")
        return Equivalence(tool, None, f"gave no result: {printed.strip()[-200:]!r}")

    return judge


Judge = Callable[[Miter, Netlist, Netlist], Equivalence]

# yosys builds its own miter, and proves with its own SAT solver that the output for a difference is never 1.
_MITER = "read_blif one.blif; read_blif other.blif; miter -equiv -flatten one other miter; "
JUDGES: dict[str, Judge] = {
    "difflogic": own,
    "berkeley-abc": _external(
        tools.ABC, ["-q", "cec one.blif other.blif"], "Networks are equivalent", "NOT EQUIVALENT"
    ),
    "yosys": _external(
        tools.YOSYS, ["-Q", "-T", "-p", f"{_MITER}sat -verify -prove trigger 0 miter"], "SUCCESS!", "proof did fail!"
    ),
}
