"""Tests of a trained circuit; each test returns a Measure, or None if it does not apply to the circuit's task.

Sources: the evaluations in the notebook of the paper's authors (a grid with sides four times as long for 4T steps,
faults, self-healing, 4000 asynchronous steps with damage after each), and similar evaluations for other tasks.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from difflogic.config.resized import knows_larger_grids, resized
from difflogic.config.task import TaskConfig
from difflogic.core import rules, wiring
from difflogic.core.bits import Bits
from difflogic.evaluation import proof, rehearsal, samples
from difflogic.evaluation.measure import Measure, in_words
from difflogic.evaluation.rehearsal import EvaluationContext
from difflogic.evaluation.rollout import DamagePlan

FAULT_SIDE = 20
"""Side of the zeroed square in cells, as in the paper, but at most half of the grid's shorter side."""
ROBUST_SIDE, ROBUST_STEPS, ROBUST_DAMAGE = 64, 4000, 10
ROBUST_TRIALS = 4
RULE_SIDE, RULE_GENERATIONS = 64, 100
QUICKER = 10
"""Divisor for the steps of the two long tests in a quick evaluation."""

Test = Callable[[EvaluationContext], Measure | None]


def training(context: EvaluationContext) -> Measure | None:
    """Report the first epoch at which the hard circuit was exact on all evaluation grids, according to the metrics."""
    last, first, paper = context.trained.last_evaluation, context.trained.first_solved, context.paper.solved_at
    if last is None or last.hard_loss is None:
        return None
    interval = context.config.train.eval_interval
    text = "not yet" if first is None else f"epoch {first} (evaluated every {interval})"
    values: dict[str, float] = {"epoch": context.trained.epoch, "hard_loss": last.hard_loss}
    values |= {"soft_loss": last.soft_loss} if math.isfinite(last.soft_loss) else {}
    values |= {} if first is None else {"first_solved": first}
    published = "" if paper is None else f"epoch {paper}"
    return Measure("training", "training: first hard loss 0 on the evaluation grids", text, values, published)


def accuracy(context: EvaluationContext) -> Measure | None:
    """Measure hard loss, soft loss and their difference after T steps from new initial states, without damage."""
    if not context.config.task.is_fixed:
        return None
    steps = context.own.task.steps
    starts = f"{context.starts} fresh initial states" if context.draws_starts else "the only initial state"
    measure = Measure.of("accuracy", f"{starts}, after T = {steps} steps", context.draws(steps, test=100))
    hard, soft = measure.values["wrong"] / measure.values["samples"], context.soft_loss(test=100)
    values = {"hard_loss_per_sample": hard, "soft_loss_per_sample": soft, "gap_per_sample": hard - soft}
    text = f"{measure.text}; soft loss {soft:.3g}, hard {hard:.3g} each"
    return replace(measure, values=measure.values | values, text=text)


def every_start(context: EvaluationContext) -> Measure | None:
    """Try to prove by three-valued simulation, which is fast, that every initial state reaches the target."""
    result = proof.at_once(context.trained)
    if result is None:
        return None
    values: dict[str, float] = {} if result.from_step is None else {"from_step": result.from_step}
    return Measure("every-start", "every initial state (proof)", result.text, values)


def damaged_as_trained(context: EvaluationContext) -> Measure | None:
    """Measure the accuracy after T steps with damage as in training."""
    task = context.config.task
    if not task.damage_side or not task.is_fixed:
        return None
    damage = DamagePlan(task.damage_side, task.damage_steps, "random")
    record = context.watch(context.own, task.steps, test=200, damage=damage, samples=context.starts)
    title = f"{_square(damage)} zeroed at step {', '.join(map(str, task.damage_steps))}, as trained"
    return Measure.of("damaged-as-trained", title, [record])


def _square(damage: DamagePlan) -> str:
    return f"{damage.side}x{damage.side} square"


def neighbourhoods(context: EvaluationContext) -> Measure | None:
    """Count the neighbourhoods (of 512 for nine cells) for which the circuit gives the same next cell as the rule."""
    task = context.config.task
    if task.target != "rule" or task.steps != 1:
        return None
    # Boards that differ only in cells that perception does not read are equivalent, so one of them is enough.
    unread = np.delete(rules.patches(), wiring.NEIGHBOURHOODS[context.config.model.neighbourhood], axis=1)
    entries = np.flatnonzero(~unread.any(axis=1))
    boards = rehearsal.fresh_starts(resized(context.config, 3, 3), len(entries), context.keys(300)[0])
    # Channel 0 is the board; all other channels begin as in training.
    boards[..., 0] = rules.patches()[entries].reshape(-1, 3, 3)
    after = context.engine.rollout(context.trained.circuit, boards, 1, "hard")[-1, :, 1, 1, 0]
    right = int(np.count_nonzero(after == rules.table(task.rule)[entries]))
    text = f"{right} of {len(entries)} right"
    values: dict[str, float] = {"right": right, "entries": len(entries)}
    measure = Measure("neighbourhoods", "neighbourhoods of the rule", text, values)
    return replace(measure, paper="512 of 512", met=right == len(entries)) if context.paper.exact else measure


def generations(context: EvaluationContext) -> Measure | None:
    """Compare the circuit with its rule on a large grid of noise after each generation."""
    task = context.config.task
    if task.target != "rule" or context.config.model.channels > 1 or context.config.train.asynchronous:
        return None
    height, width = rules.bounds(task.rule)[2] or task.on_side(RULE_SIDE)
    config = resized(context.config, height, width)
    count = RULE_GENERATIONS // QUICKER if context.quick else RULE_GENERATIONS
    start = rehearsal.fresh_starts(config, 1, context.keys(301)[0])
    history = _generations(rules.table(task.rule), start[0], context.config.model.periodic, task.steps)
    record = context.watch(config, count * task.steps, test=301, targets=history, start=start)
    return Measure.of("generations", f"{width}x{height} cells of noise, after {count} generations", [record])


def _generations(table: Bits, board: Bits, periodic: bool, steps: int) -> Iterator[Bits | None]:
    """Yield targets for all steps of a rollout: the board `[H, W, 1]` every `steps` steps, and None in between."""
    while True:
        yield board
        yield from [None] * (steps - 1)
        board = rules.apply(table, board[..., 0], periodic)[..., None]


def persistence(factor: int, context: EvaluationContext) -> Measure | None:
    """Measure mismatches after `factor * T` steps, to test whether the target persists."""
    if not context.config.task.is_fixed:
        return None
    # Use the random numbers from `accuracy`, so that only the number of steps differs.
    steps = factor * context.own.task.steps
    title = f"persistence, after {factor}T = {steps} steps"
    return Measure.of(f"persistence-{factor}t", title, context.draws(steps, 100))


def larger_grid(factor: int, context: EvaluationContext) -> Measure | None:
    """Measure mismatches on a grid with sides `factor` times as long (boards: after `factor * T` steps)."""
    task = context.config.task
    if not knows_larger_grids(task):
        return None
    # Order spreads from cell to cell, so a board needs time in proportion to its width; an image does not.
    board, config = task.target == "checkerboard", context.larger(factor)
    steps = factor * task.steps if board else task.steps
    record = context.watch(config, steps, test=400 + factor)
    title = f"{_grid(config.task)} (sides {factor} times as long), after {steps} steps"
    return Measure.of(f"larger-grid-{factor}x", title, [record], board and factor == 4 and context.paper.exact)


def other_timing(context: EvaluationContext) -> Measure | None:
    """Measure mismatches of a synchronous circuit in asynchronous rollouts, or vice versa."""
    if not context.config.task.is_fixed:
        return None
    # At a fire rate of 0.6 a cell fires in 12 of 20 steps on average, so four times the steps are enough.
    steps = 4 * context.own.task.steps
    if context.config.train.asynchronous:
        return Measure.of("synchronous", f"synchronous, after {steps} steps", context.draws(steps, 500, fire_rate=1.0))
    rate = context.asynchronous_rate
    title = f"asynchronous, fire rate {rate:g}, after {steps} steps"
    return Measure.of("asynchronous", title, context.draws(steps, 500, fire_rate=rate))


def fault_tolerance(context: EvaluationContext) -> Measure | None:
    """Zero a square in the middle of a large grid after every step, and measure mismatches outside the square."""
    if context.config.task.target != "checkerboard":
        return None
    config, steps = context.larger(4), 4 * context.config.task.steps
    damage = DamagePlan(_fault_side(config.task), range(1, steps + 1))
    record = context.watch(config, steps, test=600, damage=damage)
    outside = int(record.outside.sum())
    title = f"fault tolerance: {_grid(config.task)}, its middle {_square(damage)} zeroed after each of {steps} steps"
    measure = Measure.of("fault-tolerance", title, [record], wrong_outside=outside)
    rest = in_words(outside, record.values - damage.side**2)
    return replace(measure, text=f"outside the square: {rest}")


def self_healing(context: EvaluationContext) -> Measure | None:
    """Measure the mismatches long after damage: to a board in the first half of the steps, or to an image once."""
    task = context.config.task
    if not task.is_fixed:
        return None
    # A board grows on a larger grid; an image must be complete before it can heal.
    board, steps = task.target == "checkerboard", 4 * task.steps
    config = context.larger(4) if board else context.own
    times = range(1, steps // 2 + 1) if board else [task.steps]
    damage = DamagePlan(_fault_side(config.task), times)
    record = context.watch(config, steps, test=601, damage=damage)
    when = f"after each of the first {steps // 2} steps" if board else f"after step {task.steps}"
    title = f"self-healing: {_grid(config.task)}, its middle {_square(damage)} zeroed {when}, at step {steps}"
    measure = Measure.of("self-healing", title, [record], board and context.paper.exact)
    if record.wrong[-1].any():
        return measure
    # The step after the last mismatch, or 0 if the square contained no ones.
    wrong_at = np.flatnonzero(record.wrong[:, 0])
    healed = int(wrong_at[-1]) + 1 if wrong_at.size else 0
    values = measure.values | {"exact_from": healed}
    return replace(measure, text=f"{measure.text} from step {healed} on", values=values)


def _fault_side(task: TaskConfig) -> int:
    return min(FAULT_SIDE, task.shortest_side // 2)


def robustness(context: EvaluationContext) -> Measure | None:
    """Measure the mean number of mismatches over thousands of asynchronous steps, each followed by damage.

    The paper's figure is from one trial. This test reports the mean and standard deviation over several trials.
    """
    if context.config.task.target != "checkerboard":
        return None
    config = resized(context.config, ROBUST_SIDE, ROBUST_SIDE)
    steps = ROBUST_STEPS // QUICKER if context.quick else ROBUST_STEPS
    damage = DamagePlan(ROBUST_DAMAGE, range(1, steps + 1), "random")
    rate = context.asynchronous_rate
    record = context.watch(config, steps, test=700, fire_rate=rate, damage=damage, samples=ROBUST_TRIALS)
    # The mean excludes the initial state, which is noise. The deviation is between trials, since steps are not
    # independent.
    errors = record.wrong[1:]
    trials = errors.mean(axis=0)
    mean, spread, worst = float(trials.mean()), float(trials.std(ddof=1)), int(errors.max())
    what = f"{steps} asynchronous steps, a {_square(damage)} zeroed anywhere after each"
    title = f"robustness: {_grid(config.task)}, {what}"
    measure = Measure.of("robustness", title, [record], mean_error=mean, trial_deviation=spread, worst_error=worst)
    text = f"mean error {mean:.1f} of {record.values}, {len(trials)} trials ± {spread:.1f}"
    if (paper := context.paper.robustness) is None:
        return replace(measure, text=text)
    published = f"mean error {paper} in {ROBUST_STEPS} steps, 1 trial"
    # A mean above the paper's single trial, but within two standard deviations, shows neither better nor worse. A quick
    # evaluation has fewer steps, so it is not comparable with the paper.
    is_undecided = context.quick or paper < mean <= paper + 2 * spread
    return replace(measure, text=text, paper=published, met=None if is_undecided else mean <= paper)


def _grid(task: TaskConfig) -> str:
    return f"{task.width}x{task.height}"


TESTS: tuple[Test, ...] = (
    training,
    samples.sample_accuracy,
    samples.seen_neighbourhoods,
    samples.own_numbers,
    accuracy,
    every_start,
    damaged_as_trained,
    neighbourhoods,
    generations,
    partial(persistence, 2),
    partial(persistence, 4),
    partial(larger_grid, 2),
    partial(larger_grid, 4),
    other_timing,
    fault_tolerance,
    self_healing,
    robustness,
)
