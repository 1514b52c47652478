"""A circuit counts as a success if it is right beyond the probes that it was chosen by.

A board must be right after T steps and after 4T, and after 4T on grids of twice its sides and of 64x64; asynchronous,
nearly all of it on its own grid and on grids of twice and four times the side, whichever cells fire, and no cell may
stay wrong; a rule on all its boards, samples on all that are held out and all that were learned from, a picture in
every pixel. It is chosen by the task's probes alone (`chosen`), as they are, turned, mirrored and side by side, and
tested on fresh starts that nothing was chosen by (`measure`). Where three-valued simulation proves a board for every
start, both are known without a single rollout.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.convert import lean
from difflogic.circuits.synthesis.every_start import find_wrong_start, prove_every_start
from difflogic.config.resized import knows_larger_grids, resized
from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.core.bits import Bits
from difflogic.engine import job
from difflogic.engine.api import Engine, Evaluation
from difflogic.engine.events import draw_masks
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.train.replica import Replica

STARTS = 64
"""Fresh starts that decide; nothing is chosen by them."""
FRESH_STREAM, MASK_STREAM = 0x66726573, 0x66726D73
"""`fold_in` data of the fresh starts ("fres") and of the masks that they are run with ("frms")."""
TIMES = 4
"""A board must still be right after so many times the CA steps of training..."""
LARGE = 64
"""...and on grids of twice its sides and of so many cells a side..."""
SCALES = (1, 2, 4)
"""...or asynchronous on its own grid and on those of so many times its sides."""
MASK_SEEDS = 3
MOST_WRONG = 0.01
"""Share of cells that an asynchronous board may have wrong: at no moment have all of them just been updated. That
excuses no cell that is wrong for T steps on end. What is wrong along the border is a smaller share of a larger grid,
so that a share alone would let it pass if only the grid is large enough."""
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
        right = right and not self.misses_samples(circuit, member.job)
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

    @property
    def _larger(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the larger grids that a board must be right on."""
        return (2 * self._config.task.height, 2 * self._config.task.width), (LARGE, LARGE)

    def is_proved(self, circuit: Circuit) -> bool:
        """Return whether every start of a board is proved to be right in time, on its own grid and on larger ones."""
        if not self._is_board:
            return False
        config = self._config
        netlist, steps = lean(CellNetlist.of_run(circuit, config)), config.task.steps
        larger = [(replace(config.task, height=height, width=width), TIMES * steps) for height, width in self._larger]
        for task, time in ((config.task, steps), *larger):
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

    def misses_samples(self, circuit: Circuit, task: job.Job) -> bool:
        """Return whether a sample that was learned from is wrong: what is rare may happen to be in none held out."""
        samples = task.data
        if samples is None:
            return False
        key = prng.fold_in(prng.key_from_seed(self._config.seed), FRESH_STREAM)
        count = max(1, CELLS_AT_ONCE // math.prod(samples.x.shape[1:3]))
        for some in job.in_parts(samples, count):
            starts = job.begun(self._config, some, key).astype(np.float32)
            states = self._engine.rollout(circuit, starts, self._config.task.steps, "hard", task.probe_masks)
            if job.differing(some, states[list(self._config.task.judged_steps)]).any():
                return True
        return False

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
            height, width = probes.shape[1:3]
            starts = [tiled(probes, times * height, times * width) for times in SCALES]
            found = self._asynchronous(circuit, starts, key)
            return self.is_right(found) and not any(found["wrong_shares"][0])
        if config.task.start != "random":
            return True
        views = turned(probes)
        return self.is_right(self._board(circuit, views, [tiled(views, *size) for size in self._larger]))

    def measure(self, circuit: Circuit, evaluation: Evaluation) -> dict[str, Any]:
        """Wrong values on fresh starts; of a rule or of samples, or where no start is drawn, those on the probes."""
        config = self._config
        if config.task.start != "random" or not config.task.is_fixed:
            return {"wrong": evaluation.hard_loss}
        height, width = config.task.height, config.task.width
        if config.train.asynchronous:
            # As many cells of each size: a large grid has room for many starts side by side.
            fresh = [self._draw(times * height, times * width, STARTS // times**2) for times in SCALES]
            return self._asynchronous(circuit, fresh, prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM))
        return self._board(circuit, self._draw(height, width), [self._draw(*size) for size in self._larger])

    def is_right(self, measured: dict[str, Any]) -> bool:
        """Return what success means, on fresh starts or on the probes."""
        if "wrong_shares" in measured:
            shares = np.median(measured["wrong_shares"], axis=1)
            return bool((shares <= MOST_WRONG).all()) and not measured["stay_wrong"]
        return not any(measured.values())

    def wrong(
        self, circuit: Circuit, starts: Bits, steps: int, masks: npt.NDArray[Any] | None = None
    ) -> tuple[int, int]:
        """Values of the loss channels that are wrong after `steps`, from `starts [B, H, W, C]`.

        And how many of them were wrong after each of the last T steps, or of all if they are fewer.
        """
        own = self._config.task
        target, total, stay = job.fixed_target(replace(own, height=starts.shape[1], width=starts.shape[2])), 0, 0
        # A rollout keeps all its states, so a large batch goes in parts and a long rollout in stretches.
        count = max(1, CELLS_AT_ONCE // (starts.shape[1] * starts.shape[2]))
        for first in range(0, len(starts), count):
            states: npt.NDArray[Any] = starts[None, first : first + count].astype(np.float32)
            for begin in range(0, steps, own.steps):
                part = None if masks is None else masks[begin : begin + own.steps]
                states = self._engine.rollout(circuit, states[-1], min(own.steps, steps - begin), "hard", part)
            different = states[..., : own.loss_channels] != target
            total, stay = total + int(different[-1].sum()), stay + int(different.all(axis=0).sum())
        return total, stay

    def _board(self, circuit: Circuit, starts: Bits, large: Sequence[Bits]) -> dict[str, int]:
        """Test a board at T and 4T steps, and on large grids at 4T."""
        steps = self._config.task.steps
        return {
            "wrong": self.wrong(circuit, starts, steps)[0],
            "wrong_later": self.wrong(circuit, starts, TIMES * steps)[0],
            "wrong_large": sum(self.wrong(circuit, each, TIMES * steps)[0] for each in large),
        }

    def _asynchronous(self, circuit: Circuit, starts: Sequence[Bits], key: prng.Key) -> dict[str, Any]:
        """Shares of wrong cells of each scale, with three sequences of masks, and how many cells stay wrong.

        Scales behind one that is not right are left out.
        """
        found: dict[str, Any] = {"wrong_shares": [], "stay_wrong": 0}
        for times, x in zip(SCALES, starts, strict=True):
            # What is known at the border crosses a cell a step: four times the side needs T steps four times over, and
            # then the same again, since not every cell fires in a step.
            height, width, steps = *x.shape[1:3], max(TIMES, 2 * times) * self._config.task.steps
            shares = []
            for sub in prng.split(key, MASK_SEEDS):
                masks = draw_masks(sub, steps, (height, width, 1), self._config.train.fire_rate)[1]
                count, stay = self.wrong(circuit, x, steps, masks)
                shares.append(count / (len(x) * height * width))
                found["stay_wrong"] += stay
            found["wrong_shares"].append(shares)
            if not self.is_right(found):
                break
        return found

    def _draw(self, height: int, width: int, count: int = 0) -> Bits:
        """Fresh random starts, of a stream that neither training nor the probes see."""
        # The side is folded in too, so that a large grid is no continuation of a small one.
        key = prng.fold_in(prng.fold_in(prng.key_from_seed(self._config.seed), FRESH_STREAM), height)
        shape = (count or STARTS, height, width, self._config.model.channels)
        return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def on_other_grids(config: Config, netlist: CellNetlist) -> dict[str, bool | None]:
    """Whether it is right on grids of twice and four times the sides, and of a board on an odd one; None: not proved.

    Empty where the task says nothing of others, or has one start and cells that fire at random.
    """
    task = config.task
    if not knows_larger_grids(task) or (config.train.asynchronous and not job.is_of_every_start(config)):
        return {}
    # A board is a pattern of four cells from the top left: what grows it from another corner is right where the sides
    # are multiples of four alone. A line has one row on every grid.
    sizes = [(times * task.height if task.height > 1 else 1, times * task.width) for times in SCALES[1:]]
    if task.target == "checkerboard":
        sizes.append((task.height + (task.height > 1), task.width + 2))
    fitting = [(height, width) for height, width in sizes if height * width <= LARGE**2]
    return {f"{width}x{height}": _is_right_on(config, netlist, height, width) for height, width in fitting}


def _is_right_on(config: Config, netlist: CellNetlist, height: int, width: int) -> bool | None:
    """Return whether it shows what the task says of such a grid; None where neither is proved."""
    here = resized(config, height, width)
    target = job.fixed_target(here.task)
    start = job.start(here)
    if start is None:
        return prove_every_start(netlist, target, 0, None, synchronous=False).proved
    *_, [last] = netlist.steps(start[None], here.task.steps)
    return np.array_equal(last[..., : target.shape[-1]], target)


def turned(probes: Bits) -> Bits:
    """Probes as they are, turned and mirrored: up to eight times as many starts, each as random as the probes."""
    # A board has no up or down, so a turned start must work as well: eight starts for the price of one.
    turns = [np.rot90(probes, count, axes=(1, 2)) for count in range(4)]
    views = [*turns, *(np.flip(turn, axis=2) for turn in turns)]
    return np.concatenate([view for view in views if view.shape == probes.shape])


def tiled(probes: Bits, high: int, wide: int) -> Bits:
    """The probes side by side, as few grids of `high` x `wide`; what is left over is not used.

    Too few for one grid are repeated, and a grid is never smaller than a probe.
    """
    height, width = probes.shape[1:3]
    down, across = max(1, high // height), max(1, wide // width)
    count = max(1, len(probes) // (down * across))
    # Sixteen starts of 16x16 side by side are one of 64x64 that no run was trained on.
    boards = np.resize(probes, (count, down, across, *probes.shape[1:]))
    return boards.swapaxes(2, 3).reshape(len(boards), down * height, across * width, -1)
