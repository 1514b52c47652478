"""Reader of layers of logic gates or lookup tables that another program trained, from an npz file or a state dict.

Three packages for PyTorch have such layers: `LogicLayer` of Petersen's difflogic, `LogicDense` of torchlogix, and
`LUTLayer` of torch-dwn. They number the sixteen gates as this program does. A table of k inputs becomes two-input
gates. Arrays are named as in the state dict, by a prefix `P.` for the layer and one of these names:

    weights or weight              floats [n, 16], the logits of the sixteen gates; or [n, 2**k], see parametrization
    _export_lut_ids                integers [n], the gates' ids; torchlogix has them in its export mode
    indices, connections.indices   integers [k, n], row 0 input a, row 1 input b. They are in the state dict of
      or connections._export_indices  torchlogix; for a LogicLayer, add `torch.stack(layer.indices)`
    connections.weights            floats [c, k, n], scores of the candidates in connections.indices [c, k, n]
    luts, mapping                  torch-dwn: floats [n, 2**k], above 0 for 1, and integers [n, k], the lowest bit first
    mapping.weights                torch-dwn: floats [inputs, n*k], scores of all inputs, in place of mapping
    parametrization, no prefix     meaning of weights [n, 2**k]: warp or light
    classes, without a prefix      optional: number or names of classes, each with a group of the last layer's outputs
    in_dim, without a prefix       optional: number of inputs; by default one more than the largest index

    np.savez("model.npz", classes=10, **{name: array.numpy() for name, array in model.state_dict().items()})

Layers run in the order in which the file lists them. `np.savez` keeps the order of a state dict, which is the model's.
safetensors and sorted dictionaries do not, so layers whose numbers contradict their order are rejected.

Thresholds are ignored: the inputs of the function are the bits after thresholding.
"""

import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.circuits.readers import notebook
from difflogic.core.gates import GATE_COUNT
from difflogic.errors import CircuitError
from difflogic.model.circuit import Array
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist_json import refusal
from difflogic.system import array_files

GATES = ("_export_lut_ids", "luts", "weights", "weight")
INDICES = ("connections._export_indices", "connections.indices", "indices", "mapping", "mapping.weights")
"""Names of arrays with gates and with wires, by precedence: those of export mode first, since they are final."""
SCORES, MOST_WAYS = "connections.weights", 8
"""Name of the array with scores of candidate wires, and maximum number of inputs per table."""
CLASSES, IN_DIM, PARAMETRIZATION = "classes", "in_dim", "parametrization"
_ROLE = re.compile(rf"(?P<layer>.*?)\.?(?P<role>{'|'.join(map(re.escape, (SCORES, *INDICES, *GATES)))})")
_BESIDE = re.compile(r".*\.?(thresholds|raw_diffs|connections\.weight|_LUTLayer__dummy_mapping)")
"""Pattern of names of arrays that are ignored, such as thresholds that produce the input bits."""


def is_layers(path: Path) -> bool:
    """Return whether a file is an npz in which an array is named like the gates or wires of a layer."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    return any(map(_ROLE.fullmatch, array_files.names(path)))


def load(path: Path) -> FunctionNetlist:
    """Read a function from an npz file of layers. Raises CircuitError if the file is invalid."""
    try:
        return from_arrays(notebook.read(path, lambda name: True))
    except CircuitError as error:
        raise refusal(path, error) from error


def from_arrays(arrays: Mapping[str, Any]) -> FunctionNetlist:
    """Return the function whose layers are given by named arrays, in the order of the layers.

    Args:
        arrays: Mapping from names, as in the module's docstring, to NumPy arrays or PyTorch tensors on a CPU.

    Returns:
        The function, a classifier if `classes` is among the arrays.

    Raises:
        CircuitError: The arrays are not layers of gates, or the numbers in their names contradict their order.
    """
    layers: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        if _BESIDE.fullmatch(name) or name in (CLASSES, IN_DIM, PARAMETRIZATION):
            continue
        if (match := _ROLE.fullmatch(name)) is None:
            raise CircuitError(f"The array {name!r:.60} belongs to no layer of gates: remove it from the file.")
        layers.setdefault(match["layer"], {})[match["role"]] = np.asarray(array)
    if not layers:
        raise CircuitError("Expected the gates and wires of layers, got none.")
    _check_order(layers)
    form = str(np.asarray(arrays.get(PARAMETRIZATION, "raw")))
    netlists = [(wires := _wires(name, layer), _gates(name, layer, len(wires), form)) for name, layer in layers.items()]
    least = int(netlists[0][0].max(initial=-1)) + 1
    inputs = int(np.asarray(arrays.get(IN_DIM, least)))
    classes = np.asarray(arrays[CLASSES]).tolist() if CLASSES in arrays else None
    return FunctionNetlist.from_layers(netlists, inputs, classes=classes)


def _check_order(layers: Iterable[str]) -> None:
    """Raise CircuitError if numbered modules with the same parent are not in ascending order.

    Numbers are compared among modules of one name, as in enc1, enc2, head1, head2, and among all modules of a parent if
    no number occurs twice, as in conv1, fc2, conv3.
    """
    siblings: dict[str, dict[str, tuple[str, str]]] = {}
    for layer in layers:
        parent = ""
        for part in layer.split("."):
            word = part.rstrip("0123456789")
            if digits := part[len(word) :]:
                siblings.setdefault(parent, {})[parent + part] = (word, digits.zfill(20))
            parent += f"{part}."
    for modules in siblings.values():
        are_distinct = len({number for _, number in modules.values()}) == len(modules)
        highest: dict[str, tuple[str, str]] = {}
        for name, (word, number) in modules.items():
            key = "" if are_distinct else word
            largest, earlier = highest.get(key, (number, name))
            if number < largest:
                raise CircuitError(
                    f"The file has {earlier!r:.60} before {name!r:.60}, but its order must be that of the layers: save "
                    "them in the order of model.state_dict(), or rename them."
                )
            highest[key] = (number, name)


def _gates(layer: str, arrays: Mapping[str, Array], ways: int, form: str) -> Array:
    """Return a layer's gate ids `[n]` or truth tables `[n, 2**ways]`; `form` is the parametrization of its weights."""
    role = next((name for name in GATES if name in arrays), None)
    if role is None:
        raise CircuitError(f"Layer {layer or 0} has wires but no gates: expected {layer}.weights.")
    array, entries = arrays[role], 1 << ways
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array if ways == 2 else array[:, None] >> np.arange(entries)[::-1] & 1
    is_table = role == "luts" or form in ("warp", "light")
    width, kind = (entries, "entries per table") if is_table else (GATE_COUNT, "logits per gate")
    if array.ndim != 2 or array.shape[1] != width or not (is_table or ways == 2) or not np.isfinite(array).all():
        raise CircuitError(
            f"The weights of layer {layer or 0} must be {width} finite {kind}, got {list(array.shape)}: for a "
            "warp or light parametrization, add its name as the array `parametrization`, or save in export mode."
        )
    if form == "warp" and role != "luts":  # Walsh coefficients: a negative sum means 1
        signs = np.array([[1 - 2 * ((i & j).bit_count() & 1) for j in range(entries)] for i in range(entries)])
        array = -array @ signs
    return np.asarray(array > 0, dtype=np.uint8) if is_table else np.asarray(array.argmax(axis=1))


def _wires(layer: str, arrays: Mapping[str, Array]) -> Array:
    """Return a layer's wires `[k, n]`: row i contains input i of each gate or table, as an index."""
    role = next((name for name in INDICES if name in arrays), None)
    if role is None:
        raise CircuitError(
            f"Layer {layer or 0} has gates but no wires: expected {layer}.indices, as torch.stack(layer.indices)."
        )
    array, scores, tables = arrays[role], arrays.get(SCORES), sum(arrays.get("luts", np.empty(0)).shape[:1])
    if array.ndim == 3 and scores is not None and scores.shape == array.shape:
        array = np.take_along_axis(array, scores.argmax(axis=0)[None], axis=0)[0]
    elif role == "mapping.weights" and array.ndim == 2 and tables and array.shape[1] % tables == 0:
        array = array.argmax(axis=0).reshape(tables, -1)
    # torch-dwn has a row per table, and the first wire is the lowest bit.
    wires = array.T[::-1] if role.startswith("mapping") else array
    if wires.ndim != 2 or wires.dtype.kind not in "iu" or not 0 < len(wires) <= MOST_WAYS:
        raise CircuitError(
            f"The wires of layer {layer or 0} must be integers [k, n] with k up to {MOST_WAYS}, got "
            f"{list(array.shape)}: learned wires require the array {SCORES}, or a model in export mode."
        )
    return wires
