"""Two engines, one run: its first epochs on one, the next few on the other, the rest on the faster.

The epochs are the run's own, handed over with the exact state, so none is lost. What measuring costs is bounded:
a heat is four epochs, and the challenger gets no more than SHARE of the time that the rest of the run would take
on the first engine, opening included. So measuring takes less than SHARE of a run, unless the challenger's first
epoch alone takes longer; of 500 epochs also where the first engine is more than seven times as slow.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy.typing as npt

from difflogic.engine.api import Engine, EngineInfo, EpochMetrics, Evaluation, Model
from difflogic.engine.batch import Batch, Mode
from difflogic.engine.events import Damage
from difflogic.engine.job import Floats, Job, OptimizerState, TrainState
from difflogic.errors import DeviceError
from difflogic.model.circuit import ArraysByNetwork, Circuit

SHARE = 0.05
"""Of the rest of the run, for the challenger."""
WARM_UP, TIMED = 1, 3
"""Epochs of a heat: the first compiles and fills caches, the median of the others counts."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Challenger:
    """An engine that is opened where it is worth it."""

    name: str
    open: Callable[[], Engine]
    """Raises DeviceError."""
    opening_seconds: Callable[[], float] = lambda: 0.0
    """About how long that takes; asked only where it may matter."""


@dataclass
class Heat:
    """Epochs that were measured on one engine."""

    engine: EngineInfo
    first_epoch: int
    seconds: list[float] = field(default_factory=list)
    """One per epoch, the warm-up included."""

    @property
    def over(self) -> bool:
        return len(self.seconds) >= WARM_UP + TIMED

    @property
    def pace(self) -> float | None:
        """Seconds per epoch; None where none was timed."""
        timed = self.seconds[WARM_UP:]
        return statistics.median(timed) if timed else None

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        last = self.first_epoch + len(self.seconds) - 1
        pace = None if self.pace is None else round(1e3 * self.pace, 3)
        return {"epochs": [self.first_epoch, last], "ms_per_epoch": pace, "engine": asdict(self.engine)}


@dataclass(frozen=True)
class Decision:
    """Where the rest of the run is trained, and why."""

    engine: EngineInfo
    reason: str
    heats: tuple[Heat, ...]

    @property
    def compared(self) -> bool:
        """True where both were timed, so that the answer holds for other runs too."""
        return len(self.heats) == 2 and all(heat.pace is not None for heat in self.heats)


class Contest:
    """Implements `difflogic.engine.api.Engine` by the engine that is chosen, at first the one given."""

    def __init__(
        self,
        first: Engine,
        challenger: Challenger,
        decided: Callable[[Decision], None] = lambda decision: None,
        clock: Clock = time.perf_counter,
    ) -> None:
        """`decided` is told once, when enough was measured."""
        self.first, self.challenger = first, challenger
        self.decided, self.clock = decided, clock
        self.choose(first)

    def choose(self, engine: Engine) -> None:
        """From now on this is that engine."""
        self.chosen, self.info = engine, engine.info

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> ContestModel:
        return ContestModel(self, jobs, states, max_memory)

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        return self.chosen.memory(jobs, max_memory, reserved)

    def rollout_memory(self, circuit: Circuit, grid: tuple[int, ...], steps: int, asynchronous: bool) -> int:
        return self.chosen.rollout_memory(circuit, grid, steps, asynchronous)

    def rollout(
        self,
        circuit: Circuit,
        x: npt.ArrayLike,
        steps: int,
        mode: Mode = "soft",
        masks: npt.ArrayLike | None = None,
        damage: Damage | None = None,
    ) -> Floats:
        return self.chosen.rollout(circuit, x, steps, mode, masks, damage)

    def loss_and_gradients(self, circuit: Circuit, batch: Batch) -> tuple[float, ArraysByNetwork]:
        return self.chosen.loss_and_gradients(circuit, batch)

    def train_step(
        self, circuit: Circuit, state: OptimizerState | None, batch: Batch, lr: float = 0.05
    ) -> tuple[Circuit, OptimizerState, dict[str, Any]]:
        return self.chosen.train_step(circuit, state, batch, lr)


class ContestModel:
    """Implements `difflogic.engine.api.Model`. Between two calls of `train` nothing changes hands."""

    def __init__(
        self, contest: Contest, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None
    ) -> None:
        self.decided: Callable[[Decision], None] = lambda decision: None
        """Told beside the contest's own listener."""
        self._contest, self._jobs, self._max_memory = contest, jobs, max_memory
        self._model = self._opened(contest.first, states)
        self.info = self._model.info
        self._epoch = states[0].epoch
        self._heats = [Heat(self.info, self._epoch + 1)]
        self._running = True
        self._spent = self._budget = 0.0
        self._waiting: list[list[EpochMetrics]] = [[] for _ in jobs]

    def train(self, epochs: int) -> None:
        if self._running and self._heat_is_over():
            self._go_on()
        if not self._running:
            self._model.train(epochs)
            self._epoch += epochs
            return
        for _ in range(epochs):
            self._measure()

    def drain(self) -> list[list[EpochMetrics]]:
        self._collect()
        drained, self._waiting = self._waiting, [[] for _ in self._jobs]
        return drained

    def evaluate(self) -> list[Evaluation]:
        return self._model.evaluate()

    def states(self) -> list[TrainState]:
        return self._model.states()

    def epochs_per_call(self) -> int:
        return 1 if self._running else self._model.epochs_per_call()

    def close(self) -> None:
        self._model.close()

    def _measure(self) -> None:
        start = self._contest.clock()
        self._model.train(1)
        self._collect()  # waits until the epoch is done
        seconds = self._contest.clock() - start
        self._epoch += 1
        self._spent += seconds
        self._heats[-1].seconds.append(seconds)

    def _collect(self) -> None:
        for waiting, drained in zip(self._waiting, self._model.drain(), strict=True):
            waiting += drained

    def _heat_is_over(self) -> bool:
        """The challenger's also where one more epoch like its last would be beyond the budget."""
        heat = self._heats[-1]
        return heat.over or (len(self._heats) == 2 and self._spent + sum(heat.seconds[-1:]) > self._budget)

    def _go_on(self) -> None:
        """After the first heat to the challenger, where it is worth it; after the second to the winner."""
        if len(self._heats) == 2:
            self._judge()
            return
        challenger, pace = self._contest.challenger, _known(self._heats[0])
        rest = (self._jobs[0].config.train.epochs - self._epoch) * pace
        self._budget = SHARE * rest
        if self._budget < pace or self._budget < challenger.opening_seconds():
            self._decide(f"did not try {challenger.name}: the rest of the run takes only some {rest:.1f} s")
            return
        start = self._contest.clock()
        try:
            self._hand_over(challenger.open())
        except DeviceError as error:
            self._decide(f"could not try {challenger.name}: {error}")
            return
        self._spent = self._contest.clock() - start
        self._heats.append(Heat(self.info, self._epoch + 1))

    def _judge(self) -> None:
        """Both heats are over."""
        first, second = _known(self._heats[0]), self._heats[1].pace
        one, other = (heat.engine.engine for heat in self._heats)
        if second is None or second >= first:
            self._hand_over(self._contest.first)
        if second is None:
            self._decide(f"gave {other} up: trying it took more than {100 * SHARE:.0f} % of the run on {one}")
        else:
            self._decide(f"measured {1e3 * first:.3g} ms per epoch on {one}, {1e3 * second:.3g} ms on {other}")

    def _opened(self, engine: Engine, states: Sequence[TrainState]) -> Model:
        """The limit is that of the first engine's device."""
        return engine.open(self._jobs, states, self._max_memory if engine is self._contest.first else None)

    def _hand_over(self, engine: Engine) -> None:
        """The exact states to another engine. Where it refuses them, nothing has changed."""
        states = self._model.states()
        model = self._opened(engine, states)
        self._model.close()
        self._model, self.info = model, model.info
        self._contest.choose(engine)

    def _decide(self, reason: str) -> None:
        self._running = False
        decision = Decision(self.info, f"auto {reason}", tuple(self._heats))
        self._contest.decided(decision)
        self.decided(decision)


def _known(heat: Heat) -> float:
    assert heat.pace is not None
    return heat.pace
