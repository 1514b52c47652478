"""Training that begins on a smaller grid, with fewer CA steps, and grows to the task's own.

What a small grid asks for is learned sooner: fewer steps to send gradients back through, and no cell far from the
border. States, moments, keys and counters go from stage to stage as they are, and the stage is a function of the epoch,
so that a resumed run goes on bit for bit. Evaluations are always of the task's own grid and steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from difflogic.config import Config, TrainConfig
from difflogic.engine import Engine, EpochMetrics, Evaluation, Job, PopulationModel, TrainState
from difflogic.train import tasks
from difflogic.train.contest import Contest, ContestModel, Decision
from difflogic.train.population import open_models


def stage_of(train: TrainConfig, epochs: int) -> int:
    """The stage, counted from 0, of the epoch that comes after so many; the last one is the task itself."""
    return bisect_right(train.growth_until, epochs)


def at_stage(config: Config, stage: int) -> Config:
    """What is trained in that stage, as a configuration without growth."""
    train = config.train
    whole = config.with_(train={"growth_until": (), "growth_sides": (), "growth_steps": ()})
    if stage == len(train.growth_until):
        return whole
    side = train.growth_sides[stage]
    return whole.with_(task={"height": side, "width": side, "steps": train.growth_steps[stage]})


def cells(config: Config, epoch: int) -> int:
    """Cells of the grid of an epoch, counted from 1."""
    task = at_stage(config, stage_of(config.train, epoch - 1)).task
    return task.height * task.width


def open_growing(engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState]) -> PopulationModel:
    """The jobs on an engine, each growing as it says. Raises DeviceErrors."""
    if jobs[0].config.train.growth_until:
        return GrowingModel(engine, jobs, states)
    return open_models(engine, jobs, states)


class GrowingModel:
    """Implements `difflogic.engine.PopulationModel` by the model of the stage, each opened from the last one's states.

    Where engines compete, the whole task decides: smaller grids are trained on the engine that is chosen so far.
    """

    decided: Callable[[Decision], None] = staticmethod(lambda decision: None)
    """Told of the contest, where there is one."""

    def __init__(self, engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState]) -> None:
        self._engine, self._jobs = engine, jobs
        self._train = jobs[0].config.train
        self._epoch = states[0].epoch
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]
        self._open(states)

    def train(self, epochs: int) -> None:
        while epochs > 0:
            if stage_of(self._train, self._epoch) != self._stage:
                self._grow()
            count = epochs if self._grown else min(epochs, self._train.growth_until[self._stage] - self._epoch)
            self._model.train(count)
            self._epoch += count
            epochs -= count

    def drain_all(self) -> list[list[EpochMetrics]]:
        self._collect()
        drained, self._waiting = self._waiting, [[] for _ in self._jobs]
        return drained

    def evaluate_all(self) -> list[Evaluation]:
        judged = self._model.evaluate_all()
        if self._grown:
            return judged
        whole = open_models(self._present_engine(), self._jobs, self._model.to_cpu_all())
        of_probes = whole.evaluate_all()
        whole.close()
        return [
            replace(each, train_hard_loss=small.train_hard_loss) for each, small in zip(of_probes, judged, strict=True)
        ]

    def to_cpu_all(self) -> list[TrainState]:
        return self._model.to_cpu_all()

    def max_epochs_per_call(self) -> int:
        return self._model.max_epochs_per_call()

    def close(self) -> None:
        self._model.close()

    @property
    def _grown(self) -> bool:
        return self._stage == len(self._train.growth_until)

    def _grow(self) -> None:
        self._collect()
        states = self._model.to_cpu_all()
        self._model.close()
        self._open(states)

    def _collect(self) -> None:
        for waiting, drained in zip(self._waiting, self._model.drain_all(), strict=True):
            waiting += drained

    def _open(self, states: Sequence[TrainState]) -> None:
        """The model of this epoch's stage."""
        self._stage = stage_of(self._train, self._epoch)
        self._model = self._opened(states)
        self.info = self._model.info

    def _opened(self, states: Sequence[TrainState]) -> PopulationModel:
        if self._grown:
            model = open_models(self._engine, self._jobs, states)
            if isinstance(model, ContestModel):
                model.decided = self._decided
            return model
        jobs = [tasks.make_job(at_stage(job.config, self._stage), job.circuit) for job in self._jobs]
        return open_models(self._present_engine(), jobs, states)

    def _decided(self, decision: Decision) -> None:
        self.info = decision.engine
        self.decided(decision)

    def _present_engine(self) -> Engine:
        return self._engine.chosen if isinstance(self._engine, Contest) else self._engine
