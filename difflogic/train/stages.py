"""Stages of a run (smaller grids, the task's own grid, search), and a class that trains all stages in order.

A run may begin on a smaller grid with fewer CA steps, and grow to the task's own grid. A small grid is learned sooner,
since gradients pass fewer steps and no cell is far from the border. A run may end with a search over the hard circuit.
States, moments, keys and counters pass from stage to stage unchanged, and the stage depends only on the epoch. So a
resumed run continues as if it had not stopped. Evaluations always use the task's own grid and steps.

Example: with growth until epochs 60 and 100, and a search after 400, a run of 500 epochs has four stages: epochs 1 to
60 and 61 to 100 on smaller grids, 101 to 400 on the task's own grid, and 401 to 500 with the search. A run that is
resumed after epoch 60 begins with the second stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from difflogic.config.limits import MOST
from difflogic.config.schedule import at_stage
from difflogic.core.bits import WORD
from difflogic.devices.open import Placement
from difflogic.devices.race import Decision, Race
from difflogic.engine.api import Engine, EngineInfo, EpochMetrics, Evaluation, Model
from difflogic.engine.job import Floats, Job, TrainState, make_job
from difflogic.model.circuit import Circuit
from difflogic.train.local_search import LocalSearchModel

STRETCH_BYTES = 1 << 26
"""Maximum number of bytes of states in one rollout of an evaluation during growth; one step is always allowed."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Range of epochs with one kind of training: on a smaller grid, on the task's own grid, or by the search."""

    until: int
    """Last epoch of the stage."""
    jobs: Sequence[Job]
    """Complete task of each model."""
    smaller: Sequence[Job] = ()
    """Task of each model on the smaller grid of this stage; empty if the stage trains the complete task."""
    searches: bool = False

    def open(self, engine: Engine, states: Sequence[TrainState], max_memory: int | None) -> Model:
        """Return an engine model that trains this stage from `states`. Raises DeviceError or CheckpointError."""
        if self.searches:
            return LocalSearchModel(self.jobs, states, engine.info)
        return engine.open(self.smaller or self.jobs, states, max_memory, self._reserved(engine))

    def check_memory(self, engine: Engine, max_memory: int | None) -> None:
        """Raise LimitError if the engine lacks memory for this stage. A search needs no device memory."""
        if not self.searches:
            engine.memory(self.smaller or self.jobs, max_memory, self._reserved(engine))

    def evaluate(self, engine: Engine, model: Model) -> list[Evaluation]:
        """Evaluate the complete task; only `train_hard_loss` is measured on the grid of this stage."""
        evaluations = model.evaluate()
        if not self.smaller:
            return evaluations
        # The model of a smaller grid has no buffers for the complete task, so the engine runs rollouts in parts.
        return [on_probes(engine, *each) for each in zip(self.jobs, model.states(), evaluations, strict=True)]

    def _reserved(self, engine: Engine) -> int:
        """Return the bytes of memory that training on a smaller grid must leave free to evaluate the complete task."""
        if not self.smaller:
            return 0
        job = self.jobs[0]
        grids = (len(job.probes[:WORD]), *job.probes.shape[1:])
        return engine.rollout_memory(job.circuit, grids, _steps_at_once(job), job.config.train.asynchronous)


def stages(jobs: Sequence[Job], epoch: int) -> list[Stage]:
    """Return the stages that train epochs after `epoch`; the last stage has no end."""
    grids, begin, remaining = jobs[0].config.growth.until, jobs[0].config.search.begin, []
    end = begin or MOST
    for index, until in enumerate((*grids, end)):
        # Stages that have ended, or that would begin after the search, are omitted.
        if epoch < min(until, end):
            grows = index < len(grids)
            smaller = [make_job(at_stage(job.config, index), job.circuit) for job in jobs] if grows else []
            epoch = min(until, end)
            remaining.append(Stage(epoch, jobs, smaller))
    if begin:
        remaining.append(Stage(MOST, jobs, searches=True))
    return remaining


def on_probes(engine: Engine, job: Job, state: TrainState, evaluation: Evaluation) -> Evaluation:
    """Return `evaluation` with the mismatches on the evaluation grids of `job`, whose task has one target step."""
    circuit, wrong, wrong_probes = job.circuit.with_logits(state.logits), 0, 0
    for first in range(0, len(job.probes), WORD):
        grids = job.probes[first : first + WORD]
        # A hard rollout packs WORD grids into the bits of a word; more grids would only take more memory.
        last = _last_state(engine, circuit, grids, job)[..., : job.config.task.loss_channels]
        differs = last != job.targets(grids)
        wrong += int(np.count_nonzero(differs))
        wrong_probes += int(np.count_nonzero(differs.any(axis=(1, 2, 3))))
    return replace(evaluation, hard_loss=wrong, values=job.values, wrong_probes=wrong_probes)


def _last_state(engine: Engine, circuit: Circuit, grids: npt.NDArray[np.uint8], job: Job) -> Floats:
    """Return the last states `[B, H, W, C]` of a hard rollout, computed in parts."""
    state: npt.ArrayLike = grids
    for done in range(0, job.config.task.steps, _steps_at_once(job)):
        count = min(_steps_at_once(job), job.config.task.steps - done)
        masks = None if job.probe_masks is None else job.probe_masks[done : done + count]
        # Hard states are 0 or 1, so rollouts in parts have the same states as a single rollout.
        state = engine.rollout(circuit, state, count, "hard", masks)[-1]
    return np.asarray(state)


def _steps_at_once(job: Job) -> int:
    """Return the maximum number of CA steps in one call of the engine."""
    return min(job.config.task.steps, max(1, STRETCH_BYTES // (4 * job.probes[:WORD].size)))


class Training:
    """Training of one or more models through all stages, on one engine at a time. Lists have one entry per model."""

    def __init__(self, placement: Placement, jobs: Sequence[Job], states: Sequence[TrainState]) -> None:
        """Open the first stage. Raises CheckpointError, or DeviceError if the device lacks memory for a stage."""
        self.epoch = states[0].epoch
        self.engine = placement.engine
        """Engine that currently trains."""
        self._placement, self._epochs = placement, jobs[0].config.train.epochs
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]
        self._race: Race | None = None
        self._stage, *self._later = stages(jobs, self.epoch)
        # A later stage may need more memory, and an error in the middle of the run would be too late.
        for stage in (self._stage, *self._later) if self._stage.smaller else ():
            stage.check_memory(self.engine, placement.max_memory)
        self._open(states)

    @property
    def info(self) -> EngineInfo:
        """Description of the engine that currently trains."""
        return self._model.info

    def ask_race(self) -> Decision | None:
        """Return the engine benchmark's result once, after its end; otherwise None. Call it before each `advance`."""
        # This may switch the engine for the next trial.
        decision = None if self._race is None else self._race.decide(self.epoch, self._epochs, self._switch)
        if decision is not None:
            self._race = None
        return decision

    def advance(self, stop: int) -> int:
        """Train towards epoch `stop` in one call of the model, and return the last trained epoch."""
        if self.epoch == self._stage.until:
            # The old model is closed before the next one is opened, since a device may lack memory for both.
            self._collect()
            states = self._model.states()
            self._model.close()
            self._stage = self._later.pop(0)
            self._open(states)
        if self._race is None:
            # A call is short, so that signals take effect soon, and ends with the stage.
            count = min(min(stop, self._stage.until) - self.epoch, self._model.epochs_per_call())
            self._model.train(count)
            self.epoch += count
        else:
            self._race.time(self._train_one)
        return self.epoch

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """Return the metrics of every epoch since the last call, in order."""
        self._collect()
        metrics, self._waiting = self._waiting, [[] for _ in self._waiting]
        return metrics

    def evaluate(self) -> list[Evaluation]:
        """Evaluate the hard circuits on the complete task in any stage."""
        return self._stage.evaluate(self.engine, self._model)

    def states(self) -> list[TrainState]:
        """Return exact copies of the models' states."""
        return self._model.states()

    def close(self) -> None:
        """Free the memory of the model."""
        self._model.close()

    def _open(self, states: Sequence[TrainState]) -> None:
        """Open the model of this stage, and start the engine benchmark if there is another engine to compare."""
        self._model = self._stage.open(self.engine, states, self._placement.max_memory)
        # Engines are compared only in the stage that trains the complete task by gradients.
        candidate = None if self._stage.smaller or self._stage.searches else self._placement.candidate
        self._race = None if candidate is None else Race(self.engine, self._model.info, candidate, self.epoch)

    def _train_one(self) -> None:
        """Train one epoch of the engine benchmark."""
        # Fetching the metrics waits for the end of the epoch; without this, only queueing would be measured.
        self._model.train(1)
        self._collect()
        self.epoch += 1

    def _collect(self) -> None:
        for waiting, metrics in zip(self._waiting, self._model.fetch_metrics(), strict=True):
            waiting += metrics

    def _switch(self, engine: Engine) -> EngineInfo:
        """Copy the exact states to another engine and use it. If that engine raises an error, keep the current one."""
        self._collect()
        # The memory limit applies to the device of the first engine.
        limit = self._placement.max_memory if engine is self._placement.engine else None
        # The new model is opened before the old model is closed, so that an error changes nothing.
        model = self._stage.open(engine, self._model.states(), limit)
        self._model.close()
        self._model, self.engine = model, engine
        return model.info
