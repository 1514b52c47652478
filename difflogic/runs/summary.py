"""The result of a run in words: `summary.txt`, and what the command ends with."""

from __future__ import annotations

from collections.abc import Sequence

from difflogic.config.schema import Config
from difflogic.engine import job
from difflogic.engine.api import EngineInfo, describe_engine
from difflogic.engine.job import TrainState
from difflogic.model.statistics import DECIDED, active_gates, undecided_gates
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import Row, last_evaluated


def summarise(
    config: Config,
    state: TrainState,
    rows: Sequence[Row],
    engine: EngineInfo,
    epochs: int,
    seconds: float,
    best: ModelState | None,
) -> str:
    """Several lines; `state` is the last, gates are counted in the `best`. `epochs`, `seconds`: of this process."""
    lines = [headline(config, rows, best), ""]
    lines.append(
        f"Epochs:          {state.epoch} of {config.train.epochs}, {state.skipped} skipped (gradient not finite)"
    )
    # An epoch of the search has no soft loss, and the one before it says nothing of the circuit that came out.
    if rows:
        searched = 0 < config.search.begin < state.epoch
        soft = "none, the last epochs were a search" if searched else f"{rows[-1].soft_loss:.4f}"
        lines.append(f"Soft loss:       {soft}")
    judged = last_evaluated(rows if best is None else rows[: best.state.epoch])
    if judged is not None and judged.accuracy is not None:
        lines.append(
            f"Hard loss:       {judged.hard_loss} on the probes, {judged.train_hard_loss} on the training batch"
        )
        lines.append(f"Hard accuracy:   {100 * judged.accuracy:.2f} % at epoch {judged.epoch}")
    logits = state.logits if best is None else best.state.logits
    lines.append(f"Active gates:    {active_gates(logits)} of {len(logits)} (neither A nor B)")
    lines.append(f"Undecided gates: {undecided_gates(logits)} (no gate as likely as {100 * DECIDED:.0f} %)")
    if epochs and seconds:
        lines.append(f"Time:            {seconds:.1f} s for {epochs} epochs, {epochs / seconds:.2f} epochs/s")
    lines.append(f"Engine:          {describe_engine(engine)}")
    return "\n".join(lines) + "\n"


def headline(config: Config, rows: Sequence[Row], best: ModelState | None) -> str:
    """Solved or not, in one sentence: by the `best` circuit, where one was kept, else by the last."""
    last = last_evaluated(rows)
    probes = job.judges(config)
    if last is None:
        return f"Not evaluated yet: the hard circuit was not tried on {probes}."
    epoch, wrong = (last.epoch, last.hard_loss) if best is None else (best.state.epoch, best.best)
    rest = "" if last.epoch <= epoch else f"; the last, of epoch {last.epoch}, has {last.hard_loss}"
    if wrong == 0:
        first = next((row.epoch for row in rows if row.hard_loss == 0), epoch)
        wrongs = f"{rest} wrong values" if rest else ""
        return f"Solved: the hard circuit is exactly right on {probes} at epoch {epoch} (first at {first}){wrongs}."
    return f"Not solved: the best hard circuit, of epoch {epoch}, has {wrong} wrong values on {probes}{rest}."
