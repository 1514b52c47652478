"""Success test: whether a circuit is also right beyond the evaluation grids by which it is chosen.

A checkerboard must be right after T steps and after 4T, and after 4T on grids of twice its sides and of 64x64. An
asynchronous checkerboard must be nearly right on its own grid and on grids of twice and four times the side, whichever
cells fire, and no cell may stay wrong. A rule must be right on all its boards, samples on all held-out and training
samples, an image in every pixel. A circuit is chosen by its evaluation grids and their rotated, mirrored and joined
copies (`chosen`), and is then tested on fresh initial states (`measure`). For a checkerboard, a proof for all initial
states by three-valued simulation replaces both.
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
"""Number of held-out initial states of the success test, on which no choice of a circuit depends."""
FRESH_STREAM, MASK_STREAM = 0x66726573, 0x66726D73
"""`fold_in` data of the fresh initial states ("fres") and of their fire masks ("frms")."""
TIMES = 4
"""Multiple of the CA steps of training after which a board must still be right."""
LARGE = 64
"""Side of the largest grid on which a board must be right."""
SCALES = (1, 2, 4)
"""Factors of the sides of the grids on which an asynchronous board must be right."""
MASK_SEEDS = 3
"""Number of sampled sequences of fire masks in a test."""
MOST_WRONG = 0.01
"""Maximum share of wrong cells of an asynchronous board, in which some cells always wait for an update. No cell may be
wrong for T steps in a row, since otherwise wrong cells along the border of a large grid would pass as a small share."""
PROMISING = 0.9
"""Minimum accuracy at which an asynchronous board is tested further."""
SEARCH_SECONDS = 2.0
"""Maximum time of the search for a wrong initial state, in seconds."""
CELLS_AT_ONCE = 1 << 15
"""Maximum number of cells in one rollout, since all of its states are stored."""


class SuccessTest:
    """Success test for circuits of one configuration; `engine` runs the rollouts, which are exact on every engine."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self._engine, self._config = engine, config

    def passed(self, member: Replica, evaluation: Evaluation) -> bool:
        """Return whether a model with this evaluation passes: it is chosen, and right on fresh initial states."""
        circuit, asynchronous = member.circuit, self._config.train.asynchronous and self._config.task.is_fixed
        is_promising = evaluation.accuracy > PROMISING if asynchronous else not evaluation.hard_loss
        if not is_promising:
            return False
        # A proof for all initial states replaces rollouts from some initial states.
        if self.is_proved(circuit):
            return True
        right = self.chosen(circuit, member.job.probes) and self.is_right(self.measure(circuit, evaluation))
        right = right and not self.misses_samples(circuit, member.job)
        # This test is last, since it takes seconds. It finds circuits that fail for one initial state in a thousand.
        return right and not self.has_wrong_start(circuit)

    @property
    def _is_board(self) -> bool:
        """True for a synchronous checkerboard, of which three-valued simulation can test all initial states."""
        task = self._config.task
        return task.target == "checkerboard" and task.start == "random" and not self._config.train.asynchronous

    @property
    def _larger(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the larger grids on which a board must be right."""
        return (2 * self._config.task.height, 2 * self._config.task.width), (LARGE, LARGE)

    def is_proved(self, circuit: Circuit) -> bool:
        """Return whether a board is proved to be right in time for all initial states, on its own and larger grids."""
        if not self._is_board:
            return False
        config = self._config
        netlist, steps = lean(CellNetlist.of_run(circuit, config)), config.task.steps
        larger = [(replace(config.task, height=height, width=width), TIMES * steps) for height, width in self._larger]
        for task, time in ((config.task, steps), *larger):
            proof = prove_every_start(netlist, job.fixed_target(task), time, seconds=None)
            if not proof.proved or proof.from_step is None or proof.from_step > time:
                return False
        return True

    def has_wrong_start(self, circuit: Circuit) -> bool:
        """Return whether random grids or SAT solving find an initial state with a wrong board on its own grid."""
        if not self._is_board:
            return False
        config, netlist = self._config, lean(CellNetlist.of_run(circuit, self._config))
        target, steps = job.fixed_target(config.task), config.task.steps
        return find_wrong_start(netlist, target, steps, SEARCH_SECONDS).proved is False

    def misses_samples(self, circuit: Circuit, task: job.Job) -> bool:
        """Return whether a training sample is wrong, since rare cases may be missing among the held-out samples."""
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

    def chosen(self, circuit: Circuit, probes: Bits) -> bool:
        """Return whether a circuit is a candidate, by its evaluation grids `probes` and their variants only."""
        config = self._config
        if not config.task.is_fixed:
            return True
        if config.train.asynchronous:
            # The masks differ from those of `measure`, since the final test must not influence the choice.
            key = prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM + 1)
            height, width = probes.shape[1:3]
            starts = [tiled(probes, times * height, times * width) for times in SCALES]
            measured = self._asynchronous(circuit, starts, key)
            return self.is_right(measured) and not any(measured["wrong_shares"][0])
        if config.task.start != "random":
            return True
        views = turned(probes)
        return self.is_right(self._board(circuit, views, [tiled(views, *size) for size in self._larger]))

    def measure(self, circuit: Circuit, evaluation: Evaluation) -> dict[str, Any]:
        """Return mismatches by kind: on fresh random initial states, or on evaluation grids for other states."""
        config = self._config
        if config.task.start != "random" or not config.task.is_fixed:
            return {"wrong": evaluation.hard_loss}
        height, width = config.task.height, config.task.width
        if config.train.asynchronous:
            # Each size has the same number of cells, so there are fewer initial states on large grids.
            fresh = [self._draw(times * height, times * width, STARTS // times**2) for times in SCALES]
            return self._asynchronous(circuit, fresh, prng.fold_in(prng.key_from_seed(config.seed), MASK_STREAM))
        return self._board(circuit, self._draw(height, width), [self._draw(*size) for size in self._larger])

    def is_right(self, measured: dict[str, Any]) -> bool:
        """Return whether the result of `measure` passes the success test."""
        if "wrong_shares" in measured:
            shares = np.median(measured["wrong_shares"], axis=1)
            return bool((shares <= MOST_WRONG).all()) and not measured["stay_wrong"]
        return not any(measured.values())

    def wrong(
        self, circuit: Circuit, starts: Bits, steps: int, masks: npt.NDArray[Any] | None = None
    ) -> tuple[int, int]:
        """Return the number of mismatches after `steps` from `starts [B, H, W, C]`, and the number that last.

        A mismatch lasts if it occurs after each of the last T steps, or after all steps if there are fewer.
        """
        own = self._config.task
        target, total, stay = job.fixed_target(replace(own, height=starts.shape[1], width=starts.shape[2])), 0, 0
        # A rollout stores all its states, so large batches and long rollouts are divided into parts.
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
        """Return the mismatches of a board after T and 4T steps, and on larger grids after 4T."""
        steps = self._config.task.steps
        return {
            "wrong": self.wrong(circuit, starts, steps)[0],
            "wrong_later": self.wrong(circuit, starts, TIMES * steps)[0],
            "wrong_large": sum(self.wrong(circuit, grids, TIMES * steps)[0] for grids in large),
        }

    def _asynchronous(self, circuit: Circuit, starts: Sequence[Bits], key: prng.Key) -> dict[str, Any]:
        """Return shares of wrong cells and the number of lasting mismatches, up to the first scale that fails."""
        measured: dict[str, Any] = {"wrong_shares": [], "stay_wrong": 0}
        for times, x in zip(SCALES, starts, strict=True):
            # A signal from the border crosses at most one cell per step: four times the side needs 4T steps, doubled
            # since not every cell fires in a step.
            height, width, steps = *x.shape[1:3], max(TIMES, 2 * times) * self._config.task.steps
            shares = []
            for sub in prng.split(key, MASK_SEEDS):
                masks = draw_masks(sub, steps, (height, width, 1), self._config.train.fire_rate)[1]
                count, stay = self.wrong(circuit, x, steps, masks)
                shares.append(count / (len(x) * height * width))
                measured["stay_wrong"] += stay
            measured["wrong_shares"].append(shares)
            if not self.is_right(measured):
                break
        return measured

    def _draw(self, height: int, width: int, count: int = 0) -> Bits:
        """Return random initial states from a stream that neither training nor evaluations use."""
        # The height is folded in, so that large grids do not begin with the values of small grids.
        key = prng.fold_in(prng.fold_in(prng.key_from_seed(self._config.seed), FRESH_STREAM), height)
        shape = (count or STARTS, height, width, self._config.model.channels)
        return prng.randint_power_of_two(key, shape, 2).astype(np.uint8)


def on_other_grids(config: Config, netlist: CellNetlist) -> dict[str, bool | None]:
    """Map sizes with 2 and 4 times the sides (boards: also one wider) to whether a circuit is right; None: undecided.

    Omits grids above 64x64. Empty if the task has only one size, or if cells fire at random from one initial state.
    """
    task = config.task
    if not knows_larger_grids(task) or (config.train.asynchronous and not job.is_of_every_start(config)):
        return {}
    # A board repeats every four cells from the top left. A circuit that grows it from another corner is only right if
    # the sides are multiples of four, so one further size is tested. A line has one row on every grid.
    sizes = [(times * task.height if task.height > 1 else 1, times * task.width) for times in SCALES[1:]]
    if task.target == "checkerboard":
        sizes.append((task.height + (task.height > 1), task.width + 2))
    fitting = [(height, width) for height, width in sizes if height * width <= LARGE**2]
    return {f"{width}x{height}": _is_right_on(config, netlist, height, width) for height, width in fitting}


def _is_right_on(config: Config, netlist: CellNetlist, height: int, width: int) -> bool | None:
    """Return whether the circuit is correct on a grid of this size, or None if undecided."""
    config = resized(config, height, width)
    target, start = job.fixed_target(config.task), job.start(config)
    if start is None:
        return prove_every_start(netlist, target, 0, None, synchronous=False).proved
    *_, [last] = netlist.steps(start[None], config.task.steps)
    return np.array_equal(last[..., : target.shape[-1]], target)


def turned(probes: Bits) -> Bits:
    """Return the grids and their rotated and mirrored copies of the same shape."""
    # A circuit for a board must also work on rotated and mirrored initial states.
    turns = [np.rot90(probes, count, axes=(1, 2)) for count in range(4)]
    views = [*turns, *(np.flip(turn, axis=2) for turn in turns)]
    return np.concatenate([view for view in views if view.shape == probes.shape])


def tiled(probes: Bits, high: int, wide: int) -> Bits:
    """Join grids side by side into larger grids of `high` x `wide` cells, and drop grids that are left over.

    If there are too few grids to fill one larger grid, grids are repeated. No larger grid is smaller than a grid.
    """
    height, width = probes.shape[1:3]
    down, across = max(1, high // height), max(1, wide // width)
    count = max(1, len(probes) // (down * across))
    # Example: sixteen initial states of 16x16 cells become one of 64x64 cells.
    boards = np.resize(probes, (count, down, across, *probes.shape[1:]))
    return boards.swapaxes(2, 3).reshape(len(boards), down * height, across * width, -1)
