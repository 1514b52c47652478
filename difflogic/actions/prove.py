"""`prove`: prove the claim of a run's task, or the equivalence of two circuits."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from difflogic.actions.result import ActionResult, Given, ResultTable, opened
from difflogic.circuits.export.formats import written
from difflogic.circuits.export.text import Files
from difflogic.circuits.readers import source
from difflogic.circuits.readers.signals import Signals
from difflogic.circuits.readers.source import LoadedCircuit
from difflogic.circuits.synthesis import function as functions
from difflogic.circuits.synthesis import prove as equality
from difflogic.circuits.synthesis.prove import JUDGES, Counterexample, Equivalence
from difflogic.config.schema import Config
from difflogic.errors import CircuitError, UsageError
from difflogic.evaluation import proof as proofs
from difflogic.evaluation import proof_file, trained_circuit
from difflogic.evaluation.proof import Claim, Proof
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist

NETWORK = "network"
"""Name of the checker that compares the netlist with the trained network itself on samples."""
VERDICTS, CONFIG = "verdicts.json", "config.toml"
WORDS = {True: "equal", False: "DIFFERENT", None: "undecided"}


@dataclass(frozen=True, eq=False, repr=False)
class Proved(ActionResult):
    """Proof or refutation of the equivalence of two circuits or of the claim of a run's task."""

    proved: bool | None
    """Result: True if proved, False if refuted, None if undecided."""
    verdicts: tuple[Equivalence, ...] = ()
    """Results of all checkers for two circuits; empty for a run."""
    proof: Proof | None = None
    """Claim of a run's task with its result; None for two circuits."""

    @property
    def text(self) -> str:
        """All sentences in one line; for two circuits, the result comes first."""
        *others, verdict = self.words
        return " ".join([verdict, *(f"{each.judge}: {each.how}." for each in self.verdicts), *others])


def prove(
    given: Given,
    other: Given | None = None,
    *,
    every_start: bool = False,
    size: tuple[int, int] | None = None,
    seconds: float = 60.0,
    judges: Sequence[str] = (),
    periodic: bool | None = None,
    visible: int | None = None,
) -> Proved:
    """Prove that two circuits are equivalent, or prove the claim of a run's task.

        >>> keep = difflogic.CellNetlist.build(channels=1, periodic=True, gates=[], wires=[], outputs=[4])
        >>> [verdict.equal for verdict in difflogic.prove(keep, keep, judges=["difflogic"]).verdicts]
        [True]

    Args:
        given: A run, its folder, or a circuit file next to its run's config.toml; with `other`, any circuit.
        other: Circuit with which `given` is compared; None: prove the claim of the run.
        every_start: Prove that a run reaches the target from every initial state.
        size: `(height, width)` of the grid for the claim of a run; None: the grid of its task.
        seconds: Time limit of the search for a counterexample.
        judges: Checkers: for two circuits some of `network`, `difflogic`, `berkeley-abc` and `yosys` (empty: all), for
            a run `difflogic` (the default) or, with `every_start`, `berkeley-abc`.
        periodic: Whether the grids of two circuits wrap around; None: as stated in the files.
        visible: Number of visible channels of two circuits; None: as stated in the files.

    Returns:
        The overall result, and the result of each checker.

    Raises:
        UsageError: An argument does not apply to the circuit.
        CircuitError: A file is not a circuit, or the circuits have different inputs or outputs.
        LimitError: The grid of a proof does not fit into memory.
        ToolError: The only checker is missing or fails.
    """
    if other is not None:
        return _compared(given, other, tuple(judges), periodic, visible)
    if not isinstance(given, str | PathLike):
        raise UsageError("A proof of one circuit requires its run: give a run folder, or two circuits.")
    run = Path(given)
    if source.is_of_agents(run):
        raise UsageError(
            f"A controller or classifier is proved equal to another one: give both, as in `difflogic prove {run} FILE`."
        )
    if run.is_file() and run.suffix != ".safetensors":
        claims, folder = [_claim_of_file(run, every_start, size)], None
        note = f"{run}: for the task in {CONFIG} in the same folder."
    else:
        trained = trained_circuit.load(run)
        note, folder = trained.told, trained.folder
        if trained.config.task.target == "data" and not (trained.config.task.rule or every_start or size):
            claims = proofs.of_samples(trained)
        else:
            claims = [proofs.of_run(trained, every_start, size)]
    results = [proofs.decide(claim, seconds, (*judges, proofs.OWN)[0]) for claim in claims]
    # The report is about one proof: the first that fails, otherwise the first.
    first = next((proof for proof in results if not proof.proved), results[0])
    alone, files = len(results) == 1, proof_file.files_of(results[0])
    files |= {proof_file.NUMBERED.format(number): proof.to_json() for number, proof in enumerate(results[1:], 2)}
    return Proved(
        "",
        tuple(proof.text if alone else f"Sample {number}: {proof.text}" for number, proof in enumerate(results, 1)),
        first.to_dict() if alone else {"proved": first.proved, "samples": [proof.to_dict() for proof in results]},
        files,
        first.proved,
        ok=bool(first.proved),
        proof=first,
        told=note,
        folder=folder,
        outdated=proof_file.COUNTEREXAMPLE,
    )


def _claim_of_file(path: Path, every_start: bool, size: tuple[int, int] | None) -> Claim:
    """Return the claim of a circuit file for the task in config.toml, which is in the same folder."""
    if not (task := path.parent / CONFIG).is_file():
        raise UsageError(
            f"A proof of one circuit requires its task, but {task} does not exist: give a run, or two circuits."
        )
    return proofs.of_circuit(source.load(path).netlist, Config.load(task), path, every_start, size)


def check(file: Path, given: Given | None = None, seconds: float = 60.0) -> ActionResult:
    """Prove the claim of a proof.json again; `ok` is True if it is proved and the file contains the same result.

    Args:
        file: Path of the proof.json.
        given: Circuit that the proof must be about; None: any circuit.
        seconds: Time limit of the search for a counterexample.

    Raises:
        CircuitError: The file is not a proof.
        UsageError: The proof is about another circuit.
    """
    claimed = proof_file.read(file)
    if given is not None:
        held = opened(given)
        if isinstance(held, FunctionNetlist) or proofs.fingerprint(held.netlist) != proofs.fingerprint(
            claimed.claim.netlist
        ):
            raise UsageError(f"{file} is not a proof about the circuit of {given}: their hashes differ.")
    # The result in the file is not trusted: the claim is proved again, and the results are compared.
    again = proofs.decide(claimed.claim, seconds, claimed.judge)
    lies = proofs.lies(claimed, again)
    verdict = f"NOT confirmed: {', '.join(lies)} of {file} differ" if lies else "Confirmed"
    report = {"confirmed": not lies, "differs": lies, "text": again.text}
    return ActionResult("", (f"{verdict}. {again.text}",), report, {}, ok=bool(again.proved) and not lies)


def _compared(
    given: Given, other: Given, judges: tuple[str, ...], periodic: bool | None, visible: int | None
) -> Proved:
    checkers = judges or (NETWORK, *JUDGES)
    programs = [name for name in JUDGES if name in checkers]
    first, second = opened(given, periodic, visible), opened(other, periodic, visible)
    first, second = _framed(given, first, second), _framed(other, second, first)
    if isinstance(first, FunctionNetlist) and isinstance(second, FunctionNetlist):
        return _functions_compared(first, second, programs)
    if isinstance(first, FunctionNetlist) or isinstance(second, FunctionNetlist):
        kind = first.kind if isinstance(first, FunctionNetlist) else second.kind
        raise UsageError(f"Cannot compare a {kind} with the circuit of a cell: give another {kind}.")
    return _cells_compared(first, second, checkers, programs)


def _framed(
    given: Given, circuit: LoadedCircuit | FunctionNetlist, other: LoadedCircuit | FunctionNetlist
) -> LoadedCircuit | FunctionNetlist:
    """Complete `circuit` with the thresholds, boundary and classes of `other` if `given` is a BLIF or AIGER file."""
    frame = other.netlist if isinstance(other, LoadedCircuit) else other
    netlist = circuit.netlist if isinstance(circuit, LoadedCircuit) else circuit
    same = (netlist.input_names, netlist.output_names) == (frame.input_names, frame.output_names)
    if not isinstance(given, str | PathLike) or (same and isinstance(circuit, FunctionNetlist)):
        return circuit

    def framed(signals: Signals) -> CellNetlist | FunctionNetlist | None:
        if signals.is_described:
            return None
        try:
            # Exports omit unused thresholds and channels.
            return signals.like(written(frame, "blif"))
        except CircuitError:
            return signals.like(frame)

    read = source.of_signals(Path(given), framed)
    return LoadedCircuit(read, "a netlist") if isinstance(read, CellNetlist) else read or circuit


def _functions_compared(first: FunctionNetlist, second: FunctionNetlist, programs: list[str]) -> Proved:
    words = first.words
    if not programs:
        raise UsageError(
            f"--checker network is only for automata: for a {first.kind}, choose from {', '.join(JUDGES)}."
        )
    claim = f"have the same {words.choice if first.choices else 'outputs'} for every {words.sample}"
    ones = "inputs that are 1" if first.reads_bits else "thresholds that are reached"
    return _of_verdicts(functions.prove(first, second, programs), {}, claim, ones)


def _cells_compared(
    first: LoadedCircuit, second: LoadedCircuit, checkers: Sequence[str], programs: list[str]
) -> Proved:
    pair = (first, second)
    verdicts = [equality.network(each.circuit, each.netlist) for each in pair if each.circuit and NETWORK in checkers]
    verdicts += equality.prove(first.netlist, second.netlist, programs)
    alike = first.netlist.periodic == second.netlist.periodic
    # Checkers compare single cells, with the neighbours as inputs, independently of the boundary.
    border = "Note: only one of the two is periodic, so cells at the border of a grid may differ."
    told = "\n".join(filter(None, (each.told for each in pair)))
    return _of_verdicts(
        verdicts,
        {"same_boundary": alike},
        "compute the same next state from every neighbourhood",
        "inputs that are 1",
        () if alike else (border,),
        told,
    )


def _of_verdicts(
    verdicts: list[Equivalence],
    more: dict[str, Any],
    claim: str,
    ones: str,
    notes: tuple[str, ...] = (),
    told: str = "",
) -> Proved:
    equal = equality.together(verdicts)
    examples = [_counterexample(each.counterexample, ones) for each in verdicts if each.counterexample is not None]
    sentences = {
        True: f"Equal: the two {claim}.",
        False: f"Different: the two do not {claim}.",
        None: "Undecided: no checker could prove it.",
    }
    report = {"equal": equal, **more, "verdicts": [asdict(verdict) for verdict in verdicts]}
    files: Files = {VERDICTS: json.dumps(report) + "\n"}
    table = ResultTable(("checker", "verdict", "how"), [(each.judge, WORDS[each.equal], each.how) for each in verdicts])
    words = (*examples, *notes, sentences[equal])
    return Proved("", words, report, files, equal, tuple(verdicts), ok=bool(equal), told=told, table=table)


def _counterexample(example: Counterexample, label: str) -> str:
    ones = ", ".join(example.ones) or "none"
    values = "; ".join(f"{name}: {one} and {other}" for name, one, other in example.outputs)
    return f"Counterexample, evaluated in both: {label}: {ones}. Outputs of each: {values}."
