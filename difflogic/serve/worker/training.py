"""One try at a training job: from its newest checkpoint that can be read, else from the beginning."""

import math
import shutil
import time
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from difflogic.circuits.synthesis.function import live_gates
from difflogic.config import dataset
from difflogic.config.policy import AgentConfig, ClassifierConfig, PolicyConfig, any_config
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.table import decoded
from difflogic.devices.open import Placement
from difflogic.errors import CheckpointError, ConfigError, MissingPackagesError, StoreError, UsageError
from difflogic.model.controller import Controller
from difflogic.runs import attempts, checkpoint
from difflogic.runs.folder import RunFolder
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say
from difflogic.serve.worker.observer import ServiceObserver, result_of_attempts
from difflogic.sweeps import trial
from difflogic.train import run_request
from difflogic.train.run import AgentRun, Run, load_any

FILM_STEPS, FRAME_MS = 500, 40
"""Of an episode that is shown."""


@dataclass(frozen=True)
class TrainingOutcome:
    """How a try at a training ended: interrupted or done, with what it came to."""

    interrupted: bool
    progress: dict[str, Any]
    """Columns of the job, as `Store.release` and `Store.finish` take them."""


def train(store: Store, job: JobRecord, placement: Placement, observer: ServiceObserver) -> TrainingOutcome:
    """Train a job in its folder, from the newest checkpoint that can be read. Raises what `Trainer.run` raises.

    Signals are the worker's own, so that it knows of every one, whatever else ends the training.
    """
    if job.config is None:
        raise StoreError(f"The job {job.id} has no configuration to train: delete it.")
    config = any_config(job.config)
    # Of an environment `module:Name` the module would be imported: whatever a server said, none is. A trial may be
    # of a sweep on this machine.
    if job.parent is None and isinstance(config, AgentConfig) and ":" in config.environment.id:
        raise ConfigError(f"A job may not name a module, got the environment {config.environment.id}.")
    while True:
        try:
            return _train(store, job, config, placement, observer)
        # A damaged checkpoint is put aside, and the try begins again with the one before it. Once training has begun,
        # an error is not one of reading the first checkpoint.
        except CheckpointError as error:
            if observer.began_at is not None or not _set_aside(open_run(store.job_folder(job).whole), error):
                raise


def _train(
    store: Store, job: JobRecord, config: Config | PolicyConfig, placement: Placement, observer: ServiceObserver
) -> TrainingOutcome:
    path = store.job_folder(job).whole
    # All attempts may be over although the job is not, if its worker was lost before it could say so.
    if job.parent is None and attempts.is_in(path) and attempts.read(path).is_over:
        return _outcome_of_attempts(store, job, path)
    # A folder without a checkpoint is of a worker that was lost at the very beginning: a run needs a new one.
    is_new = not run_request.is_in(path)
    if is_new:
        clear_unsaved(path)
    within = job.asked.within
    samples = BytesIO(b64decode(job.options["data"])) if is_new and "data" in job.options else None
    tests = config.table.test if isinstance(config, ClassifierConfig) else None
    request = replace(
        job.asked,
        config=config,
        # Of whose time earlier tries have used some; epochs are counted by the attempts' record.
        within=None if within is None else replace(within, used=job.trained_s),
        decide=bool(job.options.get("decide")),
        data=dataset.load(samples) if samples and tests is None else None,
        table=replace(decoded(samples), tests=tests) if samples and tests is not None else None,
        # The source is read at the beginning only: it may be deleted while this job trains.
        init_from=store.job_folder(store.job(job.source, job.owner)).run if is_new and job.source is not None else None,
    )
    if job.parent is not None:
        return _of_trial(request, path, placement, observer)
    out, resume = (path, None) if is_new else (None, path)
    trained = run_request.run_request(request, placement, out, resume, observer)
    if trained.attempts is not None:
        return _outcome_of_attempts(store, job, path, trained.attempts.out_of_time)
    if not trained.run.complete:
        return TrainingOutcome(True, {"progress": trained.run.epoch, "saved_progress": trained.run.epoch})
    return TrainingOutcome(False, _final_progress(store, job, trained.run))


def _of_trial(request: TrainRequest, path: Path, placement: Placement, observer: ServiceObserver) -> TrainingOutcome:
    """Train a trial of a sweep, whose result, an `Outcome` of the sweep's, is compared with others'."""
    began = time.monotonic()
    made = trial.train(request, path, placement, observer)
    made = replace(made, seconds=round(time.monotonic() - began, 3))
    progress: dict[str, Any] = {"progress": made.done, "saved_progress": made.done}
    if made.status == "interrupted":
        return TrainingOutcome(True, progress)
    return TrainingOutcome(False, progress | {"result": asdict(made)})


def _outcome_of_attempts(store: Store, job: JobRecord, path: Path, out_of_time: bool = False) -> TrainingOutcome:
    record = attempts.read(path)
    made = record.attempts
    if not record.is_over and not out_of_time:
        return TrainingOutcome(True, {"progress": made[-1].epoch})
    # The job becomes what its best attempt is: its epochs, files and rows are those that are shown from now on.
    best = made[record.best]
    summary = {"attempt": best.number, "goal": best.epochs, "saved_progress": best.epoch}
    standing = _final_progress(store, job, load_any(path / best.folder))
    # Until it is solved means that the test of success was passed, and not that its probes are right.
    solved = {} if record.restarts is not None else {"solved": int(best.status == "solved")}
    return TrainingOutcome(False, summary | standing | solved | {"result": result_of_attempts(record)})


def _final_progress(store: Store, job: JobRecord, run: Run | AgentRun) -> dict[str, Any]:
    """What a job shows of a run that is over; of agents pictures are drawn too."""
    if isinstance(run, AgentRun):
        from difflogic.policies.results import netlist_of  # half of what it loads is for agents alone

        circuit, solved = netlist_of(run.best), len(run.solved_members)
        if isinstance(run.config, AgentConfig):
            store.job_folder(job).keep(_pictures(run, circuit if isinstance(circuit, Controller) else None, job.name))
        gates = None if circuit is None else live_gates(circuit)
        return {"progress": run.epoch, "goal": run.epoch, "score": run.score, "solved": solved, "active_gates": gates}
    netlist = run.netlist
    if run.wrong == 0:  # a solution as a page on which it lives, and drawn
        from difflogic.actions.simplify import drawings

        store.job_folder(job).keep(drawings(netlist, job.name).items())
    soft = [member.metrics[-1].soft_loss for member in run.members if member.metrics]
    return {
        "progress": run.epoch,
        "soft_loss": min((loss for loss in soft if math.isfinite(loss)), default=None),
        "hard_loss": run.wrong,
        # A population counts its solved models; one model counts too if its best circuit is right.
        "solved": max(sum(member.solved for member in run.members), run.wrong == 0),
        "active_gates": live_gates(netlist),
        "compared": run.member.job.values,
    }


def _pictures(run: AgentRun, controller: Controller | None, name: str) -> Iterator[tuple[str, str | bytes]]:
    """The best agent as a film of an episode; of a controller also its page, and its circuit, drawn."""
    from difflogic.actions.simplify import drawings
    from difflogic.policies import film

    if controller is not None:
        yield from drawings(controller, name).items()
    try:
        frames = film.of_agent(run.best, FILM_STEPS, controller)
    # An agent is no worse for an environment that draws nothing, or one whose painter is not installed.
    except (UsageError, MissingPackagesError) as error:
        say(str(error))
    else:
        yield "episode.gif", film.encoded(frames, ".gif", FRAME_MS)


def open_run(path: Path) -> Path:
    """Return the run folder in which training continues: with restarts that of the last attempt."""
    return path / attempts.read(path).attempts[-1].folder if attempts.is_in(path) else path


def _set_aside(run: Path, error: CheckpointError) -> bool:
    """The newest checkpoint cannot be used: put it aside, or where it is the last the whole run. False without any."""
    found = [run / name for name in (checkpoint.NAME, checkpoint.PREVIOUS) if (run / name).exists()]
    if not found:
        return False
    say(f"{found[0].name} cannot be used: {error}")
    # The one before it is intact, or is found out in the next round.
    if len(found) > 1:
        found[0].replace(found[0].with_suffix(".unusable"))
        return True
    RunFolder(run).close()  # RunFolderError where another process holds it
    aside = next(each for number in range(1, 1000) if not (each := run.with_name(f"unusable-{number}")).exists())
    run.rename(aside)
    say(f"no checkpoint can be used: the run starts again, and the old files are kept in {aside.name}")
    return True


def clear_unsaved(path: Path) -> None:
    """Its worker was lost before the first checkpoint. Raises RunFolderError where another process holds it."""
    if path.exists():
        RunFolder(path).close()
        shutil.rmtree(path)
