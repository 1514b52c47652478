"""How a training run looks on the screen: lines, a progress bar above lines, or JSON."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any

import click

from difflogic.cli import preview
from difflogic.cli.live_bar import LiveBar
from difflogic.config import Config
from difflogic.engine import EngineInfo
from difflogic.train.journal import Row
from difflogic.train.loop import Run
from difflogic.train.observer import Beginning, Observer, Standing
from difflogic.train.summary import describe_engine

RESUME = "difflogic train --resume"


class Reporter(Observer):
    """An Observer that is open while the run lasts, and tells its end."""

    def __enter__(self) -> Reporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the screen back."""

    def ended(self, run: Run) -> None:
        """The run is over and its folder complete."""


class Lines(Reporter):
    """Plain lines on standard output, warnings on standard error."""

    def say(self, text: str) -> None:
        click.echo(text)

    def began(self, beginning: Beginning) -> None:
        config, task, train = beginning.config, beginning.config.task, beginning.config.train
        self.say(
            f"{config.name}: {config.model.gates} gates, {task.height}x{task.width} grid, "
            f"{config.model.channels} channels, {task.steps} steps, batch {train.batch}, {seeds(beginning)}"
        )
        self.place(beginning)
        self.show_target(config)
        if beginning.epoch:
            self.say(f"Going on after epoch {beginning.epoch} of {train.epochs}")
        if warning := software_warning(beginning):
            self.noticed(warning)

    def place(self, beginning: Beginning) -> None:
        """What it runs on, and where it is kept."""
        self.say(f"Engine {describe_engine(beginning.engine)}; {beginning.reason}")
        self.say(f"Run folder {beginning.path}")

    def show_target(self, config: Config) -> None:
        """What the circuit should grow or learn."""
        self.say("\n".join([preview.headline(config), *preview.plain(config)]))

    def logged(self, row: Row, accuracy: float) -> None:
        soft = "no soft loss" if math.isnan(row.soft_loss) else f"soft_loss={row.soft_loss:.4f}"
        self.say(f"Epoch {row.epoch:4}: {soft}, hard_acc={100 * accuracy:.2f}%")

    def compared(self, standing: Standing) -> None:
        best, median = standing.soft_losses
        self.say(
            f"Epoch {standing.epoch:4}: soft_loss={best:.4f} at best, {median:.4f} in the median, "
            f"solved {standing.solved} of {len(standing.seeds)}"
        )

    def placed(self, engine: EngineInfo, reason: str) -> None:
        self.say(f"Engine {describe_engine(engine)}; {reason}")

    def noticed(self, text: str) -> None:
        click.echo(f"Warning: {text}", err=True)

    def ended(self, run: Run) -> None:
        self.say(f"\n{run.summary}Run folder:      {run.path}")
        if run.interrupted is not None:
            self.say(interruption(run))


class Bar(LiveBar, Lines):
    """The lines, and below them progress, epochs per second and the time left."""

    def __init__(self) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("epoch"),
            progress.MofNCompleteColumn(),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[speed]}"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            transient=True,
        )

    def show_target(self, config: Config) -> None:
        preview.show(config, self._bar.console)

    def began(self, beginning: Beginning) -> None:
        super().began(beginning)
        total = beginning.config.train.epochs
        self._task = self._bar.add_task("train", total=total, completed=beginning.epoch, speed="")

    def advanced(self, epoch: int) -> None:
        speed = self._bar.tasks[0].speed
        text = "" if speed is None else f"{speed:.1f} epochs/s"
        self._bar.update(self._task, completed=epoch, speed=text)

    def ended(self, run: Run) -> None:
        self._bar.stop()
        super().ended(run)


class JsonLines(Reporter):
    """Events as JSON objects, one per line: begin, placed, epoch, notice, checkpoint, end."""

    def began(self, beginning: Beginning) -> None:
        population = {"population": beginning.population} if beginning.population > 1 else {}
        _emit("begin", path=str(beginning.path), epoch=beginning.epoch, why=beginning.reason,
              engine=asdict(beginning.engine), config=beginning.config.to_dict(), **population)  # fmt: skip
        if warning := software_warning(beginning):
            self.noticed(warning)

    def logged(self, row: Row, accuracy: float) -> None:
        _emit("epoch", **row.to_dict(), hard_acc=percent(accuracy))

    def compared(self, standing: Standing) -> None:
        members = [
            {"seed": seed, **row.to_dict(), "hard_acc": percent(accuracy)}
            for seed, row, accuracy in zip(standing.seeds, standing.rows, standing.accuracies, strict=True)
        ]
        best, median = (None if math.isnan(loss) else loss for loss in standing.soft_losses)
        _emit("epoch", epoch=standing.epoch, soft_loss_best=best, soft_loss_median=median, solved=standing.solved,
              members=members)  # fmt: skip

    def placed(self, engine: EngineInfo, reason: str) -> None:
        _emit("placed", why=reason, engine=asdict(engine))

    def noticed(self, text: str) -> None:
        _emit("notice", text=text)

    def saved(self, epoch: int) -> None:
        _emit("checkpoint", epoch=epoch)

    def ended(self, run: Run) -> None:
        interrupted = None if run.interrupted is None else run.interrupted.name
        _emit("end", path=str(run.path), epoch=run.state.epoch, solved=run.solved, skipped=run.state.skipped,
              interrupted=interrupted, **ends(run), summary=run.summary)  # fmt: skip


def seeds(beginning: Beginning) -> str:
    """`seed 23`, or of a population `seeds 23 to 86`."""
    first = beginning.config.seed
    last = first + beginning.population - 1
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def percent(accuracy: float) -> float | None:
    """None before the first evaluation."""
    return None if math.isnan(accuracy) else round(100 * accuracy, 4)


def ends(run: Run) -> dict[str, Any]:
    """How each member of a population ended."""
    if len(run.members) == 1:
        return {}
    members = [
        {"seed": each.seed, "solved": each.solved, "first_solved": each.first_solved, "best": each.best}
        for each in run.members
    ]
    return {"best_seed": run.best.seed, "members": members}


def choose(as_json: bool) -> Reporter:
    """JSON where asked for, a bar on a terminal, else lines."""
    if as_json:
        return JsonLines()
    return Bar() if sys.stdout.isatty() else Lines()


def software_warning(beginning: Beginning) -> str | None:
    """A warning where a GPU engine runs on the CPU."""
    info = beginning.engine
    if info.engine != "gpu" or not info.software:
        return None
    return f"{info.adapter} is a software adapter, a GPU imitated by the CPU: results are right, but slow to come."


def interruption(run: Run) -> str:
    """What to do after a signal."""
    assert run.interrupted is not None
    done, total = run.state.epoch, run.config.train.epochs
    if done >= total:
        return f"{run.interrupted.name} came when the last epoch was done: the run is complete."
    return (
        f"Interrupted by {run.interrupted.name} after epoch {done} of {total}; the checkpoint is written. "
        f"Continue with: {RESUME} {run.path}"
    )


def _emit(event: str, **fields: Any) -> None:
    click.echo(json.dumps({"event": event, **fields}, allow_nan=False))
