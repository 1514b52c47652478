"""Run post-processing jobs (simplify, build, prove, export and evaluate) with `difflogic.actions`.

A job writes its files to the folder `files/` in its job folder, and numbers and short texts to its `result`:

    simplify  options {"from_start": false, "size": null, "task": false}
              circuit.json or controller.json, simplify.json, circuit.svg, live.html  {"gates": {}, "equal": true, ...}
    build     circuit.json, proof.json, circuit.svg, live.html                        the same, and {"proved": true}
    prove     options {"every_start": false}
              proof.json, or verdicts.json for a simplified circuit                   {"proved": true, "text": ""}
    export    options {"formats": [...]}
              the files of each format                                                {"formats": {}, "left_out": {}}
    evaluate  options {"quick": false}
              evaluation.json, report.html                                            {"measures": {}}
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from difflogic.actions.export import export
from difflogic.actions.prove import prove
from difflogic.actions.result import ActionResult
from difflogic.actions.simplify import drawings, simplify
from difflogic.circuits.readers.source import is_of_agents
from difflogic.config.values import Size
from difflogic.devices.open import place
from difflogic.errors import CheckpointError, StoreError, UsageError
from difflogic.model import function_json
from difflogic.runs import checkpoint
from difflogic.serve.store.files import JobFolder
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say

CIRCUIT = "circuit.json"

Result = dict[str, Any]


def follow(store: Store, job: JobRecord) -> Result:
    """Run a post-processing job and return its result. Raises UnknownJobError, OSError, or an error of the action."""
    if job.source is None:
        raise StoreError(f"The job {job.id} has no source job with a circuit: delete it.")
    source = store.job(job.source, job.owner)
    folder = store.job_folder(source)
    circuit, before = folder.whole if job.kind == "build" else _circuit_of(folder), None
    if job.kind == "prove" and source.source is not None and not circuit.is_dir():
        # Every installed checker proves that a simplified circuit is equal to its original.
        before = _circuit_of(store.job_folder(store.job(source.source, job.owner)))
    action, result = _KINDS[job.kind](job, circuit, before)
    store.job_folder(job.id).keep(action.files.items())
    return result


def _circuit_of(source: JobFolder) -> Path:
    """Return a job's simplified circuit file, otherwise its run folder. Raises CheckpointError if neither exists."""
    for simplified in (source.files / name for name in (CIRCUIT, function_json.NAME, function_json.FUNCTION)):
        if simplified.exists():
            return simplified
    if not any((source.run / name).exists() for name in (checkpoint.NAME, checkpoint.PREVIOUS)):
        raise CheckpointError("The source job has no circuit yet: train it first.")
    return source.run


def _simplify(job: JobRecord, circuit: Path, _: Path | None) -> tuple[ActionResult, Result]:
    size = Size.parse(job.options["size"]) if job.options.get("size") else None
    simplified = simplify(
        circuit,
        from_start=bool(job.options.get("from_start")),
        size=None if size is None else (size.height, size.width),
        task=bool(job.options.get("task")),
    )
    simplified.files.update(drawings(simplified.netlist, job.name))
    report = {name: value for name, value in simplified.report.items() if name != "steps"}
    return simplified, report | {"text": simplified.text}


def _build(job: JobRecord, run: Path, _: Path | None) -> tuple[ActionResult, Result]:
    from difflogic.actions.build import build

    built = build(run)
    built.files.update(drawings(built.netlist, job.name))
    return built, built.report | {"text": built.text}


def _prove(job: JobRecord, circuit: Path, before: Path | None) -> tuple[ActionResult, Result]:
    every_start = bool(job.options.get("every_start"))
    proof = prove(circuit, every_start=every_start) if before is None else prove(before, circuit)
    return proof, {"proved": proof.proved, "text": proof.text}


def _export(job: JobRecord, circuit: Path, _: Path | None) -> tuple[ActionResult, Result]:
    exported = export(circuit, job.options.get("formats") or (), name=job.name)
    for form, names in exported.report["formats"].items():
        say(f"{form}: {', '.join(names)}")
    return exported, exported.report


def _evaluate(job: JobRecord, circuit: Path, _: Path | None) -> tuple[ActionResult, Result]:
    from difflogic.actions.evaluate import evaluate

    if not circuit.is_dir():
        raise UsageError("Cannot evaluate a circuit without its run: evaluate the job that trained it.")
    # The job's owner reads the report: the id of the job replaces the private path of the store.
    agents = is_of_agents(circuit)
    engine = None if agents else place("cpu").engine
    quick = bool(job.options.get("quick"))
    evaluation = evaluate(circuit, engine, quick=quick, tell=say, html=not agents, called=str(job.source))
    return evaluation, {"measures": {measure.key: measure.text for measure in evaluation.measures}}


_KINDS: dict[str, Callable[[JobRecord, Path, Path | None], tuple[ActionResult, Result]]] = {
    "simplify": _simplify,
    "build": _build,
    "prove": _prove,
    "export": _export,
    "evaluate": _evaluate,
}
