"""Measure fault tolerance: the accuracy of a circuit whose bits flip or whose cells or gates are stuck at 0 or 1.

`difflogic.engine.events` describes faults of bits and cells. Stuck gates are random gates of the trained circuit, or
single gates of the simplified circuit. The hard circuit runs for the task's number of steps, without damage, from
initial states that neither training nor its evaluation uses. The final state has no faults.
"""

from collections.abc import Callable, Iterator
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
"""Constant ("faul") folded into the random key of faults, and added to the seed for new initial states."""
POINTS = 5
"""Number of points per curve, excluding the point without faults; each point has twice the faults of the previous."""
PART = 8
"""Maximum number of initial states per rollout."""
TRIALS = 8
"""Number of random sets of stuck gates per point of a curve."""
MOST_FAULTS = 400
"""Maximum number of single-gate faults to test; if there are more, a random sample of this size is tested."""
FEW_STARTS = 8
"""Maximum number of initial states per test of a single-gate fault."""
DRAWN = ("checkerboard", "picture", "rule")
"""Kinds of target for which the fault tests can create initial states and targets."""
TOLD = 5
"""Maximum number of worst faults that the result's text lists."""
CURVES = ("flip", "stuck-cells", "stuck-gates")
"""Keys of the measures that are curves, whose values are accuracies by the number or probability of faults."""


@dataclass(frozen=True)
class FaultTests:
    """Selection of fault tests by the maximum probability or number of faults; 0 omits a test."""

    flip: float = 0.0
    stuck_cells: float = 0.0
    stuck_gates: int = 0

    def __iter__(self) -> Iterator[Callable[[EvaluationContext], Measure | None]]:
        """Yield the selected tests as functions of the type `difflogic.evaluation.suite.Test`."""
        if self.flip:
            yield lambda context: _of_states(context, "flip", self.flip, "bits that flip before a step")
        if self.stuck_cells:
            yield lambda context: _of_states(context, "stuck_cells", self.stuck_cells, "cells that are stuck")
        if self.stuck_gates:
            yield lambda context: _of_gates(context, self.stuck_gates)
            yield single_stuck_gates


def _of_states(context: EvaluationContext, name: str, most: float, title: str) -> Measure | None:
    if context.config.task.target not in DRAWN:
        return None
    # All probabilities share a key. A fault is a random word below p * 2^32, so a larger p only adds faults. Thus the
    # curve is smoother than with a key for each point.
    key, shares = prng.fold_in(context.keys(900)[1], FAULT_STREAM), [most / 2**n for n in reversed(range(POINTS))]
    accuracies = {p: _accuracy(context, context.trained.circuit, key, **{name: p}) for p in (0.0, *shares)}
    return _measure(name.replace("_", "-"), f"{title}, by probability", accuracies)


def _of_gates(context: EvaluationContext, most: int) -> Measure | None:
    circuit = context.trained.circuit
    if context.config.task.target not in DRAWN:
        return None
    most = min(most, circuit.gates)  # the maximum number of stuck gates
    # For example, with 54 gates: 3, 7, 14, 27 and 54.
    counts = sorted({round(most / 2**n) for n in range(POINTS)} - {0})
    accuracies = {0.0: _accuracy(context, circuit)}
    for count in counts:
        keys = [prng.fold_in(context.keys(901)[1], TRIALS * count + trial) for trial in range(TRIALS)]
        accuracies[count] = float(np.mean([_accuracy(context, _with_stuck(circuit, key, count)) for key in keys]))
    return _measure("stuck-gates", f"stuck gates of {circuit.gates}, {TRIALS} random sets per number", accuracies)


def _with_stuck(circuit: Circuit, key: prng.Key, count: int) -> Circuit:
    logits = circuit.flat_logits().copy()
    chosen = prng.permutation(key, circuit.gates)[:count]
    ones = prng.random_bits(prng.fold_in(key, FAULT_STREAM), len(chosen)) & np.uint32(1)
    # A constant becomes the most probable function of a stuck gate, so that every engine supports it.
    logits[chosen] = 0
    logits[chosen, ones * np.uint32(GATE_COUNT - 1)] = 1  # FALSE is the first gate and TRUE the last
    return circuit.with_logits(logits)


def _measure(key: str, title: str, accuracies: dict[float, float]) -> Measure:
    text = ", ".join(f"{faults:.3g}: {100 * right:.2f} %" for faults, right in accuracies.items())
    values = {f"{faults:g}": right for faults, right in accuracies.items()}
    return Measure(key, f"accuracy with {title}", text, values)


def _job(context: EvaluationContext, circuit: Circuit, **task: float) -> Job:
    """Return the job for testing `circuit` on grids from another seed; `task` overrides fields of its task."""
    config = replace(context.own, seed=(context.own.seed + FAULT_STREAM) % 2**32)
    probes = {"probes": context.starts}
    # Remove the parts that only training needs, which would also sample or store initial states.
    plain = config.with_(train=probes, growth=GrowthConfig(), search=SearchConfig(), pool=PoolConfig())
    return job.make_job(plain.with_(task=task), circuit)


def _accuracy(context: EvaluationContext, circuit: Circuit, key: prng.Key | None = None, **task: float) -> float:
    task_job = _job(context, circuit, **task)
    spec, wrong, values = task_job.config.task, 0, 0
    count = min(len(task_job.probes), context.starts)
    for first in range(0, count, PART):
        starts = task_job.probes[first : min(count, first + PART)]
        # Random words are numbered within a rollout: with the same key, all parts would have the same faults.
        damage = None if key is None else task_job.damage(None, prng.fold_in(key, first), len(starts))
        states = context.engine.rollout(circuit, starts, spec.steps, "hard", task_job.probe_masks, damage)
        shown = states[list(spec.judged_steps)][..., : spec.loss_channels]
        target = task_job.targets(starts)
        wrong += int(np.count_nonzero(shown != target))
        values += shown.size
    return 1 - wrong / values


def single_stuck_gates(context: EvaluationContext) -> Measure | None:
    """Measure the accuracy with each single gate of the simplified circuit stuck at 0 and at 1."""
    if context.config.task.target not in DRAWN:
        return None
    task_job = _job(context, context.trained.circuit)
    # Most of the thousands of trained gates only pass on a value, while the simplified circuit needs all its gates.
    netlist = simplified(CellNetlist.of_run(context.trained.circuit, context.config)).netlist
    starts = task_job.probes[:FEW_STARTS]
    faults = [(gate, value) for gate in range(len(netlist.gates)) for value in (0, 1)]
    tested = faults
    if len(faults) > MOST_FAULTS:
        order = prng.permutation(context.keys(902)[1], len(faults))[:MOST_FAULTS]
        tested = [faults[index] for index in sorted(order)]
    targets = task_job.targets(starts)
    intact = float((_shown(netlist, task_job, starts) == targets).mean())
    accuracies = {}
    for gate, value in tested:
        gates = netlist.gates.copy()
        gates[gate] = value * (GATE_COUNT - 1)
        broken = _shown(netlist.with_gates(gates, netlist.wires, netlist.outputs), task_job, starts)
        accuracies[f"{netlist.bit_name(netlist.inputs + gate)}={value}"] = float((broken == targets).mean())
    worst = sorted(accuracies, key=lambda name: accuracies[name])[:TOLD]
    names = ", ".join(f"{name} ({100 * accuracies[name]:.2f} % right)" for name in worst)
    # A fault is harmless if the intact circuit, which may have mismatches itself, is no better.
    harmless = sum(right >= intact for right in accuracies.values())
    sampled = "" if len(tested) == len(faults) else f", sampled from {len(faults)}"
    text = f"{harmless} of {len(tested)} faults{sampled} are harmless; worst: {names}" if tested else "it has no gates"
    return Measure("single-stuck-gates", "one gate of the simplified circuit stuck at 0 or 1", text, accuracies)


def _shown(netlist: CellNetlist, task_job: Job, starts: Bits) -> Bits:
    """Return the loss channels of a rollout from `starts` at the compared steps, `[J, B, H, W, loss_channels]`."""
    spec = task_job.config.task
    states = enumerate(netlist.steps(starts[..., list(netlist.origin)], spec.steps, task_job.probe_masks), 1)
    return np.stack([state[..., : spec.loss_channels] for step, state in states if step in spec.judged_steps])
