"""Test that hard rollouts in many calls do not depend on the cached workspace."""

from typing import NamedTuple

import numpy as np

from difflogic.cpu import engine as cpu
from difflogic.engine.events import Damage
from difflogic.model.circuit import Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.random_circuits import bits, random_circuit


class Job(NamedTuple):
    circuit: Circuit
    x: np.ndarray
    steps: int
    masks: np.ndarray | None = None
    damage: Damage | None = None


def jobs(rng: np.random.Generator) -> list[Job]:
    """Work that differs in one thing from other work, or in nothing but the start."""
    one, other = random_circuit(rng), random_circuit(rng)
    relearned = one.with_logits(other.flat_logits())
    small, large, many = (bits(rng, *shape) for shape in ((1, 5, 6, 2), (1, 7, 6, 2), (70, 5, 6, 2)))
    again, masks = bits(rng, 1, 5, 6, 2), bits(rng, 3, 5, 6, 1)
    here, there = (Damage(2, (0, 1), rng.integers(0, 5, (2, 1, 2))) for _ in range(2))
    return [
        Job(one, small, 3),
        Job(one, again, 3),
        Job(one, again, 3, masks),
        Job(one, small, 3, 1 - masks),
        Job(one, small, 3, None, here),
        Job(one, again, 3, None, there),
        Job(one, small, 2),
        Job(relearned, small, 3, masks),
        Job(other, small, 3, masks),
        Job(other, large, 2),
        Job(other, many, 2),
    ]


def test_hard_rollouts_depend_on_no_order_of_calls(monkeypatch):
    rng, engine, reference = np.random.default_rng(5), cpu.CpuEngine(threads=2), ReferenceEngine()
    work = jobs(rng)
    for limit in (cpu.CACHED_BYTES, 0):
        monkeypatch.setattr(cpu, "CACHED_BYTES", limit)
        for index in rng.permutation(np.tile(np.arange(len(work)), 3)):
            circuit, x, steps, masks, damage = work[index]
            expected = reference.rollout(circuit, x, steps, "hard", masks, damage)
            assert np.array_equal(engine.rollout(circuit, x, steps, "hard", masks, damage), expected)


def test_long_hard_rollout_allocates_one_workspace(monkeypatch):
    engine, made = cpu.CpuEngine(threads=1), []  # which may be compiled now, with a workspace of its own
    setup = cpu.HardWorkspace.__init__
    monkeypatch.setattr(
        cpu.HardWorkspace, "__init__", lambda self, *arguments: made.append(arguments) or setup(self, *arguments)
    )
    rng = np.random.default_rng(6)
    circuit, x = random_circuit(rng), bits(rng, 1, 5, 6, 2)
    for _ in range(5):
        x = engine.rollout(circuit, x, 1, "hard")[-1]
    assert len(made) == 1
