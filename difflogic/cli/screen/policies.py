"""The training of agents reports each event once, in fields and in words."""

from __future__ import annotations

import signal
import statistics

from difflogic.cli.screen.sinks import Event, Lines
from difflogic.policies.actors import LogicActor
from difflogic.policies.results import summary
from difflogic.policies.rows import PolicyRow
from difflogic.policies.training import PolicyObserver, PolicyRun
from difflogic.system.files import quoted


class PolicyReporter(PolicyObserver):
    """Describes to a sink what a run tells its observer.

    The events are begin, iteration, evaluation, notice and end.
    """

    def __init__(self, sink: Lines) -> None:
        self._sink = sink
        self.total = 0
        """Environment steps that there will be."""

    def began(self, run: PolicyRun) -> None:
        config, agent, spaces = run.config, run.best.agent, run.best.environments.spaces
        actor = agent.actor
        made_of = f"{actor.circuit.gates} gates, {actor.thermometer.bits} thresholds" if isinstance(
            actor, LogicActor) else f"dense layers of {', '.join(map(str, config.mlp.widths))}"  # fmt: skip
        models = "" if len(run.members) == 1 else f", {len(run.members)} agents from seed {config.seed} on"
        text: list[object] = [
            f"{config.name}: {config.environment.id}, {spaces.observations} numbers to {spaces.actions} actions; "
            f"{config.algorithm} for {config.steps} steps, {made_of}, seed {config.seed}{models}",
            f"Device {run.device.described()}",
            f"Run folder {run.path}",
        ]
        if run.iteration:
            text.append(f"Going on after iteration {run.iteration} of {run.iterations}")
        fields = {
            "path": str(run.path), "iteration": run.iteration, "iterations": run.iterations,
            "device": str(run.device), "config": config.to_dict(),
        }  # fmt: skip
        self._sink.show(Event("begin", fields, text))
        self.total = run.iterations * agent.iteration_steps
        self._sink.advance(run.iteration * agent.iteration_steps, self.total)

    def iterated(self, rows: list[PolicyRow]) -> None:
        last = rows[0]
        self._sink.show(Event("iteration", {"rows": [row.to_dict() for row in rows]}))
        self._sink.advance(last.steps, self.total)
        scores = [row.score for row in rows if row.score is not None]
        if not scores:
            return
        returns = [row.mean_return for row in rows if row.mean_return is not None]
        training = f", {statistics.median(returns):.1f} while training" if returns else ""
        many = f" at best, {statistics.median(scores):.1f} in the median" if len(rows) > 1 else ""
        text = f"Step {last.steps:7}: mean return {max(scores):.1f}{many}{training}, {last.steps_per_s:.0f} steps/s"
        self._sink.show(Event("evaluation", {"steps": last.steps, "scores": scores}, [text]))

    def noticed(self, text: str) -> None:
        self._sink.show(Event("notice", {"text": text}, [text], is_warning=True))

    def ended(self, run: PolicyRun) -> None:
        words = summary(run)
        text = [f"\n{words.rstrip()}", f"Run folder:      {run.path}"]
        if run.interrupted is not None and run.path is not None:
            why = signal.Signals(run.interrupted).name if isinstance(run.interrupted, int) else run.interrupted
            text.append(f"Interrupted by {why}. Go on with: difflogic train-policy --resume {quoted(run.path)}")
        fields = {
            "path": str(run.path),
            "iteration": run.iteration,
            "solved": len(run.solved),
            "complete": run.complete,
            "scores": [None if each.score is None else each.score.mean for each in run.members],
            "summary": words,
        }
        self._sink.finish()
        self._sink.show(Event("end", fields, text))
