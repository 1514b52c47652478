"""One try at a training of agents: from its newest checkpoint that can be read, else from the beginning."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from difflogic.circuits.export import formats
from difflogic.config.policy import PolicyConfig
from difflogic.config.request import Within
from difflogic.devices.device import Device
from difflogic.errors import CircuitError, ConfigError, MissingPackagesError, UsageError
from difflogic.model.statistics import active_gates, census
from difflogic.policies import controllers, film
from difflogic.policies.actors import LogicActor
from difflogic.policies.environments import Environments
from difflogic.policies.rows import PolicyRow
from difflogic.policies.training import PolicyObserver, PolicyRun, PolicyTrainer
from difflogic.runs import checkpoint
from difflogic.serve.store.files import JobFolder
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.lease import Lease
from difflogic.serve.worker.log import say
from difflogic.serve.worker.observer import GateHistory, ServiceObserver
from difflogic.serve.worker.training import TrainingOutcome, clear_unsaved, persistent
from difflogic.system import files
from difflogic.train.signals import OVER, Deadline, Stop

SIGN_S = 1.0
"""Seconds between two signs of life within an iteration: were there thousands, what follows them would seem to hang."""
FILM, FILM_STEPS, FRAME_MS = "episode.gif", 500, 40


def device_of(engine: str, worker: str) -> Device:
    """Where agents are trained, for a job that asked for this engine: networks this small on the processor."""
    return Device(worker if engine.startswith("gpu") else "reference" if engine == "reference" else "cpu")


def train(store: Store, job: JobRecord, device: Device, observer: AgentObserver) -> TrainingOutcome:
    """Train a job in its folder, from where it is. Raises what `PolicyTrainer.run` raises."""
    config = PolicyConfig.from_dict(job.config or {})
    # Of an environment `module:Name` the module would be imported: whatever a server said, none is.
    if ":" in config.environment.id:
        raise ConfigError(f"A job may not name a module, got the environment {config.environment.id}.")
    make = partial(_until_solved if job.asked.until_solved else _train, store, job, config, device, observer)
    return persistent(observer, lambda: observer.folder.run, make)


def _train(
    store: Store, job: JobRecord, config: PolicyConfig, device: Device, observer: AgentObserver
) -> TrainingOutcome:
    # The source is read at the beginning only: it may be deleted while this job trains.
    lender = None if job.source is None else store.job_folder(store.job(job.source, job.owner)).run
    run = _run(PolicyTrainer(config, device), job, observer, observer.stop, lender)
    if run.complete:
        _draw(run, job.name, observer.folder.files)
    return TrainingOutcome(not run.complete, observer.reached(run))


def _run(
    trainer: PolicyTrainer, job: JobRecord, observer: AgentObserver, stop: Stop, lender: Path | None = None
) -> PolicyRun:
    """The run in the folder that the observer is at, from where it is."""
    path = observer.folder.run
    if checkpoint.is_in(path):
        return trainer.resume(path, job.asked.stop_when_solved, observer, stop)
    clear_unsaved(path)
    return trainer.run(path, job.asked.population, job.asked.stop_when_solved, observer, stop, lender)


def _until_solved(
    store: Store, job: JobRecord, config: PolicyConfig, device: Device, observer: AgentObserver
) -> TrainingOutcome:
    """Attempts of ever other seeds, each in a folder of its own, until one is solved or the time is over."""
    stop = Deadline(observer.stop, Within.parse(str(job.asked.within)).seconds or 0.0, job.trained_s)
    number = max(1, job.attempt)
    made = [each for each in (job.result or {}).get("attempts", []) if each["number"] < number]
    while True:
        own = config.with_(seed=config.seed + number - 1)
        observer.attempted(number, [*made, {"number": number, "seed": own.seed, "status": "running"}])
        run = _run(PolicyTrainer(own, device), job, observer, stop)
        if not run.complete and not str(run.interrupted).startswith(OVER):
            return TrainingOutcome(True, observer.reached(run))
        status = "out of time" if not run.complete else "solved" if run.solved else "complete"
        solved = {"solved": int(status == "solved")}
        reached = observer.reached(run)
        told = {"number": number, "seed": own.seed, "status": status, "epoch": reached["progress"]}
        made.append({**told, **reached, **solved})
        best = max(made, key=lambda each: (each["solved"], -math.inf if each["score"] is None else each["score"]))
        if best is made[-1]:
            _draw(run, job.name, observer.folder.files)
        if status != "complete":
            break
        number += 1
    # The job becomes what its best attempt is: its steps, files and rows are those that are shown from now on.
    progress = {name: value for name, value in best.items() if name not in told}
    return TrainingOutcome(False, progress | {"attempt": best["number"], "result": {"attempts": made}})


def _standing(run: PolicyRun) -> dict[str, Any]:
    """What a job shows of its agents, by their last evaluation."""
    best = run.best
    actor = best.agent.actor
    return {
        "score": None if best.score is None else best.score.mean,
        "solved": len(run.solved),
        "active_gates": active_gates(actor.circuit.flat_logits()) if isinstance(actor, LogicActor) else None,
    }


def _draw(run: PolicyRun, name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in _pictures(run, name):
        files.write_atomically(folder / file, content if isinstance(content, bytes) else content.encode())


def _pictures(run: PolicyRun, name: str) -> Iterator[tuple[str, str | bytes]]:
    """The best agent as a film of an episode; of a controller also its page, and its circuit, drawn."""
    actor, spaces, controller = run.best.agent.actor, run.best.environments.spaces, None
    if isinstance(actor, LogicActor) and not spaces.continuous:
        controller = controllers.of_actor(actor, run.config.environment.id, spaces)
        for form in ("html", "svg"):
            with suppress(CircuitError):  # too large to be drawn
                yield from formats.export(controller, name, form).items()
    try:
        frames = film.of_agent(run.best, FILM_STEPS, controller)
    # An agent is no worse for an environment that draws nothing, or one whose painter is not installed.
    except (UsageError, MissingPackagesError) as error:
        say(str(error))
    else:
        yield FILM, film.encoded(frames, ".gif", FRAME_MS)


class AgentObserver(ServiceObserver, PolicyObserver):
    """The observer of the training of agents."""

    def __init__(self, lease: Lease, stopping: Callable[[], bool]) -> None:
        super().__init__(lease, stopping)
        self._signed = time.monotonic()

    @property
    def folder(self) -> JobFolder:
        """The run folder of the job's current attempt."""
        return self._folder

    def attempted(self, number: int, attempts: list[dict[str, Any]]) -> None:
        """Go to the folder of an attempt, which begins or goes on."""
        say(f"attempt {number}, seed {attempts[-1]['seed']}")
        self._go_to(number, result={"attempts": attempts})

    def reached(self, run: PolicyRun) -> dict[str, Any]:
        """Columns of the job, of a run that has ended or was interrupted."""
        steps = run.iteration * run.best.agent.iteration_steps
        if run.interrupted is not None and not str(run.interrupted).startswith(OVER):
            return {"progress": steps, "saved_progress": steps}
        return {"progress": steps, "goal": steps, "saved_progress": steps, **_standing(run)}

    def began(self, run: PolicyRun) -> None:
        self._run = run
        size = run.best.agent.iteration_steps
        self.began_at = run.iteration * size
        say(f"on {run.device.described()}, from step {self.began_at}")
        self._gates = GateHistory(self._folder.gates, self.began_at)
        steps = {"progress": self.began_at, "saved_progress": self.began_at, "goal": run.iterations * size}
        self._lease.progress |= steps
        self._lease.enter("compiling")

    def stepped(self, environments: Environments) -> None:
        self._sign()

    def played(self) -> None:
        self._sign()

    def _sign(self) -> None:
        if time.monotonic() - self._signed >= SIGN_S:
            self._signed = time.monotonic()
            self._lease.alive(trained_s=self.trained_s)
            self._heed()

    def iterated(self, rows: list[PolicyRow]) -> None:
        self._signed = time.monotonic()
        if self._lease.phase == "compiling":
            self._lease.enter("training", warm=True)
        steps = rows[0].steps
        self._moved(steps)
        if rows[0].score is None:
            return
        # The checkpoint of this iteration is written.
        actor = self._run.best.agent.actor
        if isinstance(actor, LogicActor):
            self._gates.append(steps, census(actor.circuit))
        standing = _standing(self._run)
        say(f"step {steps}: mean return {standing['score']:.1f}")
        if self._lease.job.asked.until_solved:  # which is known when its last episodes are played
            standing["solved"] = 0
        self._lease.report(progress=steps, saved_progress=steps, **standing)

    def noticed(self, text: str) -> None:
        say(text)

    def ending(self) -> None:
        self._lease.enter("finishing")
