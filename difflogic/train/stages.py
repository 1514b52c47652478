"""Training that begins on a smaller grid, with fewer CA steps, and grows to the task's own.

What a small grid asks for is learned sooner: fewer steps to send gradients back through, and no cell far from the
border. States, moments, keys and counters go from stage to stage as they are, and the stage is a function of the epoch,
so that a resumed run goes on bit for bit. Evaluations are always of the task's own grid and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from difflogic.config.schedule import at_stage, stage_of
from difflogic.core.bits import WORD
from difflogic.devices.race import Contest, ContestModel, Decision
from difflogic.engine import job as tasks
from difflogic.engine.api import Engine, EpochMetrics, Evaluation, Model
from difflogic.engine.job import Floats, Job, TrainState
from difflogic.model.circuit import Circuit

STRETCH_BYTES = 1 << 26
"""While a grid grows, the whole task's states are judged so many bytes at once, or a step's."""


def on_probes(engine: Engine, job: Job, state: TrainState, judged: Evaluation) -> Evaluation:
    """An evaluation on the job's own probes, of the same `train_hard_loss`; a grid that grows has one target."""
    circuit, wrong, wrong_probes = job.circuit.with_logits(state.logits), 0, 0
    for first in range(0, len(job.probes), WORD):
        grids = job.probes[first : first + WORD]
        last = _last_state(engine, circuit, grids, job)[..., : job.config.task.loss_channels]
        differs = last != job.targets(grids)
        wrong += int(np.count_nonzero(differs))
        wrong_probes += int(np.count_nonzero(differs.any(axis=(1, 2, 3))))
    return replace(judged, hard_loss=wrong, values=job.values, wrong_probes=wrong_probes)


def _last_state(engine: Engine, circuit: Circuit, grids: npt.NDArray[np.uint8], job: Job) -> Floats:
    """`[B, H, W, C]` after all steps of a hard rollout, which is exact in any stretches."""
    state: npt.ArrayLike = grids
    for done in range(0, job.config.task.steps, _stretch(job)):
        count = min(_stretch(job), job.config.task.steps - done)
        masks = None if job.probe_masks is None else job.probe_masks[done : done + count]
        state = engine.rollout(circuit, state, count, "hard", masks)[-1]
    return np.asarray(state)


def _stretch(job: Job) -> int:
    """CA steps that an engine is asked for at once."""
    return min(job.config.task.steps, max(1, STRETCH_BYTES // (4 * job.probes[:WORD].size)))


def open_growing(
    engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None
) -> Model:
    """The jobs on an engine, each growing as it says. Raises DeviceErrors."""
    if jobs[0].config.train.growth_until:
        return GrowingModel(engine, jobs, states, max_memory)
    return engine.open(jobs, states, max_memory)


class GrowingModel:
    """Implements `difflogic.engine.api.Model` by the model of the stage, each opened from the last one's
    states.

    Where engines compete, the whole task decides: smaller grids are trained on the engine that is chosen so far.
    """

    decided: Callable[[Decision], None] = staticmethod(lambda decision: None)
    """Told of the contest, where there is one."""

    def __init__(
        self, engine: Engine, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None
    ) -> None:
        self._engine, self._jobs, self._max_memory = engine, jobs, max_memory
        self._train = jobs[0].config.train
        self._epoch = states[0].epoch
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]
        self._check_memory()
        self._open(states)

    def train(self, epochs: int) -> None:
        while epochs > 0:
            if stage_of(self._train, self._epoch) != self._stage:
                self._grow()
            count = epochs if self._grown else min(epochs, self._train.growth_until[self._stage] - self._epoch)
            self._model.train(count)
            self._epoch += count
            epochs -= count

    def drain(self) -> list[list[EpochMetrics]]:
        self._collect()
        drained, self._waiting = self._waiting, [[] for _ in self._jobs]
        return drained

    def evaluate(self) -> list[Evaluation]:
        judged = self._model.evaluate()
        if self._grown:
            return judged
        whole = zip(self._jobs, self._model.states(), judged, strict=True)
        return [on_probes(self._present_engine(), *each) for each in whole]

    def states(self) -> list[TrainState]:
        return self._model.states()

    def epochs_per_call(self) -> int:
        return self._model.epochs_per_call()

    def close(self) -> None:
        self._model.close()

    @property
    def _grown(self) -> bool:
        return self._stage == len(self._train.growth_until)

    def _grow(self) -> None:
        self._collect()
        states = self._model.states()
        self._model.close()
        self._open(states)

    def _collect(self) -> None:
        for waiting, drained in zip(self._waiting, self._model.drain(), strict=True):
            waiting += drained

    def _open(self, states: Sequence[TrainState]) -> None:
        """The model of this epoch's stage."""
        self._stage = stage_of(self._train, self._epoch)
        self._model = self._opened(states)
        self.info = self._model.info

    def _opened(self, states: Sequence[TrainState]) -> Model:
        if not self._grown:
            limits = self._max_memory, self._reserved(self._stage)
            return self._present_engine().open(self._jobs_of(self._stage), states, *limits)
        model = self._engine.open(self._jobs, states, self._max_memory)
        if isinstance(model, ContestModel):
            model.decided = self._decided
        return model

    def _jobs_of(self, stage: int) -> Sequence[Job]:
        """What is trained in that stage."""
        if stage == len(self._train.growth_until):
            return self._jobs
        return [tasks.make_job(at_stage(each.config, stage), each.circuit) for each in self._jobs]

    def _check_memory(self) -> None:
        """Raises LimitError where a later stage would be refused, in the middle of the run."""
        for stage in range(stage_of(self._train, self._epoch), len(self._train.growth_until) + 1):
            self._present_engine().memory(self._jobs_of(stage), self._max_memory, self._reserved(stage))

    def _reserved(self, stage: int) -> int:
        """Bytes that a model of a smaller grid leaves its engine to judge the whole task."""
        job = self._jobs[0]
        if stage == len(self._train.growth_until):
            return 0
        grids = (len(job.probes[:WORD]), *job.probes.shape[1:])
        return self._present_engine().rollout_memory(job.circuit, grids, _stretch(job), self._train.asynchronous)

    def _decided(self, decision: Decision) -> None:
        self.info = decision.engine
        self.decided(decision)

    def _present_engine(self) -> Engine:
        return self._engine.chosen if isinstance(self._engine, Contest) else self._engine
