"""Tolerance of faults is a circuit's accuracy where bits flip, and where cells or gates are stuck at 0 or 1.

Bits and cells fail as `difflogic.engine.events` says; gates of the trained circuit are drawn and stuck, and so is each
gate of the simplified circuit by itself, which is the one that would be built. Hard circuits, after the task's own
steps, from starts that neither training nor its probes have seen, without damage. Faults stop before the last step:
what is measured is what the rest of the circuit makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from difflogic.circuits.synthesis.simplify import simplified
from difflogic.config.train import GrowthConfig, PoolConfig, SearchConfig
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.core.gates import GATE_COUNT
from difflogic.engine import job
from difflogic.engine.job import Job
from difflogic.evaluation.measure import Measure
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit

FAULT_STREAM = 0x6661756C
"""`fold_in` data of the draws of faults ("faul"); added to a run's seed, it gives starts of their own."""
POINTS = 5
"""Of a curve, beside the one without faults: each has half the faults of the next."""
PART = 8
"""Starts that are rolled out at once."""
TRIALS = 8
"""Draws of stuck gates, for each number of them."""
MOST_FAULTS = 400
"""So many single faults of gates at most are tried, drawn where there are more..."""
FEW_STARTS = 8
"""...each on so many starts at most."""
DRAWN = ("checkerboard", "picture", "rule")
"""Targets of tasks whose starts can be drawn anew; those of samples are left out."""
TOLD = 5
"""The worst gates that are named in words; the numbers are of all."""


@dataclass(frozen=True)
class FaultTests:
    """The tests try at most these probabilities of flips and stuck cells, and this number of stuck gates."""

    flip: float = 0.0
    stuck_cells: float = 0.0
    stuck_gates: int = 0

    def __iter__(self) -> Iterator[Callable[[EvaluationContext], Measure | None]]:
        """The tests, as `difflogic.evaluation.suite` has them."""
        if self.flip:
            yield lambda context: _of_states(context, "flip", self.flip, "bits that flip before a step")
        if self.stuck_cells:
            yield lambda context: _of_states(context, "stuck_cells", self.stuck_cells, "cells that are stuck")
        if self.stuck_gates:
            yield lambda context: _of_gates(context, self.stuck_gates)
            yield single_stuck_gates


def _of_states(context: EvaluationContext, name: str, most: float, what: str) -> Measure | None:
    """Accuracy against the probability of one kind of fault."""
    if context.config.task.target not in DRAWN:
        return None
    # One key for all probabilities. A fault is a random word below p * 2^32, so that the faults at p are among those at
    # 2 p: along the curve faults are only added, and chance moves it less than if each point had draws of its own.
    key, shares = prng.fold_in(context.keys(900)[1], FAULT_STREAM), [most / 2**n for n in reversed(range(POINTS))]
    found = {p: _accuracy(context, context.trained.circuit, key, **{name: p}) for p in (0.0, *shares)}
    return _measure(name.replace("_", "-"), f"{what}, by probability", found)


def _of_gates(context: EvaluationContext, most: int) -> Measure | None:
    """Accuracy against the number of gates that are stuck, the mean over draws."""
    circuit = context.trained.circuit
    if context.config.task.target not in DRAWN:
        return None
    most = min(most, circuit.gates)  # more cannot be stuck
    # Each point has half the faults of the next, as for probabilities: 3, 7, 14, 27 and 54 of 54 gates.
    counts = sorted({round(most / 2**n) for n in range(POINTS)} - {0})
    found = {0.0: _accuracy(context, circuit)}
    for count in counts:
        keys = [prng.fold_in(context.keys(901)[1], TRIALS * count + trial) for trial in range(TRIALS)]
        found[count] = float(np.mean([_accuracy(context, _with_stuck(circuit, key, count)) for key in keys]))
    return _measure("stuck-gates", f"gates of the {circuit.gates} that are stuck, {TRIALS} draws of each", found)


def _with_stuck(circuit: Circuit, key: prng.Key, count: int) -> Circuit:
    """The circuit with this many random gates stuck at 0 or 1."""
    logits = circuit.flat_logits().copy()
    chosen = prng.permutation(key, circuit.gates)[:count]
    ones = prng.random_bits(prng.fold_in(key, FAULT_STREAM), len(chosen)) & np.uint32(1)
    # A stuck gate is a gate whose most probable function is a constant, so that every engine runs it as it is.
    logits[chosen] = 0
    logits[chosen, ones * np.uint32(GATE_COUNT - 1)] = 1  # FALSE is the first gate and TRUE the last
    return circuit.with_logits(logits)


def _measure(key: str, title: str, found: dict[float, float]) -> Measure:
    text = ", ".join(f"{faults:.3g}: {100 * right:.2f} %" for faults, right in found.items())
    values = {f"{faults:g}": right for faults, right in found.items()}
    return Measure(key, f"accuracy with {title}", text, values)


def _job(context: EvaluationContext, circuit: Circuit, **task: float) -> Job:
    """The task with these faults, its probes being starts of this evaluation's own."""
    # Probes are drawn from the seed of a configuration. With another seed they are starts that the run never saw.
    config = replace(context.own, seed=(context.own.seed + FAULT_STREAM) % 2**32)
    probes = {"probes": context.starts}
    # What only training does would draw or keep starts too, and is left out.
    plain = config.with_(train=probes, growth=GrowthConfig(), search=SearchConfig(), pool=PoolConfig())
    return job.make_job(plain.with_(task=task), circuit)


def _accuracy(context: EvaluationContext, circuit: Circuit, key: prng.Key | None = None, **task: float) -> float:
    """The share of right values after all compared steps."""
    made = _job(context, circuit, **task)
    spec, wrong, values = made.config.task, 0, 0
    count = min(len(made.probes), context.starts)
    for first in range(0, count, PART):
        starts = made.probes[first : min(count, first + PART)]
        # Random words are numbered within a rollout: with one key for all parts, each would have the faults of the
        # first.
        damage = None if key is None else made.damage(None, prng.fold_in(key, first), len(starts))
        states = context.engine.rollout(circuit, starts, spec.steps, "hard", made.probe_masks, damage)
        shown = states[list(spec.judged_steps)][..., : spec.loss_channels]
        target = made.targets(starts)
        wrong += int(np.count_nonzero(shown != target))
        values += shown.size
    return 1 - wrong / values


def single_stuck_gates(context: EvaluationContext) -> Measure | None:
    """Each gate of the simplified circuit is stuck at 0, then at 1, all others working: which ones hurt how much?"""
    if context.config.task.target not in DRAWN:
        return None
    made = _job(context, context.trained.circuit)
    # Of thousands of trained gates most pass a value on, and a fault there is a fault of its input. In the circuit that
    # would be built each gate is needed.
    netlist = simplified(CellNetlist.of_run(context.trained.circuit, context.config)).netlist
    starts = made.probes[:FEW_STARTS]
    faults = [(gate, value) for gate in range(len(netlist.gates)) for value in (0, 1)]
    tried = faults
    if len(faults) > MOST_FAULTS:
        order = prng.permutation(context.keys(902)[1], len(faults))[:MOST_FAULTS]
        tried = [faults[index] for index in sorted(order)]
    whole, targets = _shown(netlist, made, starts), made.targets(starts)
    found = {}
    for gate, value in tried:
        gates = netlist.gates.copy()
        gates[gate] = value * (GATE_COUNT - 1)
        broken = _shown(netlist.with_gates(gates, netlist.wires, netlist.outputs), made, starts)
        found[f"{netlist.bit_name(netlist.inputs + gate)}={value}"] = float((broken == targets).mean())
    return _fault_report(found, float((whole == targets).mean()), len(faults))


def _fault_report(found: dict[str, float], without: float, faults: int) -> Measure:
    worst = sorted(found, key=lambda name: found[name])[:TOLD]
    named = ", ".join(f"{name} ({100 * found[name]:.2f} % right)" for name in worst)
    # Harmless is measured against the circuit without a fault, which may be wrong by itself.
    harmless = sum(right >= without for right in found.values())
    drawn = "" if len(found) == faults else f", drawn of {faults}"
    text = f"{harmless} of {len(found)} faults{drawn} do no harm; worst: {named}" if found else "it has no gates"
    return Measure("single-stuck-gates", "one gate of the simplified circuit stuck at 0 or 1", text, found)


def _shown(netlist: CellNetlist, made: Job, starts: Bits) -> Bits:
    """The loss channels after the compared steps, `[J, B, H, W, loss_channels]`."""
    spec = made.config.task
    states = enumerate(netlist.steps(starts[..., list(netlist.origin)], spec.steps, made.probe_masks), 1)
    return np.stack([state[..., : spec.loss_channels] for step, state in states if step in spec.judged_steps])


def points(measure: Measure) -> tuple[Sequence[float], Sequence[float]]:
    """The numbers or probabilities of faults of a measure, and the accuracy at each."""
    return [float(name) for name in measure.values], list(measure.values.values())


CURVES = ("flip", "stuck-cells", "stuck-gates")
"""The keys of measures that have such points."""
