"""A circuit counts as a success if it is right beyond the probes that it was chosen by.

A board must be right after T steps and after 4T, and on a grid of 64x64 after 4T; asynchronous, nearly all of it after
4T steps, whichever cells fire; a rule on all its boards, samples on all that are held out, a picture in every pixel. It
is chosen by the task's probes alone (`chosen`), as they are, turned, mirrored and side by side, and tested on fresh
starts that nothing was chosen by (`measure`). Where three-valued simulation proves a board for every start, both are
known without a single rollout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.convert import lean
from difflogic.circuits.synthesis.every_start import find_wrong_start, prove_every_start
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.engine import job
from difflogic.engine.api import Engine, Evaluation
from difflogic.engine.shape import Shape
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.reference.kernels.fire_mask import draw_masks
from difflogic.train.replica import Replica

STARTS = 64
"""Fresh starts that decide; nothing is chosen by them."""
FRESH_STREAM, MASK_STREAM = 0x66726573, 0x66726D73
"""`fold_in` data of the fresh starts ("fres") and of the masks that they are run with ("frms")."""
TIMES = 4
"""A board must still be right after so many times the CA steps of training..."""
LARGE = 64
"""...and on a grid of so many cells a side."""
MASK_SEEDS = 3
MOST_WRONG = 0.01
"""Share of cells that an asynchronous board may have wrong: at no moment have all of them just been updated."""
PROMISING = 0.9
"""An asynchronous board is looked at further from this accuracy on."""
SEARCH_SECONDS = 2.0
"""So long a start is searched for that is wrong: a circuit that none is found of is then tested by rollouts."""
CELLS_AT_ONCE = 1 << 15
"""In one rollout: its states are all kept."""


class SuccessTest:
    """Tests circuits of one configuration; `engine` rolls out, exactly on every engine."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self._engine, self._config = engine, config

    def passed(self, member: Replica, evaluation: Evaluation) -> bool:
        """Return whether a model that was just evaluated on its probes is chosen, and right on what chose nothing."""
        circuit = member.circuit
        if not self.is_promising(evaluation):
            return False
        # A proof for every start says more than rollouts from some of them, so nothing is left to measure.
        if self.is_proved(circuit):
            return True
        right = self.chosen(circuit, member.job.probes, evaluation) and self.is_right(self.measure(circuit, evaluation))
        # Last, since it takes seconds: one start in a thousand that is wrong is a wrong circuit all the same.
        return right and not self.has_wrong_start(circuit)

    def is_promising(self, evaluation: Evaluation) -> bool:
        """Return whether the probes leave a hope that is worth a closer look."""
        asynchronous = self._config.train.asynchronous and self._config.task.is_fixed
        return evaluation.accuracy > PROMISING if asynchronous else not evaluation.hard_loss

    @property
    def _is_board(self) -> bool:
        """Return whether all starts can be thought of at once."""
        task = self._config.task
        return task.target == "checkerboard" and task.start == "random" and not self._config.train.asynchronous

    def is_proved(self, circuit: Circuit) -> bool:
        """Return whether every start of a board is proved to be right in time, on its own grid and on the large one."""
        if not self._is_board:
            return False
        config = self._config
        netlist, steps = CellNetlist.of_run(circuit, config), config.task.steps
        large = replace(config.task, height=LARGE, width=LARGE)
        for task, time in ((config.task, steps), (large, TIMES * steps)):
            found = prove_every_start(netlist, job.fixed_target(task), time, seconds=None)
            if not found.proved or found.from_step is None or found.from_step > time:
                return False
        return True

    def has_wrong_start(self, circuit: Circuit) -> bool:
        """Return whether a start of a board is found to be wrong on its own grid: by many random ones, then by SAT."""
        if not self._is_board:
            return False
        config, netlist = self._config, lean(CellNetlist.of_run(circuit, self._config))
        target, steps = job.fixed_target(config.task), config.task.steps
        return find_wrong_start(netlist, target, steps, SEARCH_SECONDS).proved is False

    def chosen(self, circuit: Circuit, probes: Bits, evaluation: Evaluation) -> bool:
        """Return whether to stop here, by the probes alone."""
        config = self._config
        if not self.is_promising(evaluation):
            return False
        if not config.task.is_fixed:
            return True
        if config.train.asynchronous:
            # Other masks than those of the verdict: nothing is chosen by what decides.
            key = prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM + 1)
            return not any(self._asynchronous(circuit, probes, key)["wrong_shares"])
        if config.task.start != "random":
            return True
        views = turned(probes)
        return self.is_right(self._board(circuit, views, tiled(views, LARGE)))

    def measure(self, circuit: Circuit, evaluation: Evaluation) -> dict[str, Any]:
        """Wrong values on fresh starts; of a rule or of samples, or where no start is drawn, those on the probes."""
        config = self._config
        if config.task.start != "random" or not config.task.is_fixed:
            return {"wrong": evaluation.hard_loss}
        starts = self._draw(config.task.height, config.task.width)
        if config.train.asynchronous:
            return self._asynchronous(circuit, starts, prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM))
        return self._board(circuit, starts, self._draw(LARGE, LARGE))

    def is_right(self, measured: dict[str, Any]) -> bool:
        """Return what success means, on fresh starts or on the probes."""
        if "wrong_shares" in measured:
            return float(np.median(measured["wrong_shares"])) <= MOST_WRONG
        return not any(measured.values())

    def wrong(self, circuit: Circuit, starts: Bits, steps: int, masks: npt.NDArray[Any] | None = None) -> int:
        """Values of the loss channels that are wrong after `steps`, from `starts [B, H, W, C]`."""
        own = self._config.task
        target, total = job.fixed_target(replace(own, height=starts.shape[1], width=starts.shape[2])), 0
        # A rollout keeps all its states, so a large batch goes in parts and a long rollout in stretches.
        count = CELLS_AT_ONCE // (starts.shape[1] * starts.shape[2])
        for first in range(0, len(starts), count):
            x: npt.ArrayLike = starts[first : first + count].astype(np.float32)
            for begin in range(0, steps, own.steps):
                part = None if masks is None else masks[begin : begin + own.steps]
                x = self._engine.rollout(circuit, x, min(own.steps, steps - begin), "hard", part)[-1]
            total += int((np.asarray(x)[..., : own.loss_channels] != target).sum())
        return total

    def _board(self, circuit: Circuit, starts: Bits, large: Bits) -> dict[str, int]:
        """Test a board at T and 4T steps, and on large grids at 4T."""
        steps = self._config.task.steps
        return {
            "wrong": self.wrong(circuit, starts, steps),
            "wrong_later": self.wrong(circuit, starts, TIMES * steps),
            "wrong_large": self.wrong(circuit, large, TIMES * steps),
        }

    def _asynchronous(self, circuit: Circuit, starts: Bits, key: prng.Key) -> dict[str, Any]:
        """Shares of wrong cells at 4T, with three sequences of masks."""
        task, steps = self._config.task, TIMES * self._config.task.steps
        shape, shares = Shape(1, task.height, task.width, 1, steps), []
        for sub in prng.split(key, MASK_SEEDS):
            masks = draw_masks(shape, self._config.train.fire_rate, sub)
            count = self.wrong(circuit, starts, steps, masks.reshape(steps, task.height, task.width, 1))
            shares.append(count / (len(starts) * task.height * task.width))
        return {"wrong_shares": shares}

    def _draw(self, height: int, width: int) -> Bits:
        """Fresh random starts, of a stream that neither training nor the probes see."""
        # The side is folded in too, so that a large grid is no continuation of a small one.
        key = prng.fold_in(prng.fold_in(prng.key_from_seed(self._config.seed), FRESH_STREAM), height)
        return prng.randint_power_of_two(key, (STARTS, height, width, self._config.model.channels), 2).astype(np.uint8)


def certainty(config: Config, circuit: Circuit) -> str:
    """A line of the summary: what three-valued simulation proves of all starts of a board; empty where nothing."""
    task = config.task
    # Knowledge spreads by a cell a step, so that a large grid would hold up the end of its training for minutes.
    if not job.is_of_every_start(config) or config.train.asynchronous or task.height * task.width > LARGE**2:
        return ""
    found = prove_every_start(CellNetlist.of_run(circuit, config), job.fixed_target(task), task.steps, seconds=None)
    if not found.proved or found.from_step is None:
        return ""
    late = f", later than step {task.steps}" if found.from_step > task.steps else ""
    return f"Every start:     shows the target from step {found.from_step} on{late}, which is proved\n"


def turned(probes: Bits) -> Bits:
    """Square probes as they are, turned and mirrored: eight times as many starts, each as random as the probes."""
    turns = [np.rot90(probes, count, axes=(1, 2)) for count in range(4)]
    # A board has no up or down, so a turned start must work as well: eight starts for the price of one.
    return np.concatenate([*turns, *(turn.swapaxes(1, 2) for turn in turns)])


def tiled(probes: Bits, side: int) -> Bits:
    """The probes side by side, as few grids of `side` x `side`; what is left over is not used."""
    height, width = probes.shape[1:3]
    down, across = side // height, side // width
    # Sixteen starts of 16x16 side by side are one of 64x64 that no run was trained on.
    boards = probes[: len(probes) // (down * across) * down * across].reshape(-1, down, across, *probes.shape[1:])
    return boards.swapaxes(2, 3).reshape(len(boards), down * height, across * width, -1)
