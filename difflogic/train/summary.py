"""Texts about results: the last lines of a command, the details in summary.txt, and advice for unsolved runs.

A summary begins with the result. Commands print the lines before `Details:`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from difflogic.circuits.synthesis.convert import lean
from difflogic.circuits.synthesis.every_start import prove_every_start
from difflogic.circuits.synthesis.function import live_gates
from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.config.schema import Config
from difflogic.core.interval import wilson_interval
from difflogic.engine import job
from difflogic.engine.api import EngineInfo, describe_engine
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import DECIDED, undecided_gates
from difflogic.runs.attempts import Attempt
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import last_evaluated
from difflogic.system.files import quoted
from difflogic.system.words import counted, line
from difflogic.train import stalled
from difflogic.train.replica import Replica
from difflogic.train.success import LARGE, on_other_grids

if TYPE_CHECKING:  # these modules import many others that only agents need
    from difflogic.policies.member import Member
    from difflogic.train.run import Run

DETAILS = "\nDetails:\n"
RIGHT = {True: "right", False: "wrong", None: "not decided"}
NEARLY = 0.05
"""Maximum share of wrong cells at which `harden --search` is recommended."""


def brief(summary: str) -> str:
    """Return the lines of a summary before its details."""
    return summary.partition(DETAILS)[0].rstrip()


def of_run(
    config: Config, members: Sequence[Replica], engine: EngineInfo, epochs: int, seconds: float,
    best: ModelState | None, finishing: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the summary of a run of automata.

    Args:
        config: Configuration of the run.
        members: Models after their last epoch.
        engine: Engine that trained them.
        epochs: Number of epochs that this process trained.
        seconds: Time that these epochs took.
        best: Best model; None before the first evaluation.
        finishing: Lines about changes of `best` by the finishing passes.
    """
    lines, count = [_result(config, members, best)], len(members)
    if best is not None:
        states, sizes = certainty(best.config, best.circuit, best.best)
        if best.config.task.stays and not finishing:
            finishing = [line("Held", "no: only runs with attempts (--restarts, --until-solved) make an image stay")]
        if states and not best.best:
            bits = config.task.height * config.task.width * config.model.channels
            evaluation = line("Evaluation", lines[0].removeprefix("Solved: ").removesuffix("."))
            lines = [f"Solved: every one of the 2^{bits} starts ends in the target, for ever (proved).", evaluation]
        lines += [*finishing, *states, *sizes, _gates(CellNetlist.of_run(best.circuit, best.config))]
    skipped = sum(member.state.skipped for member in members)
    progress = f"{members[0].state.epoch} of {config.train.epochs}, {skipped} skipped (gradient not finite)"
    details = [line("Epochs", progress), *_rates(members), *_losses(config, members, best)]
    if epochs and seconds:
        per_model = f", {1000 * seconds / epochs / count:.3g} ms per model" if count > 1 else ""
        details.append(line("Time", f"{seconds:.1f} s for {epochs} epochs, {epochs / seconds:.2f} epochs/s{per_model}"))
    details.append(line("Engine", describe_engine(engine)))
    for member in members if count > 1 else ():
        if member.solved:
            gates = counted(live_gates(CellNetlist.of_run(member.circuit, member.job.config)), "gate")
            details.append(f"  seed {member.seed}: solved, first at epoch {member.first_solved}, {gates}")
    return "\n".join(lines) + f"\n{DETAILS}" + "\n".join(details) + "\n"


def certainty(config: Config, circuit: Circuit, wrong: int | None) -> tuple[list[str], list[str]]:
    """Return a line about the proof for all initial states, and a line about the sizes on which the circuit is right.

    The first list is empty if nothing is proved, the second if the task has only one size.
    """
    netlist = lean(CellNetlist.of_run(circuit, config))
    return _initial_states(config, netlist), _sizes(config, netlist) if wrong == 0 else []


def of_agents(
    config: PolicyConfig, members: Sequence[Member], best: Member, steps: int, seconds: float,
    baselines: Mapping[str, float] | None, netlist: CellNetlist | FunctionNetlist | None,
) -> str:  # fmt: skip
    """Return the summary of a run of agents.

    Args:
        config: Configuration of the run.
        members: Agents after their last step.
        best: Best agent.
        steps: Number of environment steps; for a classifier, rows seen.
        seconds: Time that these steps took.
        baselines: Scores of agents that do not learn; None if the run has not ended.
        netlist: Hard circuit of the best agent; None for an agent without one.
    """
    lines = [_result_of_agents(config, best, len(members), baselines is not None)]
    is_of_rows = isinstance(config, ClassifierConfig)
    scale, unit, sign = (100, "rows", " %") if is_of_rows else (1, "steps", "")
    if baselines is not None:
        scores = ", ".join(f"{name} {scale * value:.1f}{sign}" for name, value in baselines.items())
        lines.append(line("Baselines", scores))
        score = best.score
        # The mean return minus two standard errors.
        least = math.inf if score is None else score.mean - 2 * score.spread / math.sqrt(len(score.returns))
        if not is_of_rows and least <= baselines["random"]:
            lines.append(
                "No better than random actions: the agent has learned nothing yet. Give more --steps, or --policy mlp; "
                "PPO and SAC seldom find rewards that are rare."
            )
    means = [scale * member.score.mean for member in members if member.score is not None]
    if len(members) > 1 and means:
        solved = "" if is_of_rows else f"{sum(member.solved for member in members)} solved, "
        spread = f"{min(means):.1f} to {max(means):.1f}{sign}, median {statistics.median(means):.1f}{sign}"
        lines.append(line(f"All {len(members)}", solved + spread))
    if netlist is not None:
        lines.append(_gates(netlist))
    lines.append(line("Time", f"{seconds:.1f} s for {steps} {unit}, {steps / max(seconds, 1e-9):.0f} {unit}/s"))
    return "\n".join(lines) + "\n"


def of_attempts(best: str, number: int, attempts: Sequence[Attempt], until: str | None) -> str:
    """Return the summary of several attempts.

    Args:
        best: Summary of the best attempt.
        number: Number of the best attempt, from 1.
        attempts: The attempts in order.
        until: Result of training until solved, `solved` or `not solved within 60 s`; None for other training.
    """
    short, _, details = best.rstrip().partition(DETAILS)
    verdict, *lines = short.rstrip().splitlines()
    if until is not None:
        result = verdict.rpartition("olved: ")[2].rstrip(".")
        # The success test may differ from the evaluation in the summary, for example for asynchronous boards.
        but = ", but not in the success test" if until != "solved" and verdict.startswith("Solved: ") else ""
        but = "; the success test is passed" if until == "solved" and verdict.startswith("Not solved: ") else but
        verdict = f"{until.capitalize()}, attempt {number}: {result}{but}."
    rows = [
        line("Attempts", f"{len(attempts)}; attempt {number} is the best"),
        *(f"  {attempt}" for attempt in attempts),
    ]
    return "\n".join([verdict, *lines]) + f"\n{DETAILS}" + "\n".join([*details.splitlines(), *rows]) + "\n"


def next_steps(run: Run, restarted: bool, build: str | None = None) -> list[str]:
    """Return a heading and a line for each next step to try; empty if the run is solved or was interrupted.

    Args:
        run: The run.
        restarted: True if the run is the best of several attempts.
        build: Command that makes a circuit for the task without training; None if there is no such command.
    """
    if run.solved or not run.complete or run.wrong is None:
        return []
    # A search has no soft loss that could fall, and attempts that were stopped early are not resumed.
    falls = run.path is not None and not run.config.search.begin and run.given_up is None
    falls = falls and len(run.metrics) < 2 * stalled.last_progress(run.metrics, run.config)
    steps, longer = [], 2 * run.config.train.epochs
    # A search optimises on the evaluation grids, which are the held-out samples if the task has samples.
    if run.config.task.target != "data" and run.path is not None and run.wrong <= NEARLY * run.member.job.values:
        effect = "search again, from the best circuit" if run.config.search.begin else "repair the few wrong cells"
        steps.append(f"difflogic harden {quoted(run.path)} --search: {effect}")
    steps += [] if run.lender else _changes(run, restarted)
    if falls and run.path is not None:
        steps.append(f"difflogic train --resume {quoted(run.path)} --epochs {longer}: the loss still falls")
    elif not run.lender:
        steps.append(f"repeat the training with --epochs {longer}: more may be needed")
    if build is not None:
        steps.append(f"{build}: a circuit without training")
    return ["What to try next:", *(f"  {step}" for step in steps)] if steps else []


def _gates(netlist: CellNetlist | FunctionNetlist) -> str:
    rest = " per cell"
    if isinstance(netlist, FunctionNetlist):
        rest = f", {netlist.inputs} {'inputs' if netlist.reads_bits else 'thresholds'}"
    return line("Gates", f"{live_gates(netlist)}{rest}")


def _result(config: Config, members: Sequence[Replica], best: ModelState | None) -> str:
    """Return a sentence about the best circuit on its evaluation grids."""
    grids, last, count = job.judges(config), last_evaluated(members[0].metrics), len(members)
    if best is None or last is None:
        return f"Not evaluated yet on {grids}."
    result = f"Not solved: {counted(best.best, 'wrong cell')}" if best.best else "Solved: right"
    seed = f"seed {best.config.seed}, " if count > 1 else ""
    text = f"{result} on {grids} ({seed}epoch {best.epoch})"
    if count > 1:
        text += f"; {sum(member.solved for member in members)} of {count} models are right at epoch {last.epoch}"
    elif last.epoch > best.epoch:
        text += f"; {counted(last.hard_loss or 0, 'wrong cell')} at epoch {last.epoch}"
    return f"{text}."


def _rates(members: Sequence[Replica]) -> list[str]:
    """Return lines about solved models, their epochs, and models that were solved only temporarily."""
    if last_evaluated(members[0].metrics) is None:
        return []
    lines, count = [], len(members)
    solved = sum(member.solved for member in members)
    if count > 1:
        low, high = wilson_interval(solved, count)
        lines.append(
            f"{line('Success rate', f'{100 * solved / count:.1f} %')} ({solved} of {count}), "
            f"95 % Wilson interval {100 * low:.1f} % to {100 * high:.1f} %"
        )
    firsts = [member.first_solved for member in members if member.first_solved is not None]
    if firsts:
        lines.append(line("First solved", f"epoch {_spread(firsts, '{:g}')}"))
    lost = [str(member.seed) for member in members if member.first_solved is not None and not member.solved]
    if lost and count > 1:
        lines.append(line("Lost again", f"{len(lost)} (solved at an earlier evaluation): seed {', '.join(lost)}"))
    return lines


def _losses(config: Config, members: Sequence[Replica], best: ModelState | None) -> list[str]:
    lines, is_one = [], len(members) == 1
    soft = [row.soft_loss for member in members for row in member.metrics[-1:] if not math.isnan(row.soft_loss)]
    # The soft loss before a search does not describe the circuit that the search found.
    if soft and not 0 < config.search.begin < members[0].state.epoch:
        lines.append(line("Soft loss", _spread(soft, "{:.4f}")))
    # A run of one model reports its best circuit; a population compares the last circuits.
    end = best.state.epoch if is_one and best is not None else None
    rows = [row for member in members if (row := last_evaluated(member.metrics[:end])) is not None]
    if rows:
        batch = f", {rows[0].train_hard_loss} on the training batch" if is_one else ""
        losses = _spread([row.hard_loss or 0 for row in rows], "{:g}")
        lines.append(line("Hard loss", f"{losses} on the evaluation grids{batch}"))
        accuracy = [100 * (row.accuracy or 0) for row in rows]
        lines.append(line("Hard accuracy", f"{_spread(accuracy, '{:.2f} %', max)} at epoch {rows[0].epoch}"))
    circuit = members[0].circuit if best is None else best.circuit
    unconverged = undecided_gates(circuit.gate_logits, circuit.wire_logits)
    return [*lines, line("Unconverged", f"{unconverged} soft gates (no function above {100 * DECIDED:.0f} %)")]


def _spread(values: Sequence[float], form: str, best: Callable[[Sequence[float]], float] = min) -> str:
    """Return a text with the value of one model, or with the best value and the median of several models."""
    text = form.format(best(values))
    return text if len(values) == 1 else f"{text} at best, {form.format(statistics.median(values))} in the median"


def _initial_states(config: Config, netlist: CellNetlist) -> list[str]:
    """Return a line that a board is right for all initial states, or [] if three-valued simulation cannot prove it."""
    task = config.task
    # Known values spread one cell per step, so a proof on a large grid would delay the end of training by minutes.
    if not job.is_of_every_start(config) or config.train.asynchronous or task.height * task.width > LARGE**2:
        return []
    proof = prove_every_start(netlist, job.fixed_target(task), task.steps, seconds=None)
    if not proof.proved or proof.from_step is None:
        return []
    late = f", later than step {task.steps}" if proof.from_step > task.steps else ""
    return [line("Initial states", f"all show the target from step {proof.from_step} on{late} (proved)")]


def _sizes(config: Config, netlist: CellNetlist) -> list[str]:
    """Return a line with other grid sizes and whether the circuit is right; empty if the task has only one size."""
    task = config.task
    if task.target == "rule" and task.start == "boards" and task.steps == 1 and not config.train.asynchronous:
        # A cell only reads its neighbourhood, which is a 3x3 board, so all boards cover all neighbourhoods.
        return [line("Other sizes", "all, since all 512 neighbourhoods are right")]
    if task.target == "picture" and task.start == "zeros":
        return [line("Other sizes", "none: the image grows from the border, so only this size is right")]
    sizes = ", ".join(f"{size} {RIGHT[right]}" for size, right in on_other_grids(config, netlist).items())
    how = "eventually; proved" if job.is_of_every_start(config) else "by a rollout on each"
    return [line("Other sizes", f"{sizes} ({how})")] if sizes else []


def _result_of_agents(config: PolicyConfig, best: Member, count: int, has_ended: bool) -> str:
    from difflogic.policies import classifier

    least, score, seed = config.evaluation.threshold, best.score, f" (seed {best.seed})" if count > 1 else ""
    if score is None:
        return f"Not evaluated yet{seed}."
    if isinstance(config, ClassifierConfig):
        rows = config.table.final_rows if has_ended else "not learned" if config.table.validation else "learned"
        text = classifier.accuracy(int(sum(score.returns)), len(score.returns), rows)
        return f"{text.capitalize()}{seed}."
    text = f"mean return {score.mean:.1f} +- {score.spread:.1f} over {len(score.returns)} episodes{seed}"
    if least == -math.inf:
        return f"{text.capitalize()}."
    verdict = "Solved" if best.solved else "Not solved"
    return f"{verdict}: {text}; {score.reached(least)} of {len(score.returns)} reached {least:g}."


def _changes(run: Run, restarted: bool) -> list[str]:
    """Return lines that suggest changed options for a new training."""
    config, alone, steps = run.config, len(run.members) == 1, []
    if not (config.hardening.share or config.search.begin):
        steps.append("repeat the training with --recipe robust: more seeds succeed")
    restarts = min(2, stalled.most_restarts(config, config.train.epochs))
    if restarts and alone and not restarted and not config.pool.starts:
        steps.append(f"repeat the training with --restarts {restarts}: new wiring if training stalls")
    if alone and config.task.target == "rule":
        steps.append("repeat the training with --population 8: some wirings learn a rule that others do not")
    return steps
