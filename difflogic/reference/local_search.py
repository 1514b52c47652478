"""Local search over the hard circuit, which evaluates one candidate after another. See `difflogic.engine.search`."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import GATE_COUNT, INPUT_WISE, TABLE
from difflogic.core.wiring import CENTRE, PATCH
from difflogic.engine import control as c
from difflogic.engine.job import Job
from difflogic.engine.search import CANDIDATES, FUNCTION, GUIDED, HOW_FAR, NO_GUIDE, SIDES, WHERE, Array, Words, stuck
from difflogic.engine.shape import Shape
from difflogic.model.layout import Layout, flat_layout
from difflogic.reference.engine import ReferenceEngine
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.rollout import RolloutSpec, cells_last, pull_back, run_steps


class ReferenceLocalSearch:
    """NumPy implementation of `difflogic.engine.search.LocalSearch`."""

    def __init__(self, job: Job) -> None:
        self._job, self._layout = job, flat_layout(job.circuit)

    def search(self, gates: Array, costs: Words, words: Words, rises: bool, guide: Array = NO_GUIDE) -> None:
        wrong = self.wrong(gates)
        before = int(wrong.sum())
        for drawn in words:
            if not wrong.any():
                return
            changed, new = candidates(self._job, self._layout, gates, drawn, guide)
            tried = np.tile(gates, (CANDIDATES, 1))
            tried[np.arange(CANDIDATES), changed] = new
            found = [self.wrong(each) for each in tried]
            scores = np.array([costs[each].sum(dtype=np.int64) for each in found])
            best = scores.min()
            if best <= costs[wrong].sum(dtype=np.int64):
                ties = np.flatnonzero(scores == best)
                candidate = ties[drawn[0, WHERE] % len(ties)]
                gates[:], wrong = tried[candidate], found[candidate]
        if rises and stuck(before, int(wrong.sum())):
            costs[wrong] += 1

    def slopes(self, gates: Array, costs: Words) -> npt.NDArray[np.float64]:
        job, masks = self._job, self._job.probe_masks
        shape = replace(Shape.training(job.circuit, job.config), batch=len(job.probes))
        fire = None if masks is None else masks.reshape(shape.steps, shape.cells_per_grid)
        spec, hard = RolloutSpec(shape, self._layout, fire), Parameters(TABLE[gates].astype(np.float64))
        nodes = np.empty((shape.steps, self._layout.nodes, shape.cells))
        run_steps(spec, hard, cells_last(job.probes).astype(np.float64), nodes)
        # Derivatives of the total cost, which grows with a value whose target is 0, and falls if the target is 1.
        adjoints = (1 - 2 * cells_last(job.targets(job.probes)).astype(np.float64)) * costs
        d_patches = np.zeros((2, PATCH * shape.channels, shape.cells))
        d_patches[shape.steps % 2, CENTRE : PATCH * shape.loss_channels : PATCH] = adjoints[-1]
        # With equal probabilities, a logit's gradient is a sixteenth of the derivative with respect to its function's
        # probability, minus the mean. 4 * INPUT_WISE turns these into derivatives by entries of the truth table.
        equal, control = np.zeros((len(gates), GATE_COUNT)), np.zeros(c.WORDS, dtype=np.uint32)
        return 4 * pull_back(spec, hard, equal, nodes, adjoints[:-1], d_patches, control) @ INPUT_WISE

    def wrong(self, gates: Array) -> npt.NDArray[np.bool_]:
        job, task = self._job, self._job.config.task
        circuit = job.circuit.with_logits(np.eye(GATE_COUNT, dtype=np.float32)[gates])
        starts = job.probes.astype(np.float32)
        states = ReferenceEngine().rollout(circuit, starts, task.steps, "hard", job.probe_masks)
        judged = states[list(task.judged_steps)][..., : task.loss_channels] != job.targets(job.probes)
        wrong: npt.NDArray[np.bool_] = np.moveaxis(judged, -1, 1).reshape(len(judged), task.loss_channels, -1)
        return wrong


def candidates(job: Job, layout: Layout, gates: Array, drawn: Words, guide: Array) -> tuple[Array, Array]:
    """Return the gate that each candidate changes, and the gate's new function, int64 `[CANDIDATES]` each."""
    read = live(job, layout, gates)
    choices = [
        read[words[WHERE] % len(read)] if lane % 2 else _walked(job, layout, words.tolist())
        for lane, words in enumerate(drawn[1:], 1)
    ]
    changed = np.array(choices)
    steps = 1 + drawn[1:, FUNCTION] % (GATE_COUNT - 1)
    new = (gates[changed] + steps) % GATE_COUNT
    if len(guide):
        told, bits = guide[drawn[GUIDED:, WHERE] % len(guide)].T
        changed[GUIDED - 1 :], new[GUIDED - 1 :] = told, gates[told] ^ bits
    return changed, new


def live(job: Job, layout: Layout, gates: Array) -> Array:
    """Return the ascending indices of the gates that may affect a value with a loss."""
    # A gate is c0 + ca a + cb b + cab a b. Modulo 2 that is its polynomial over 0 and 1, which has a term with `a` if
    # and only if the gate depends on a: XOR, 0 1 1 -2, becomes 0 1 1 0, and B, 0 0 1 0, has none.
    depends = TABLE[gates] % 2
    reads = np.stack([depends[:, 1] | depends[:, 3], depends[:, 2] | depends[:, 3]], axis=1).astype(np.bool_)
    nodes = np.zeros(layout.nodes, dtype=np.bool_)
    outputs = np.arange(layout.channels) < job.config.task.loss_channels
    # Channels that the last step reads must be computed by the step before it, and so on.
    for _ in range(job.config.task.steps):
        nodes[-layout.channels :] |= outputs
        for instance in range(layout.instances - 1, -1, -1):
            if nodes[layout.patch_nodes + instance]:
                nodes[layout.wires[instance, reads[layout.instance_gates[instance]]]] = True
        outputs = nodes[: layout.patch_nodes].reshape(layout.channels, -1).max(axis=1)
    return np.unique(layout.instance_gates[nodes[layout.patch_nodes :]]).astype(np.int64)


def _walked(job: Job, layout: Layout, words: list[int]) -> int:
    """Return the last gate of a walk from an output towards the inputs; random `words` set output, length and turns."""
    instance = layout.instances - layout.channels + words[WHERE] % job.config.task.loss_channels
    for step in range(words[HOW_FAR] % len(job.circuit.update)):
        side = words[SIDES] >> (step % 32) & 1
        instance = int(layout.wires[instance, side]) - layout.patch_nodes
    return int(layout.instance_gates[instance])
