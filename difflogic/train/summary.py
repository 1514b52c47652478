"""The result of a population in words: how many seeds came through, how soon, and with how many gates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from difflogic.config.schema import Config
from difflogic.core.interval import wilson_interval
from difflogic.engine import job
from difflogic.engine.api import EngineInfo, describe_engine
from difflogic.model.statistics import active_gates, undecided_gates
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import last_evaluated
from difflogic.train.replica import Replica


def summarise_population(
    config: Config,
    members: Sequence[Replica],
    engine: EngineInfo,
    epochs: int,
    seconds: float,
    best: ModelState | None,
) -> str:
    """Several lines; `epochs` and `seconds` are this process's own."""
    solved = [member for member in members if member.solved]
    count, skipped = len(members), sum(member.state.skipped for member in members)
    lines = [headline(config, members, best), ""]
    lines.append(
        f"Epochs:          {members[0].state.epoch} of {config.train.epochs}, "
        f"{skipped} skipped over all models (gradient not finite)"
    )
    if last_evaluated(members[0].metrics) is not None:
        low, high = wilson_interval(len(solved), count)
        lines.append(
            f"Success rate:    {100 * len(solved) / count:.1f} % ({len(solved)} of {count}), "
            f"95 % Wilson interval {100 * low:.1f} % to {100 * high:.1f} %"
        )
        lines += _epochs_to_success(members, solved)
    lines += _losses(members)
    if epochs and seconds:
        each = 1000 * seconds / epochs / count
        lines.append(
            f"Time:            {seconds:.1f} s for {epochs} epochs of {count} models, {epochs / seconds:.2f} epochs/s, "
            f"{each:.3g} ms per model and epoch"
        )
    lines.append(f"Engine:          {describe_engine(engine)}")
    if solved:
        lines += ["", "Solved models:", *map(_line, solved)]
    return "\n".join(lines) + "\n"


def headline(config: Config, members: Sequence[Replica], best: ModelState | None) -> str:
    """Return in one sentence how many are solved, and which is the best."""
    count, probes = len(members), job.judges(config)
    judged = last_evaluated(members[0].metrics)
    if best is None or judged is None:
        return f"Not evaluated yet: the {count} hard circuits were not tried on {probes}."
    solved = sum(member.solved for member in members)
    if best.epoch < judged.epoch:
        how = "exactly right" if best.best == 0 else f"{best.best} values wrong"
        return (
            f"{'Solved' if best.best == 0 else 'Not solved'}: the best hard circuit is that of seed {best.config.seed} "
            f"at epoch {best.epoch}, {how} on {probes}; at epoch {judged.epoch} {solved} of {count} are right."
        )
    if solved:
        gates = active_gates(best.state.logits)
        return (
            f"Solved: {solved} of {count} hard circuits are exactly right on {probes} at epoch {judged.epoch}; "
            f"the best is that of seed {best.config.seed}, with {gates} active gates."
        )
    return (
        f"Not solved: none of {count} hard circuits is exactly right on {probes} at epoch {judged.epoch}; "
        f"the best is that of seed {best.config.seed}, with {best.best} wrong values."
    )


def _epochs_to_success(members: Sequence[Replica], solved: Sequence[Replica]) -> list[str]:
    lines = []
    firsts = [member.first_solved for member in solved if member.first_solved is not None]
    if firsts:
        lines.append(
            f"Epochs to solve: median {statistics.median(firsts):g}, from {min(firsts)} to {max(firsts)} "
            "(first evaluation without a wrong value)"
        )
    # A circuit may be right at one evaluation and wrong again at a later one.
    lost = [member.seed for member in members if member.first_solved is not None and not member.solved]
    if lost:
        lines.append(
            f"Lost again:      {len(lost)} (solved at an earlier evaluation): seed {', '.join(map(str, lost))}"
        )
    return lines


def _losses(members: Sequence[Replica]) -> list[str]:
    """Best and median over the members."""
    lines = []
    soft = [row.soft_loss for member in members for row in member.metrics[-1:] if not math.isnan(row.soft_loss)]
    if soft:
        lines.append(f"Soft loss:       {min(soft):.4f} at best, {statistics.median(soft):.4f} in the median")
    judged = [last_evaluated(member.metrics) for member in members]
    hard = [row.hard_loss for row in judged if row is not None and row.hard_loss is not None]
    if hard:
        lines.append(f"Hard loss:       {min(hard)} at best, {statistics.median(hard):g} in the median, on the probes")
    return lines


def _line(member: Replica) -> str:
    logits = member.state.logits
    return (
        f"  seed {member.seed}: first at epoch {member.first_solved}, {active_gates(logits)} active gates, "
        f"{undecided_gates(logits)} undecided"
    )
