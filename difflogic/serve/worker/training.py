"""Run one try at a training job, under one lease, from the newest readable checkpoint or the beginning."""

import math
import shutil
import time
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import asdict, replace
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
"""Maximum number of steps of the recorded episode, and milliseconds per frame."""
TryOutcome = tuple[bool, dict[str, Any]]
"""Whether a try at a training was interrupted, and final values of the job's columns, for `Store.finish`."""


def train(store: Store, job: JobRecord, placement: Placement, observer: ServiceObserver) -> TryOutcome:
    """Train a job in its folder, from its newest readable checkpoint. Raises the errors of `Trainer.run`.

    The training handles no signals, since the worker does.
    """
    if job.config is None:
        raise StoreError(f"The job {job.id} has no configuration to train: delete it.")
    config = any_config(job.config)
    # An environment `module:Name` would import the module, which a server's job may not. A trial may, since its sweep
    # may have been started by a user of this machine.
    if job.parent is None and isinstance(config, AgentConfig) and ":" in config.environment.id:
        raise ConfigError(f"The environment of a job must not be in a module, got {config.environment.id}.")
    while True:
        try:
            return _train(store, job, config, placement, observer)
        # A damaged checkpoint is put aside, and the try begins again with the previous checkpoint. An error after the
        # beginning of the training has another cause.
        except CheckpointError as error:
            if observer.began_at is not None or not _set_aside(open_run(store.job_folder(job).whole), error):
                raise


def _train(
    store: Store, job: JobRecord, config: Config | PolicyConfig, placement: Placement, observer: ServiceObserver
) -> TryOutcome:
    path = store.job_folder(job).whole
    # If the last worker was lost after the last attempt but before its report, only the report is missing.
    if job.parent is None and attempts.is_in(path) and attempts.read(path).is_over:
        return _outcome_of_attempts(store, job, path)
    # A worker that was lost at the beginning leaves a folder without a checkpoint, and a new run requires a new folder.
    is_new = not run_request.is_in(path)
    if is_new:
        clear_unsaved(path)
    within = job.asked.within
    samples = BytesIO(b64decode(job.options["data"])) if is_new and "data" in job.options else None
    tests = config.table.test if isinstance(config, ClassifierConfig) else None
    request = replace(
        job.asked,
        config=config,
        # Earlier tries have used a part of the time limit; used epochs are counted in the record of attempts.
        within=None if within is None else replace(within, used=job.trained_s),
        decide=bool(job.options.get("decide")),
        data=dataset.load(samples) if samples and tests is None else None,
        table=replace(decoded(samples), tests=tests) if samples and tests is not None else None,
        # The source is only read at the beginning: it may be deleted while this job trains.
        init_from=store.job_folder(store.job(job.source, job.owner)).run if is_new and job.source is not None else None,
    )
    if job.parent is not None:
        return _of_trial(request, path, placement, observer)
    out, resume = (path, None) if is_new else (None, path)
    trained = run_request.run_request(request, placement, out, resume, observer)
    if trained.attempts is not None:
        return _outcome_of_attempts(store, job, path, trained.attempts.out_of_time)
    if not trained.run.complete:
        return True, {"progress": trained.run.epoch, "saved_progress": trained.run.epoch}
    return False, _final_progress(store, job, trained.run)


def _of_trial(request: TrainRequest, path: Path, placement: Placement, observer: ServiceObserver) -> TryOutcome:
    """Train a trial of a sweep in the folder `path`; the result of a completed trial is its `Outcome`."""
    started = time.monotonic()
    outcome = trial.train(request, path, placement, observer)
    outcome = replace(outcome, seconds=round(time.monotonic() - started, 3))
    progress: dict[str, Any] = {"progress": outcome.done, "saved_progress": outcome.done}
    is_interrupted = outcome.status == "interrupted"
    return is_interrupted, progress if is_interrupted else progress | {"result": asdict(outcome)}


def _outcome_of_attempts(store: Store, job: JobRecord, path: Path, out_of_time: bool = False) -> TryOutcome:
    record = attempts.read(path)
    if not record.is_over and not out_of_time:
        return True, {"progress": record.attempts[-1].epoch}
    # From now on the job shows the epochs, files and rows of its best attempt.
    best = record.attempts[record.best]
    summary = {"attempt": best.number, "goal": best.epochs, "saved_progress": best.epoch}
    final = _final_progress(store, job, load_any(path / best.folder))
    # With `until_solved` the test on new initial states decides, not the evaluation grids.
    solved = {} if record.restarts is not None else {"solved": int(best.status == "solved")}
    return False, summary | final | solved | {"result": result_of_attempts(record)}


def _final_progress(store: Store, job: JobRecord, run: Run | AgentRun) -> dict[str, Any]:
    """Return the columns of a job whose run is over, and save images of its circuit or agent to the job's files."""
    if isinstance(run, AgentRun):
        from difflogic.policies.results import netlist_of  # only agents need this package

        circuit, solved = netlist_of(run.best), len(run.solved_members)
        if isinstance(run.config, AgentConfig):
            store.job_folder(job).keep(_pictures(run, circuit if isinstance(circuit, Controller) else None, job.name))
        gates = None if circuit is None else live_gates(circuit)
        return {"progress": run.epoch, "goal": run.epoch, "score": run.score, "solved": solved, "active_gates": gates}
    netlist = run.netlist
    if run.wrong == 0:  # a solution gets an interactive page, and a drawing
        from difflogic.actions.simplify import drawings

        store.job_folder(job).keep(drawings(netlist, job.name).items())
    soft = [member.metrics[-1].soft_loss for member in run.members if member.metrics]
    return {
        "progress": run.epoch,
        "soft_loss": min((loss for loss in soft if math.isfinite(loss)), default=None),
        "hard_loss": run.wrong,
        # Number of models that are solved at the end, at least 1 if the best circuit of the run is correct.
        "solved": max(sum(member.solved for member in run.members), run.wrong == 0),
        "active_gates": live_gates(netlist),
        "compared": run.member.job.values,
    }


def _pictures(run: AgentRun, controller: Controller | None, name: str) -> Iterator[tuple[str, str | bytes]]:
    """Yield (name, content) of files about the best agent: a recorded episode, and a controller's page and drawing."""
    from difflogic.actions.simplify import drawings
    from difflogic.policies import film

    if controller is not None:
        yield from drawings(controller, name).items()
    try:
        frames = film.of_agent(run.best, FILM_STEPS, controller)
    # The agent is valid even if its environment draws nothing, or needs packages to draw that are not installed.
    except (UsageError, MissingPackagesError) as error:
        say(str(error))
    else:
        yield "episode.gif", film.encoded(frames, ".gif", FRAME_MS)


def open_run(path: Path) -> Path:
    """Return the run folder in which training continues; with restarts, that of the last attempt."""
    return path / attempts.read(path).attempts[-1].folder if attempts.is_in(path) else path


def _set_aside(run: Path, error: CheckpointError) -> bool:
    """Rename the newest checkpoint or, if it is the only one, the run folder; return False if there is none."""
    checkpoints = [run / name for name in (checkpoint.NAME, checkpoint.PREVIOUS) if (run / name).exists()]
    if not checkpoints:
        return False
    newest = checkpoints[0]
    say(f"{newest.name} cannot be used: {error}")
    # If the previous checkpoint is damaged too, the loop in `train` calls this function again.
    if len(checkpoints) > 1:
        newest.replace(newest.with_suffix(".unusable"))
        return True
    RunFolder(run).close()  # raises RunFolderError if another process holds it
    aside = next(path for number in range(1, 1000) if not (path := run.with_name(f"unusable-{number}")).exists())
    run.rename(aside)
    say(f"no checkpoint is usable: restarting the run, with the old files in {aside.name}")
    return True


def clear_unsaved(path: Path) -> None:
    """Delete the folder of a worker lost before its first checkpoint, if it exists. Raises RunFolderError if in use."""
    if path.exists():
        RunFolder(path).close()
        shutil.rmtree(path)
