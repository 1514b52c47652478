"""The result of a run in words: `summary.txt`, and what the command ends with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic import gates
from difflogic.config import Config
from difflogic.engine import EngineInfo, TrainState
from difflogic.train import tasks
from difflogic.train.journal import Row, last_evaluated

DECIDED = 0.9
"""A gate is decided where one of the sixteen has at least this probability."""
WIRE_GATES = (gates.NAMES.index("A"), gates.NAMES.index("B"))
"""Gates that only pass an input on: the others are the active ones."""


def active_gates(logits: npt.NDArray[np.floating]) -> int:
    """How many gates of `logits [G, 16]` compute something: argmax neither A nor B."""
    return int((~np.isin(logits.argmax(axis=1), WIRE_GATES)).sum())


def undecided_gates(logits: npt.NDArray[np.floating]) -> int:
    """How many gates of `logits [G, 16]` have no gate with a probability of DECIDED."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return int((1 / exponentials.sum(axis=1) < DECIDED).sum())


def describe_engine(engine: EngineInfo) -> str:
    """Adapter, backend and driver in one line."""
    details = (engine.adapter_type, engine.backend, engine.driver)
    named = ", ".join(detail for detail in details if detail)
    return f"{engine.engine}: {engine.adapter}" + (f" ({named})" if named else "")


def summarise(
    config: Config, state: TrainState, rows: list[Row], engine: EngineInfo, epochs: int, seconds: float
) -> str:
    """Several lines; `epochs` and `seconds` are this process's own."""
    lines = [verdict(config, rows), ""]
    lines.append(
        f"Epochs:          {state.epoch} of {config.train.epochs}, {state.skipped} skipped (gradient not finite)"
    )
    if rows:
        searched = 0 < config.train.settle_from < state.epoch
        soft = "none, the last epochs were a search" if searched else f"{rows[-1].soft_loss:.4f}"
        lines.append(f"Soft loss:       {soft}")
    judged = last_evaluated(rows)
    if judged is not None and judged.accuracy is not None:
        lines.append(
            f"Hard loss:       {judged.hard_loss} on the probes, {judged.train_hard_loss} on the training batch"
        )
        lines.append(f"Hard accuracy:   {100 * judged.accuracy:.2f} % at epoch {judged.epoch}")
    total = len(state.logits)
    lines.append(f"Active gates:    {active_gates(state.logits)} of {total} (neither A nor B)")
    lines.append(f"Undecided gates: {undecided_gates(state.logits)} (no gate as likely as {100 * DECIDED:.0f} %)")
    if epochs and seconds:
        lines.append(f"Time:            {seconds:.1f} s for {epochs} epochs, {epochs / seconds:.2f} epochs/s")
    lines.append(f"Engine:          {describe_engine(engine)}")
    return "\n".join(lines) + "\n"


def verdict(config: Config, rows: list[Row]) -> str:
    """Solved or not, in one sentence."""
    judged = last_evaluated(rows)
    probes = tasks.judges(config)
    if judged is None:
        return f"Not evaluated yet: the hard circuit was not tried on {probes}."
    if judged.hard_loss == 0:
        first = next(row.epoch for row in rows if row.hard_loss == 0)
        return f"Solved: the hard circuit is exactly right on {probes} at epoch {judged.epoch} (first at {first})."
    best = f"the best so far is {judged.best}"
    return (
        f"Not solved: at epoch {judged.epoch} the hard circuit has {judged.hard_loss} wrong values on {probes}; {best}."
    )
