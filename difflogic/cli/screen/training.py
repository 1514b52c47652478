"""Reporter of training on this machine, which sends events with fields and text to a sink."""

from __future__ import annotations

import math
import signal
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from difflogic.actions.build import command_for
from difflogic.cli.request import in_options
from difflogic.cli.screen.preview import Preview, compare
from difflogic.cli.screen.result import next_lines
from difflogic.cli.screen.sinks import Event, Lines
from difflogic.config.policy import ClassifierConfig
from difflogic.config.schema import Config
from difflogic.engine.api import EngineInfo, describe_engine
from difflogic.policies.rows import PolicyRow
from difflogic.runs.attempts import Attempt
from difflogic.runs.journal import Row
from difflogic.system.files import quoted
from difflogic.train import summary
from difflogic.train.observer import Beginning, Observer, Standing
from difflogic.train.replica import Replica
from difflogic.train.run import AgentRun, Run
from difflogic.train.run_request import Trained

if TYPE_CHECKING:
    from difflogic.policies.member import Member

NEXT_OF_CLASSIFIER = (
    ("difflogic evaluate {0}", "the accuracy of each class"),
    ("difflogic simplify {0} -o small.json", "fewer gates, proved equal"),
    ("difflogic export small.json --format c", "a header for C"),
)
NEXT = (
    ("difflogic simplify {0} -o small.json", "fewer gates, proved equal"),
    ("difflogic prove {0}", "a proof of what it does"),
    ("difflogic export {0} --format html", "a web page that runs it"),
)


class TrainingReporter(Observer):
    """Observer that reports the progress of training to a sink.

    The events are attempt, begin, placed, epoch, notice, checkpoint and end; for agents also iteration and evaluation.
    """

    def __init__(self, sink: Lines, log_interval: int = Observer.log_interval) -> None:
        self._sink, self.log_interval = sink, log_interval
        self._epochs = 0
        self._is_of_rows = False

    def began(self, beginning: Beginning) -> None:
        config = beginning.config
        self._is_of_rows = isinstance(config, ClassifierConfig)
        fields: dict[str, Any] = {
            "path": str(beginning.path),
            "epoch": beginning.epoch,
            "why": beginning.reason,
            "engine": asdict(beginning.engine),
            "config": config.to_dict(),
        }
        text: list[object] = [
            f"{config.name}: {beginning.about}, {seeds(beginning)}",
            f"Engine {describe_engine(beginning.engine)}; {beginning.reason}",
            *([] if beginning.path is None else [f"Run folder {beginning.path}"]),
            *([Preview(config)] if isinstance(config, Config) else []),
        ]
        if beginning.population > 1:
            fields["population"] = beginning.population
        if beginning.lender is not None:
            fields["lender"] = beginning.lender
            text.append(f"Initialized from {beginning.lender}")
        if beginning.epoch:
            text.append(f"Continuing after {config.unit} {beginning.epoch} of {beginning.epochs}")
        self._sink.show(Event("begin", fields, text))
        engine = beginning.engine
        if engine.engine == "gpu" and engine.software:  # named by the user, or there is no CPU engine
            self.noticed(f"{engine.adapter} is a software adapter: a GPU that the CPU emulates, correct but slow.")
        self._epochs = beginning.epochs
        self._sink.advance(beginning.epoch, self._epochs)

    def advanced(self, epoch: int) -> None:
        self._sink.advance(epoch, self._epochs)

    def attempted(self, attempt: Attempt) -> None:
        if attempt.status == "running":
            most = "" if attempt.of is None else f" of at most {attempt.of}"
            text = f"Attempt {attempt.number}{most}, seed {attempt.seed}."
        else:
            text = str(attempt).capitalize()
        self._sink.show(Event("attempt", {**asdict(attempt), "folder": attempt.folder}, [text]))

    def logged(self, row: Row, evaluated: Row | None) -> None:
        soft = "no soft loss" if math.isnan(row.soft_loss) else f"soft loss {row.soft_loss:.4f}"
        text = f"Epoch {row.epoch:4}: {soft}{_accuracy(row, evaluated)}"
        brief = "not tested yet" if evaluated is None else f"{100 * (evaluated.accuracy or 0):.2f} % right"
        self._sink.show(Event("epoch", row.to_dict() | _hard_fields(evaluated), [text], brief=brief))

    def compared(self, standing: Standing) -> None:
        best, median = standing.soft_losses
        members = [
            {"seed": seed, **row.to_dict(), **_hard_fields(evaluated)}
            for seed, row, evaluated in zip(standing.seeds, standing.rows, standing.judged, strict=True)
        ]
        fields = {
            "epoch": standing.epoch,
            "soft_loss_best": _number(best),
            "soft_loss_median": _number(median),
            "solved": standing.solved,
            "members": members,
        }
        text = (
            f"Epoch {standing.epoch:4}: soft loss {best:.4f} at best, {median:.4f} in the median, "
            f"solved {standing.solved} of {len(standing.seeds)}{_when(standing.epoch, standing.judged[0])}"
        )
        self._sink.show(Event("epoch", fields, [text], brief=f"{standing.solved} of {len(standing.seeds)} solved"))

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        best = members[0]
        if isinstance(best, Replica) and best.job.config.task.is_fixed:
            self._sink.show_image(lambda: compare(best))

    def iterated(self, rows: Sequence[PolicyRow]) -> None:
        self._sink.show(Event("iteration", {"rows": [row.to_dict() for row in rows]}))
        last, scores = rows[0], [row.score for row in rows if row.score is not None]
        if not scores:
            return
        returns = [row.mean_return for row in rows if row.mean_return is not None]
        training = f", {statistics.median(returns):.1f} while training" if returns else ""
        median = f" at best, {statistics.median(scores):.1f} in the median" if len(rows) > 1 else ""
        text = f"Step {last.steps:7}: mean return {max(scores):.1f}{median}{training}, {last.steps_per_s:.0f} steps/s"
        brief = f"mean return {max(scores):.1f}"
        if self._is_of_rows:
            brief = f"accuracy {100 * max(scores):.1f} %"
            median = f" at best, {100 * statistics.median(scores):.1f} in the median" if len(rows) > 1 else ""
            text = f"Row {last.steps:8}: {brief}{median}, {last.steps_per_s:.0f} rows/s"
        self._sink.show(Event("evaluation", {"steps": last.steps, "scores": scores}, [text], brief=brief))

    def placed(self, engine: EngineInfo, reason: str) -> None:
        text = f"Engine {describe_engine(engine)}; {reason}"
        self._sink.show(Event("placed", {"why": reason, "engine": asdict(engine)}, [text]))

    def noticed(self, text: str) -> None:
        text = in_options(text)
        self._sink.show(Event("notice", {"text": text}, [text], is_warning=True))

    def saved(self, epoch: int) -> None:
        self._sink.show(Event("checkpoint", {"epoch": epoch}))

    def ended(self, trained: Trained) -> None:
        """Report the end of training, after the run folder has been completed."""
        run, last, attempts = trained.run, trained.last, trained.attempts
        is_unsolved = attempts is not None and attempts.is_unsolved
        build, advice = command_for(run), list[str]()
        if not is_unsolved and isinstance(run, Run):
            advice = summary.next_steps(run, attempts is not None, build)
        text = [f"\n{summary.brief(trained.summary)}", *advice]
        if not is_unsolved and last.interrupted is None:
            text += next_lines(_next(run), trained.path or Path("RUN"))
        text += [*_files(trained.path), f"Run folder:      {trained.path}"]
        if is_unsolved and trained.path is not None:
            text.append(f"Continue with: difflogic train --resume {quoted(trained.path)} --within LIMIT")
            text += [] if build is None else [f"Build a circuit without training: {build}"]
        elif last.interrupted is not None and trained.path is not None:
            text.append(interruption(last, trained.path))
        fields = {
            "path": str(run.path),
            "epoch": run.epoch,
            "solved": run.solved,
            "complete": run.complete,
            "interrupted": None if last.interrupted is None else interrupter(last),
            **(_of_agents(run) if isinstance(run, AgentRun) else _of_automata(run)),
            **({} if attempts is None else {"attempts": [asdict(attempt) for attempt in attempts.record.attempts]}),
            "next_steps": advice,
            "summary": trained.summary,
        }
        # The bar ends first, so that the summary is printed below all lines.
        self._sink.finish()
        self._sink.show(Event("end", fields, text))


def _files(folder: Path | None) -> list[str]:
    images = ("rollout.gif", "returns.png", "accuracy.png")
    files = [name for name in images if folder is not None and (folder / name).is_file()]
    return [f"Open:            {name}; summary.txt has the details" for name in files]


def _next(run: Run | AgentRun) -> Sequence[tuple[str, str]]:
    if isinstance(run, Run):
        return NEXT if run.solved else ()
    return NEXT_OF_CLASSIFIER if isinstance(run.config, ClassifierConfig) and run.config.policy != "mlp" else ()


def seeds(beginning: Beginning) -> str:
    """Return `seed 23`, or for a population `seeds 23 to 86`."""
    first = beginning.config.seed
    last = first + beginning.population - 1
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def _accuracy(row: Row, evaluated: Row | None) -> str:
    if evaluated is None or evaluated.accuracy is None:
        return ""
    accuracy = f"{100 * evaluated.accuracy:.2f} % right"
    return f", hard loss {evaluated.hard_loss} ({accuracy}){_when(row.epoch, evaluated)}"


def _when(epoch: int, evaluated: Row | None) -> str:
    """Return ` at epoch N` if the evaluation was at another epoch than `epoch`, otherwise ""."""
    return "" if evaluated is None or evaluated.epoch == epoch else f" at epoch {evaluated.epoch}"


def _hard_fields(evaluated: Row | None) -> dict[str, float | None]:
    if evaluated is None or evaluated.accuracy is None:
        return {"hard_acc": None, "hard_acc_epoch": None}
    return {"hard_acc": round(100 * evaluated.accuracy, 4), "hard_acc_epoch": evaluated.epoch}


def _number(value: float) -> float | None:
    """Return a number for JSON, in which None replaces NaN."""
    return None if math.isnan(value) else value


def _of_automata(run: Run) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "best": None if run.wrong is None else {"epoch": run.best.epoch, "hard_loss": run.wrong},
        "skipped": run.state.skipped,
    }
    if len(run.members) == 1:
        return fields
    names = ("seed", "solved", "first_solved", "best")
    members = [{name: getattr(member, name) for name in names} for member in run.members]
    return fields | {"best_seed": run.member.seed, "members": members}


def _of_agents(run: AgentRun) -> dict[str, Any]:
    members = [
        {"seed": member.seed, "solved": member.solved, "score": None if member.score is None else member.score.mean}
        for member in run.members
    ]
    return {"best_seed": run.best.seed, "members": members}


def interrupter(run: Run | AgentRun) -> str:
    """Return the name of the signal that interrupted a run, or the reason that a program gave."""
    return run.interrupted.name if isinstance(run.interrupted, signal.Signals) else str(run.interrupted)


def interruption(run: Run | AgentRun, path: Path) -> str:
    """Return a message that the run in the folder `path` was interrupted, and how to continue it."""
    done, total, unit = run.epoch, run.config.epochs, run.config.unit
    # If the signal arrived during the last epochs, the run is complete.
    if run.complete and done >= total:
        return f"{interrupter(run)} arrived after the last {unit}: the run is complete."
    return (
        f"Interrupted by {interrupter(run)} after {unit} {done} of {total}; the checkpoint is saved. "
        f"Continue with: difflogic train --resume {quoted(path)}"
    )
