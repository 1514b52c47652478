"""Reader of circuits from a run, a file in one of several formats, or a rule."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy.typing as npt

from difflogic.circuits.readers import aiger, blif, digitaljs, layers, notebook, recognised, zoo
from difflogic.circuits.readers import rule as rules
from difflogic.circuits.readers.signals import Signals
from difflogic.config.fields import hint
from difflogic.config.schema import Config
from difflogic.core.bits import Bits
from difflogic.errors import CircuitError, UsageError
from difflogic.model import function_json, netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import active_gates
from difflogic.runs import chosen, manifest
from difflogic.runs.chosen import Source, path_of
from difflogic.system.brief import brief

T = TypeVar("T")
FORMATS = (
    "a run folder, its checkpoint, circuit.json, proof.json, BLIF, AIGER, DigitalJS JSON or the authors' parameters "
    "as npz"
)
_NO_CELL = (
    "Expected the cell of an automaton, got a controller or function, which has no grid: use evaluate, render, "
    "simplify, prove or export."
)
PROOF = "difflogic-proof"
"""Value of the key `format` in proof.json, which contains the proved circuit."""


@dataclass(frozen=True, eq=False)
class LoadedCircuit:
    """Netlist of a loaded circuit, with information on its source."""

    netlist: CellNetlist
    kind: str
    """Kind of source, for messages: `run`, `circuit.json`, another format, or `a rule`."""
    circuit: Circuit | None = None
    """Soft circuit that the netlist was discretised from, if known."""
    config: Config | None = None
    """Training configuration if the source is a run."""
    told: str = ""
    """Sentence for messages that names the rule, or the circuit chosen from a run; otherwise empty."""
    name: str = ""
    """Name of the run folder, file or rule."""

    __repr__ = brief

    def _repr_html_(self) -> str | None:
        return self.netlist._repr_html_()

    def rollout(self, x: npt.ArrayLike, steps: int) -> Bits:
        """Run the netlist for `steps` steps from the state `x`, as `CellNetlist.rollout` does."""
        return self.netlist.rollout(x, steps)

    @property
    def task(self) -> Config:
        """Training configuration. Raises UsageError if the circuit is not from a run."""
        if self.config is None:
            raise UsageError(f"--task needs a run folder, which contains its task, got {self.kind}.")
        return self.config

    @property
    def paper_gates(self) -> int | None:
        """Number of active gates as in the paper, counted once per kernel; None without the soft circuit."""
        return None if self.circuit is None else active_gates(self.circuit.gate_logits)


def load(path: Source, periodic: bool | None = None, visible: int | None = None) -> LoadedCircuit:
    """Read the best circuit of a run or the circuit of a file, or build the circuit of a rule.

        >>> difflogic.load(folder).netlist.channels
        2
        >>> len(difflogic.load("B36/S23").netlist.gates)
        33

    Args:
        path: A run folder, `circuit.json`, or a file in another format. If there is no such file: a rule such as
            `B36/S23`, `W110` or 128 hexadecimal digits, on a torus, or a name that `difflogic zoo` lists.
        periodic: True for a torus, False for a zero boundary; None for the boundary in the file.
        visible: Number of visible channels; None for the number in the file.

    Returns:
        The circuit's `netlist`, and its task if known.

    Raises:
        CircuitError: The file contains no circuit.
        CheckpointError: The run has no usable checkpoint.
    """
    path = path_of(path)
    source = _load(path)
    netlist = source.netlist
    if visible is not None and not 1 <= visible <= netlist.channels:
        raise CircuitError(f"visible must be 1 to {netlist.channels}, the number of channels, got {visible}.")
    wrapped = netlist.periodic if periodic is None else periodic
    netlist = replace(netlist, visible=visible or netlist.visible, periodic=wrapped)
    return replace(source, netlist=netlist, name=source.name or path.resolve().name)


def load_function(path: Source) -> FunctionNetlist:
    """Read a function from function.json, controller.json, a run folder, or layers that another program trained.

        >>> net = difflogic.FunctionNetlist.from_circuit(difflogic.Circuit.feed_forward([4, 4, 2], seed=0))
        >>> _ = (folder / "net.json").write_text(str(difflogic.export(net, ["json"], name="net").files["net.json"]))
        >>> difflogic.load_function(folder / "net.json").inputs
        4

    Args:
        path: A file, or the run folder of agents or of a classifier. `difflogic.circuits.readers.layers` describes npz
            files of layers.

    Returns:
        The function, a `Controller` if it controls agents.

    Raises:
        CircuitError: The file contains no function.
        UsageError: The run contains no function or controller.
    """
    if (loaded := function(path_of(path))) is not None:
        return loaded
    raise CircuitError(
        f"{path} contains no function: expected function.json, controller.json, BLIF, AIGER, or layers as npz."
    )


def controller(path: Path) -> Controller | None:
    """Return the controller in a run folder or file, or None if there is none. Raises UsageError or CircuitError."""
    loaded = function(path)
    return loaded if isinstance(loaded, Controller) else None


def function(path: Path) -> FunctionNetlist | None:
    """Return the function or controller in a run folder or file; None for any other path.

    Raises UsageError for a run of agents without a controller, or CircuitError for an invalid file.
    """
    path = zoo.path(path)
    if path.is_dir():
        path = chosen.run_folder(path)
        if not manifest.is_policy(manifest.read(path)):
            return None
        folder, path = path, path / function_json.NAME
        if (folder / function_json.FUNCTION).is_file():
            path = folder / function_json.FUNCTION
        if not path.is_file():
            raise UsageError(
                f"{path} does not exist: training writes this file at its end, only for agents of gates with discrete "
                "actions."
            )
    if layers.is_layers(path):
        return layers.load(path)
    if (circuit := of_signals(path, Signals.circuit)) is not None:
        return circuit if isinstance(circuit, FunctionNetlist) else None
    if not path.is_file() or path.suffix != ".json":
        return None
    text = netlist_json.read_text(path)
    try:
        data = netlist_json.parse(text)
        return function_json.from_data(data) if data.get("format") in function_json.FORMATS else None
    except CircuitError as error:
        raise netlist_json.refusal(path, error) from error


def of_signals(path: Path, read: Callable[[Signals], T]) -> T | None:
    """Parse a BLIF or AIGER file and return `read(signals)`; None for any other path. Raises CircuitError."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(4096)
    is_aiger = path.suffix in (".aig", ".aag") or head.startswith((b"aig ", b"aag "))
    if not is_aiger and path.suffix != ".blif" and not re.match(rb"(\s*#[^\n]*\n)*\s*\.model\s", head):
        return None
    try:
        return read(aiger.read(netlist_json.read_bytes(path)) if is_aiger else blif.read(netlist_json.read_text(path)))
    except CircuitError as error:
        raise netlist_json.refusal(path, error) from error


def is_of_agents(path: Path) -> bool:
    """Return whether `path` is the run folder of agents or of a classifier, or a file that contains a controller."""
    if path.is_dir():
        return manifest.is_policy(manifest.read(chosen.run_folder(path)))
    return controller(path) is not None


def _of_run(run: chosen.Chosen) -> CellNetlist:
    """Return the circuit of a run, with the colours of its task's rule if this has several states."""
    netlist, task = CellNetlist.of_run(run.circuit, run.config), run.config.task
    if not task.rule or task.target != "data":
        return netlist
    return replace(netlist, colours=rules.rule_netlist(rules.located(task.rule, run.path), netlist.periodic).colours)


def _load(path: Path) -> LoadedCircuit:
    path = zoo.path(path)
    if path.is_dir() or path.suffix == ".safetensors":
        run = chosen.load(path)
        return LoadedCircuit(_of_run(run), "run", run.circuit, run.config, run.told)
    if path.is_file() and zipfile.is_zipfile(path) and not recognised.kind_of(path):
        circuit = notebook.load(path)
        return LoadedCircuit(CellNetlist.from_circuit(circuit), "the authors' parameters", circuit)
    if (rule := rules.named(path)) is not None:
        name = Path(rule).stem if rule.endswith(rules.SUFFIX) else rule
        text = f"The rule {name}: built from its table, without training."
        return LoadedCircuit(rules.on_grid(rule, str(path)), "a rule", told=text, name=name)
    if (read := of_signals(path, Signals.circuit)) is not None:
        if isinstance(read, FunctionNetlist):
            raise CircuitError(f"{path}: {_NO_CELL}")
        return LoadedCircuit(read, "AIGER" if path.suffix in (".aig", ".aag") else "BLIF")
    if not path.exists():
        raise CircuitError(
            f"Unknown circuit {path}{hint(str(path), zoo.names())}: expected {FORMATS}, a rule such as B3/S23 or W110, "
            "or a name that `difflogic zoo` lists."
        )
    if path.is_file() and (kind := recognised.kind_of(path)):
        raise CircuitError(f"{path} is {kind}; expected {FORMATS}.")
    text = netlist_json.read_text(path)
    if not text.lstrip().startswith(("{", "[")):
        raise CircuitError(f"{path} is not a circuit: expected {FORMATS}.")
    try:
        return _from_text(text)
    except CircuitError as error:
        raise netlist_json.refusal(path, error) from error


def _from_text(text: str) -> LoadedCircuit:
    data = netlist_json.parse(text)
    if data.get("format") == PROOF:
        data = netlist_json.typed(data, "circuit", dict)
    if data.get("format") in function_json.FORMATS:
        raise CircuitError(_NO_CELL)
    if "format" in data:
        return LoadedCircuit(netlist_json.from_data(data), "circuit.json")
    if data.keys() >= digitaljs.KEYS:
        return LoadedCircuit(digitaljs.from_data(data), "DigitalJS")
    if "modules" in data:
        raise CircuitError("The file is Yosys JSON: convert it to BLIF with `read_json` and `write_blif` of Yosys.")
    raise CircuitError(f"The file is not a circuit: expected {FORMATS}.")
