"""The stages of a run, and the training that goes through them.

A run may begin on a smaller grid, with fewer CA steps, and grow to the task's own: what a small grid asks for is
learned sooner, with fewer steps to send gradients back through, and no cell far from the border. It may end with a
search over the hard circuit. States, moments, keys and counters go from stage to stage as they are, and the stage is a
function of the epoch, so that a resumed run goes on as if it had not stopped. Evaluations are always of the task's own
grid and steps.

Example: with growth until epochs 60 and 100, and a search from 400 on, a run of 500 epochs has four stages: epochs 1 to
60 and 61 to 100 on smaller grids, 101 to 400 on the whole, and 401 to 500 of the search. Resumed after epoch 60, it
begins in the second.
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
"""While a grid grows, the whole task's states are tested so many bytes at once, or a step's."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Epochs that are trained alike: on a smaller grid, on the task's own, or by the search."""

    until: int
    """The epoch after which it ends."""
    jobs: Sequence[Job]
    """The task itself, of each run."""
    smaller: Sequence[Job] = ()
    """The same on the smaller grid that this stage trains; empty where it trains the task itself."""
    searches: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether gradients are taken of the task itself: what engines are compared on."""
        return not self.smaller and not self.searches

    def open(self, engine: Engine, states: Sequence[TrainState], max_memory: int | None) -> Model:
        """The model that trains it from these states. Raises DeviceErrors, and CheckpointError."""
        if self.searches:
            return LocalSearchModel(self.jobs, states, engine.info)
        return engine.open(self.smaller or self.jobs, states, max_memory, self._reserved(engine))

    def check_memory(self, engine: Engine, max_memory: int | None) -> None:
        """Raises LimitError where `open` would refuse it. The search takes nothing of the engine."""
        if not self.searches:
            engine.memory(self.smaller or self.jobs, max_memory, self._reserved(engine))

    def evaluate(self, engine: Engine, model: Model) -> list[Evaluation]:
        """Evaluate the task itself; `train_hard_loss` is that of the grid which the stage trains."""
        judged = model.evaluate()
        if not self.smaller:
            return judged
        # The model of a smaller grid has no room for the task's, so its engine rolls the circuit out, in stretches.
        return [on_probes(engine, *each) for each in zip(self.jobs, model.states(), judged, strict=True)]

    def _reserved(self, engine: Engine) -> int:
        """Bytes that a model of a smaller grid leaves its engine to evaluate the whole task."""
        if not self.smaller:
            return 0
        job = self.jobs[0]
        grids = (len(job.probes[:WORD]), *job.probes.shape[1:])
        return engine.rollout_memory(job.circuit, grids, _stretch(job), job.config.train.asynchronous)


def stages(jobs: Sequence[Job], epoch: int) -> list[Stage]:
    """Return what is left of the runs after `epoch`; the last stage has no end of its own."""
    grids, begin, found = jobs[0].config.growth.until, jobs[0].config.search.begin, []
    end = begin or MOST
    for index, until in enumerate((*grids, end)):
        # The search cuts short what would still grow, and what has ended is left out.
        if epoch < min(until, end):
            grows = index < len(grids)
            smaller = [make_job(at_stage(job.config, index), job.circuit) for job in jobs] if grows else []
            epoch = min(until, end)
            found.append(Stage(epoch, jobs, smaller))
    if begin:
        found.append(Stage(MOST, jobs, searches=True))
    return found


def on_probes(engine: Engine, job: Job, state: TrainState, judged: Evaluation) -> Evaluation:
    """An evaluation on the job's own probes, of the same `train_hard_loss`; a grid that grows has one target."""
    circuit, wrong, wrong_probes = job.circuit.with_logits(state.logits), 0, 0
    for first in range(0, len(job.probes), WORD):
        grids = job.probes[first : first + WORD]
        # A hard rollout packs so many grids into the bits of a word, so more at once would only take more memory.
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
        # Hard states are 0 or 1, so a rollout that goes on from one is the same as one that never stopped.
        state = engine.rollout(circuit, state, count, "hard", masks)[-1]
    return np.asarray(state)


def _stretch(job: Job) -> int:
    """CA steps that an engine is asked for at once."""
    return min(job.config.task.steps, max(1, STRETCH_BYTES // (4 * job.probes[:WORD].size)))


class Training:
    """The training of some runs through their stages, by one model at a time. Lists have one entry per run."""

    def __init__(self, placement: Placement, jobs: Sequence[Job], states: Sequence[TrainState]) -> None:
        """Opens the first model. Raises DeviceErrors, also for a later stage that would be refused, CheckpointError."""
        self.epoch = states[0].epoch
        self.engine = placement.engine
        """Where it is trained now."""
        self._placement, self._epochs = placement, jobs[0].config.train.epochs
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]
        self._race: Race | None = None
        self._stage, *self._later = stages(jobs, self.epoch)
        # In the middle of the run it would be too late to say that the whole task does not fit.
        for stage in (self._stage, *self._later) if self._stage.smaller else ():
            stage.check_memory(self.engine, placement.max_memory)
        self._open(states)

    @property
    def info(self) -> EngineInfo:
        """Return what the model of this moment runs on."""
        return self._model.info

    def ask_race(self) -> Decision | None:
        """Asked before each `advance`: hands over to another engine where that is to be tried; told once, what won."""
        # The race may hand the run over in here: the next epoch is then trained by another engine.
        decision = None if self._race is None else self._race.decide(self.epoch, self._epochs, self._switch)
        if decision is not None:
            self._race = None
        return decision

    def advance(self, stop: int) -> int:
        """Train towards epoch `stop`, as far as the model goes at once; returns the epoch that it got to."""
        if self.epoch == self._stage.until:
            self._cross()
        if self._race is None:
            # A call is short enough for a signal to be heard soon, and ends with the stage.
            count = min(min(stop, self._stage.until) - self.epoch, self._model.epochs_per_call())
            self._model.train(count)
            self.epoch += count
        else:
            self._race.time(self._train_one)
        return self.epoch

    def fetch_metrics(self) -> list[list[EpochMetrics]]:
        """The metrics of every epoch since the last call, in order."""
        self._collect()
        metrics, self._waiting = self._waiting, [[] for _ in self._waiting]
        return metrics

    def evaluate(self) -> list[Evaluation]:
        """The hard circuits on the task's own probes, whatever is trained now."""
        return self._stage.evaluate(self.engine, self._model)

    def states(self) -> list[TrainState]:
        """Exact copies of the states."""
        return self._model.states()

    def close(self) -> None:
        """Free what the model holds."""
        self._model.close()

    def _cross(self) -> None:
        """Into the next stage. The old model goes first: a device may not hold both."""
        self._collect()
        states = self._model.states()
        self._model.close()
        self._stage = self._later.pop(0)
        self._open(states)

    def _open(self, states: Sequence[TrainState]) -> None:
        """The model of this stage, and where engines are to be compared, their race."""
        self._model = self._stage.open(self.engine, states, self._placement.max_memory)
        candidate = self._placement.candidate if self._stage.is_whole else None
        self._race = None if candidate is None else Race(self.engine, self._model.info, candidate, self.epoch)

    def _train_one(self) -> None:
        """An epoch, and its metrics, which wait until it is done."""
        # Fetching waits for the epoch. Without it the time would be that of putting work into a device's queue.
        self._model.train(1)
        self._collect()
        self.epoch += 1

    def _collect(self) -> None:
        for waiting, metrics in zip(self._waiting, self._model.fetch_metrics(), strict=True):
            waiting += metrics

    def _switch(self, engine: Engine) -> EngineInfo:
        """The exact states to another engine; where that refuses them, nothing has changed."""
        self._collect()
        # The limit is that of the first engine's device.
        limit = self._placement.max_memory if engine is self._placement.engine else None
        # Both models are open for a moment, which is no harm: they are on different devices, and a refusal leaves the
        # old one.
        model = self._stage.open(engine, self._model.states(), limit)
        self._model.close()
        self._model, self.engine = model, engine
        return model.info
