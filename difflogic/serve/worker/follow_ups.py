"""Jobs on what another job made: simplify, prove, export, evaluate, by the functions that the command line uses.

The files go to the job's own folder `files/`, and a few numbers into its `result`:

    simplify  options {"from_start": false, "size": null, "task": false}
                                          circuit.json, circuit.svg, simplify.json  {"gates": {}, "equal": true, ...}
    prove     options {"every_start": false}
                                          proof.json; of a simplification verdicts.json   {"proved": true, "text": ""}
    export    options {"formats": [...]}  what each format is made of               {"formats": {}, "left_out": {}}
    evaluate  options {"quick": false}    evaluation.json, report.html              {"measures": {}}

Of agents the circuit is a controller: see `agent_follow_ups`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from difflogic.errors import CheckpointError, CircuitError, StoreError, UsageError
from difflogic.model import controller_json
from difflogic.runs import checkpoint, manifest
from difflogic.serve.store.files import JobFolder
from difflogic.serve.store.jobs import JobRecord
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say
from difflogic.system import files

CIRCUIT = "circuit.json"
MOST_DRAWN = 2000
"""Gates of a circuit that is still drawn."""

Result = dict[str, Any]
Made = tuple[dict[str, str | bytes], Result]
"""Files by their names, and a result."""


def follow(store: Store, job: JobRecord) -> Result:
    """Do the job; returns its result. Raises UnknownJobError, OSError, and what the functions raise."""
    if job.source is None:
        raise StoreError(f"The job {job.id} does not name the job whose circuit it needs: delete it.")
    source = store.job(job.source, job.owner)
    given = _circuit_of(store.job_folder(source))
    if job.kind == "prove" and source.source is not None and not given.is_dir():
        made, result = _compare(_circuit_of(store.job_folder(store.job(source.source, job.owner))), given)
    else:
        made, result = _KINDS[job.kind](job, given)
    out = store.job_folder(job.id).files
    out.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        files.write_atomically(out / name, content if isinstance(content, bytes) else content.encode())
    return result


def _circuit_of(source: JobFolder) -> Path:
    """Where the circuit of a job is: its simplified circuit, or its run folder."""
    # A follow-up of a simplification takes what that one made; of a training, the run.
    for simplified in (source.files / CIRCUIT, source.files / controller_json.NAME):
        if simplified.exists():
            return simplified
    if not any((source.run / name).exists() for name in (checkpoint.NAME, checkpoint.PREVIOUS)):
        raise CheckpointError("The job that this one follows has no circuit yet: let it train first.")
    return source.run


def _simplify(job: JobRecord, given: Path) -> Made:
    from difflogic.circuits.export import formats
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.convert import gate_count
    from difflogic.circuits.synthesis.pipeline import simplify
    from difflogic.model import netlist_json

    to_start, to_task = bool(job.options.get("from_start")), bool(job.options.get("task"))
    size = job.options.get("size")
    if (controller := source.controller(given)) is not None:
        from difflogic.serve.worker import agent_follow_ups

        return agent_follow_ups.simplify(job.name, controller, to_task)
    circuit = source.load(given)
    width, height = map(int, size.split("x")) if size else (0, 0)
    task = circuit.task if to_task else None
    found = simplify(circuit.netlist, to_start, task, size=(height, width) if size else None)
    report = found.report(circuit.kind, circuit.paper_gates)
    made: dict[str, str | bytes] = {
        CIRCUIT: netlist_json.to_json(found.netlist),
        "simplify.json": json.dumps(report) + "\n",
    }
    # A larger drawing is megabytes that no browser shows in reasonable time.
    if gate_count(found.netlist) <= MOST_DRAWN:
        for content in formats.export(found.netlist, job.name, "svg").values():
            made["circuit.svg"] = content
    return made, {name: report[name] for name in ("gates", "equal", "how", "from_start", "task_only", "note")}


def _prove(job: JobRecord, given: Path) -> Made:
    from difflogic.evaluation import proof as proofs
    from difflogic.evaluation import trained_circuit

    found = proofs.decide(proofs.of_run(trained_circuit.load(given), bool(job.options.get("every_start"))))
    return {proofs.NAME: found.to_json()}, {"proved": found.proved, "text": found.text}


def _compare(before: Path, after: Path) -> Made:
    """Whether a simplification does what the circuit that it was made of does, by every judge that is installed."""
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis import controller as controllers
    from difflogic.circuits.synthesis.prove import prove, together

    one, other = source.controller(before), source.controller(after)
    if one is not None and other is not None:
        verdicts, same = controllers.prove(one, other), "take the same action at every observation"
    else:
        verdicts = prove(source.load(before).netlist, source.load(after).netlist)
        same = "compute the same next state from every neighbourhood"
    equal = together(verdicts)
    report = json.dumps({"equal": equal, "verdicts": [asdict(each) for each in verdicts]}) + "\n"
    word = {True: f"Equal: the two {same}.", False: f"Different: the two do not {same}.", None: "Undecided."}[equal]
    text = " ".join([word, *(f"{each.judge}: {each.how}." for each in verdicts)])
    return {"verdicts.json": report}, {"proved": equal, "text": text}


def _export(job: JobRecord, given: Path) -> Made:
    from difflogic.circuits.export import formats
    from difflogic.circuits.readers import source

    wanted = job.options.get("formats") or list(formats.FORMATS)
    unknown = sorted(set(wanted) - formats.FORMATS.keys())
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a format: expected {', '.join(formats.FORMATS)}.")
    netlist = source.controller(given) or source.load(given).netlist
    made: dict[str, str | bytes] = {}
    written: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    for form in wanted:
        try:
            contents = formats.export(netlist, job.name, form)
        # Some formats cannot hold every circuit. The others are made all the same, and the result says which were left
        # out and why.
        except CircuitError as error:
            left_out[form] = str(error)
            continue
        made |= contents
        written[form] = list(contents)
        say(f"{form}: {', '.join(contents)}")
    if not made:
        raise CircuitError(" ".join(left_out.values()))
    return made, {"formats": written, "left_out": left_out}


def _evaluate(job: JobRecord, given: Path) -> Made:
    if manifest.is_policy(manifest.read(given)):
        from difflogic.serve.worker import agent_follow_ups

        return agent_follow_ups.evaluate(given, bool(job.options.get("quick")))
    from difflogic.devices.open import place
    from difflogic.evaluation.evaluate import NAME, evaluate
    from difflogic.evaluation.report import to_html

    if not given.is_dir():
        raise UsageError("A circuit without its run cannot be evaluated: evaluate the job that trained it.")
    found = evaluate(given, place("cpu").engine, quick=bool(job.options.get("quick")), tell=say)
    # The report goes to the job's owner: a path of this machine becomes the id of the job.
    found = replace(found, trained=replace(found.trained, path=Path(str(job.source))))  # not where the store is
    made: dict[str, str | bytes] = {NAME: found.to_json(), "report.html": to_html(found)}
    return made, {"measures": {measure.key: measure.text for measure in found.measures}}


_KINDS: dict[str, Callable[[JobRecord, Path], Made]] = {
    "simplify": _simplify,
    "prove": _prove,
    "export": _export,
    "evaluate": _evaluate,
}
