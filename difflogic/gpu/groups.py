"""A population that one binding cannot hold: several groups of models, one after another on the same device."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack

from difflogic.engine import EpochMetrics, Evaluation, Job, TrainState
from difflogic.gpu.device import Device
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import Schedule


class GpuGroups:
    """Implements `difflogic.engine.PopulationModel`; every model is what it is alone, bit for bit."""

    def __init__(self, groups: Sequence[GpuModel]) -> None:
        self.info = groups[0].info
        self.groups = groups

    @classmethod
    def from_cpu(
        cls, device: Device, jobs: Sequence[Job], states: Sequence[TrainState], count: int, schedule: Schedule | None
    ) -> GpuGroups:
        """So many groups, as even as can be. Raises LimitError where memory runs out."""
        ends = [len(jobs) * group // count for group in range(count + 1)]
        with ExitStack() as opened:
            groups = []
            for first, last in itertools.pairwise(ends):
                groups.append(GpuModel.from_cpu(device, jobs[first:last], states[first:last], schedule, count))
                opened.callback(groups[-1].close)
            opened.pop_all()
        return cls(groups)

    def train(self, epochs: int) -> None:
        for group in self.groups:
            group.train(epochs)

    def drain_all(self) -> list[list[EpochMetrics]]:
        return [metrics for group in self.groups for metrics in group.drain_all()]

    def evaluate_all(self) -> list[Evaluation]:
        return [evaluation for group in self.groups for evaluation in group.evaluate_all()]

    def to_cpu_all(self) -> list[TrainState]:
        return [state for group in self.groups for state in group.to_cpu_all()]

    def max_epochs_per_call(self) -> int:
        return max(1, min(group.max_epochs_per_call() for group in self.groups) // len(self.groups))

    def close(self) -> None:
        for group in self.groups:
            group.close()
