"""Tests of a circuit on samples: those that its run held out, or others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic.config.dataset import Dataset
from difflogic.config.resized import resized
from difflogic.core import prng, rules
from difflogic.core.bits import IGNORED, Bits
from difflogic.core.neighbourhoods import neighbourhoods
from difflogic.core.wiring import NEIGHBOURHOODS
from difflogic.engine import job
from difflogic.errors import DataError
from difflogic.evaluation.measure import Measure, in_words
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.evaluation.rollout import play

AT_ONCE = 64
"""Samples of a rollout."""
TEST = 800


def check(context: EvaluationContext) -> None:
    """Raises DataError where the samples are not for the circuit."""
    if context.samples is None:
        return
    given, wanted, cell = context.samples.x.shape[-1], context.samples.y.shape[-1], context.config.model.channels
    if max(given, wanted) > cell:
        raise DataError(f"The samples have {max(given, wanted)} channels, but a cell of this circuit has {cell}.")


def sample_accuracy(context: EvaluationContext) -> Measure | None:
    """Wrong cells and wrong samples, after all compared steps together."""
    samples = context.samples
    if samples is None:
        return None
    counts = [
        np.count_nonzero(job.differing(part, compared_states(context, part, number * AT_ONCE)), axis=(2, 3, 4))
        for number, part in enumerate(job.in_parts(samples, AT_ONCE))
    ]
    wrong, targets = np.concatenate(counts, axis=1), samples.targets
    # Values that a mask leaves out are in no sum. With one target for three compared steps each value counts three
    # times; with a target for each it is there three times already.
    values = int(np.count_nonzero(targets != IGNORED)) * len(samples.steps) // len(targets)
    total, wrong_samples = int(wrong.sum()), int(np.count_nonzero(wrong.any(axis=0)))
    text = in_words(total, values, len(samples)) + (f"; {wrong_samples} samples are wrong" if total else "")
    steps = (
        ", ".join(map(str, samples.steps)) if len(samples.steps) < 5 else f"{samples.steps[0]} to {samples.steps[-1]}"
    )
    return Measure(
        "samples",
        f"{len(samples)} {context.samples_are}, after step {steps}",
        text,
        {
            "wrong": total,
            "values": values,
            "accuracy": 1 - total / values,
            "samples": len(samples),
            "wrong_samples": wrong_samples,
        },
        curve=[round(float(each), 4) for each in wrong.mean(axis=1)],
    )


def compared_states(context: EvaluationContext, samples: Dataset, number: int) -> Bits:
    """The states `[J, B, H, W, C]` after the compared steps; `number` tells the random numbers of batches apart."""
    # Channels that the samples leave free, and the cells that fire, are drawn anew for each batch: with one key for all
    # of them, sample 64 would begin as sample 0 did.
    start_key, play_key = (prng.fold_in(key, number) for key in context.keys(TEST))
    grids = job.begun(resized(context.config, *samples.x.shape[1:3]), samples, start_key)
    states = play(context.engine, context.trained.circuit, grids, samples.steps[-1], play_key, context.fire_rate)
    return np.stack([state for step, state in enumerate(states) if step in samples.steps])


def seen_neighbourhoods(context: EvaluationContext) -> Measure | None:
    """Each neighbourhood that the samples of the run show, whether it is learned; and whether they show all there are.

    Of one step, in which a cell sees the whole of its neighbours.
    """
    samples, config = context.trained.data(), context.config
    if samples is None or samples.steps[0] != 1 or config.train.asynchronous:
        return None
    channels = samples.x.shape[-1]
    # Free channels that are drawn are a part of what a cell sees, so that the samples never show all that there is.
    if config.task.start == "random" and channels < config.model.channels:
        return None
    starts = job.begun(config, samples, context.keys(TEST)[0])
    kinds = neighbourhoods(samples.x, config.model.periodic, config.model.neighbourhood)
    wanted = samples.y[:, 0].reshape(len(kinds), -1)
    counted = (wanted >= 0).all(axis=1)
    after = np.concatenate(
        [
            context.engine.rollout(context.trained.circuit, starts[part : part + AT_ONCE], 1, "hard")[-1]
            for part in range(0, len(samples), AT_ONCE)
        ]
    ).reshape(len(kinds), -1)[:, : wanted.shape[1]]
    seen = np.unique(kinds[counted])
    # A neighbourhood is learned where no cell that has it is wrong.
    wrong = np.unique(kinds[counted & (after != wanted).any(axis=1)])
    # Of nine cells with one channel there are 2^9 = 512 neighbourhoods, with two channels 2^18.
    total, right = 1 << len(NEIGHBOURHOODS[config.model.neighbourhood]) * channels, len(seen) - len(wrong)
    text = f"{right} of {len(seen)} right; there are {total}"
    # Exact means of the next step of every channel: where samples tell of fewer, what the others do is not known.
    if right == total and wanted.shape[1] == channels:
        text = f"all {total} right, and there are no others: the rule is exact"
    if name := _name(context):
        text += f"; the circuit is {name}"
    values: dict[str, float] = {"right": right, "seen": len(seen), "entries": total}
    return Measure("seen-neighbourhoods", "neighbourhoods that the samples show", text, values)


def _name(context: EvaluationContext) -> str | None:
    """The circuit's rule in the notation of Life, where it has one."""
    if context.config.model.channels > 1:
        return None
    # The middle of 512 boards of 3x3 cells: its neighbours are all of the board, whatever lies beyond the border.
    boards = rules.patches().reshape(-1, 3, 3, 1).astype(np.float32)
    entries: npt.NDArray[np.uint8] = context.engine.rollout(context.trained.circuit, boards, 1, "hard")[
        -1, :, 1, 1, 0
    ].astype(np.uint8)
    return rules.life_like(entries)
