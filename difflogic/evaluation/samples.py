"""Test a circuit on samples: held-out samples of its run, other stored samples, or new ones of a task in Python."""

import numpy as np

from difflogic.config import registered
from difflogic.config.dataset import Dataset
from difflogic.config.own_task import FRESH, OwnTask
from difflogic.config.resized import resized
from difflogic.core import prng, rules
from difflogic.core.bits import IGNORED, Bits
from difflogic.core.neighbourhoods import neighbourhoods
from difflogic.core.wiring import NEIGHBOURHOODS
from difflogic.engine import job
from difflogic.errors import ConfigError, DataError, UsageError
from difflogic.evaluation.measure import Measure, in_words
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.evaluation.rollout import play
from difflogic.system.words import counted

AT_ONCE = 64
"""Maximum number of samples per rollout."""
TEST = 800


def check(context: EvaluationContext) -> None:
    """Raise DataError if samples have too many channels, or ConfigError or UsageError if settings are unknown."""
    if context.settings:
        _task(context)
    if context.samples is None:
        return
    inputs, outputs, cell = context.samples.x.shape[-1], context.samples.y.shape[-1], context.config.model.channels
    if max(inputs, outputs) > cell:
        raise DataError(f"Expected samples of at most {cell} channels for this circuit, got {max(inputs, outputs)}.")


def sample_accuracy(context: EvaluationContext) -> Measure | None:
    """Count mismatches and samples with mismatches over all compared steps."""
    samples = context.samples
    if samples is None:
        return None
    wrong_cells = [
        np.count_nonzero(job.differing(part, compared_states(context, part, number * AT_ONCE)), axis=(2, 3, 4))
        for number, part in enumerate(job.in_parts(samples, AT_ONCE))
    ]
    wrong, targets = np.concatenate(wrong_cells, axis=1), samples.targets
    # Masked values do not count. With one target for three compared steps, each value counts three times.
    values = int(np.count_nonzero(targets != IGNORED)) * len(samples.steps) // len(targets)
    total, wrong_samples = int(wrong.sum()), int(np.count_nonzero(wrong.any(axis=0)))
    text = in_words(total, values, len(samples)) + (f"; wrong in {counted(wrong_samples, 'sample')}" if total else "")
    numbers = {"wrong": total, "values": values, "accuracy": 1 - total / values, "samples": len(samples)}
    numbers |= {"wrong_samples": wrong_samples}
    steps = f"{samples.steps[0]} to {samples.steps[-1]}"
    if len(samples.steps) < 5:
        steps = ", ".join(map(str, samples.steps))
    kind = "held-out samples" if context.config.data.held_out else "training samples"
    title = f"{len(samples)} {kind if context.others is None else 'given samples'}, after step {steps}"
    return Measure("samples", title, text, numbers, curve=[round(float(value), 4) for value in wrong.mean(axis=1)])


def compared_states(context: EvaluationContext, samples: Dataset, number: int) -> Bits:
    """Return the states `[J, B, H, W, C]` at the J compared steps; the batch's `number` selects its random keys."""
    # Each batch needs separate keys for free channels and firing cells, or sample 64 would begin like sample 0.
    start_key, play_key = (prng.fold_in(key, number) for key in context.keys(TEST))
    grids = job.begun(resized(context.config, *samples.x.shape[1:3]), samples, start_key)
    rate = context.config.train.fire_rate
    states = play(context.engine, context.trained.circuit, grids, samples.steps[-1], play_key, rate)
    return np.stack([state for step, state in enumerate(states) if step in samples.steps])


def seen_neighbourhoods(context: EvaluationContext) -> Measure | None:
    """Count the neighbourhoods that occur in one-step samples, and those for which the circuit is always correct."""
    samples, config = context.trained.data(), context.config
    if samples is None or samples.steps[0] != 1 or config.train.asynchronous:
        return None
    channels = samples.x.shape[-1]
    # If free channels are random, samples never contain all neighbourhoods.
    if config.task.start == "random" and channels < config.model.channels:
        return None
    starts = job.begun(config, samples, context.keys(TEST)[0])
    kinds = neighbourhoods(samples.x, config.model.periodic, config.model.neighbourhood)
    expected = samples.y[:, 0].reshape(len(kinds), -1)
    is_counted = (expected >= 0).all(axis=1)
    parts = (starts[part : part + AT_ONCE] for part in range(0, len(samples), AT_ONCE))
    states = [context.engine.rollout(context.trained.circuit, part, 1, "hard")[-1] for part in parts]
    after = np.concatenate(states).reshape(len(kinds), -1)[:, : expected.shape[1]]
    shown = np.unique(kinds[is_counted])
    # A neighbourhood is wrong if any cell with this neighbourhood is wrong.
    wrong = np.unique(kinds[is_counted & (after != expected).any(axis=1)])
    # Nine cells with one channel have 2^9 = 512 neighbourhoods, with two channels 2^18.
    total, right = 1 << len(NEIGHBOURHOODS[config.model.neighbourhood]) * channels, len(shown) - len(wrong)
    text = f"{right} of the {len(shown)} that occur are right; {total} are possible"
    # The rule is exact if the next step of every channel is known.
    if right == total and expected.shape[1] == channels:
        text = f"all {total} possible neighbourhoods are right: the rule is exact"
    if name := _name(context):
        text += f"; the circuit is {name}"
    values: dict[str, float] = {"right": right, "seen": len(shown), "entries": total}
    return Measure("seen-neighbourhoods", "neighbourhoods in the samples", text, values)


def _name(context: EvaluationContext) -> str | None:
    if context.config.model.channels > 1:
        return None
    # The middle cell of a 3x3 board has all other cells as neighbours.
    boards = rules.patches().reshape(-1, 3, 3, 1).astype(np.float32)
    after = context.engine.rollout(context.trained.circuit, boards, 1, "hard")[-1, :, 1, 1, 0]
    return rules.counted(after.astype(np.uint8))


def own_numbers(context: EvaluationContext) -> Measure | None:
    """Count the wrong ones among new samples of a task in Python, and include the metrics that the task computes.

    Raises ConfigError for unknown settings, UsageError for settings without such a task, or FaultyTaskError.
    """
    own = _task(context)
    if own is None:
        return None
    if isinstance(own, str):
        return Measure("own-task", f"fresh samples of {context.config.plugin.name}", f"not tested: {own}", {})
    samples = own.drawn(context.starts, FRESH, context.config.seed)
    parts = enumerate(job.in_parts(samples, AT_ONCE))
    states = np.concatenate([compared_states(context, part, number) for number, part in parts], axis=1)
    count = int(np.count_nonzero(job.differing(samples, states).any(axis=(0, 2, 3, 4))))
    numbers = own.evaluated(states.swapaxes(0, 1), samples)
    words = [f"wrong in {counted(count, 'sample')}" if count else "exact"]
    words += [f"{key} {value:.4g}" for key, value in numbers.items()]
    settings = ", ".join(f"{name} {value}" for name, value in own.settings.items())
    title = f"{len(samples)} fresh samples of {own.name}, {settings}"
    return Measure("own-task", title, "; ".join(words), {"samples": len(samples), "wrong_samples": count, **numbers})


def _task(context: EvaluationContext) -> OwnTask | str | None:
    """Return the run's task in Python with the context's settings, None if it has none, or why it cannot be loaded."""
    plugin, settings = context.config.plugin, context.settings
    if not plugin.name:
        if settings:
            raise UsageError("--set supports only runs with a task in Python, and this run has none: omit it.")
        return None
    try:
        own = registered.task_of(plugin, settings)
    except ConfigError as error:
        if settings:
            raise
        return str(error)  # other tests of the run's samples do not need the task
    if unknown := sorted(set(settings) - own.takes):
        raise ConfigError(f"Unknown setting {unknown[0]} of {own.name}: expected {', '.join(sorted(own.takes))}.")
    return own
