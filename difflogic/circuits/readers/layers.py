"""Layers of logic gates that another program trained, as an npz file or a state dict.

Two packages for PyTorch have such layers: `LogicLayer` of Petersen's difflogic, and `LogicDense` of torchlogix. Their
gates are numbered as ours are. The arrays of a layer are named as in the state dict, `P.` and a name:

    weights or weight              floats [n, 16], the logits of the sixteen gates
    _export_lut_ids                integers [n], the gates' ids; torchlogix has them in its export mode
    indices, connections.indices   integers [2, n], row 0 input a, row 1 input b. They are in the state dict of
      or connections._export_indices  torchlogix; of a LogicLayer, `torch.stack(layer.indices)` is added
    classes, without a prefix      optional: how many classes the last layer's groups are counted for, or their names
    in_dim, without a prefix       optional: how many inputs there are; else one more than the largest index

    np.savez("model.npz", classes=10, **{name: array.numpy() for name, array in model.state_dict().items()})

Layers run in the order in which the file lists them. `np.savez` keeps the order of a state dict, which is the order of
the model. safetensors and sorted dictionaries do not, so layers whose numbers contradict their order are refused.

Thresholds of torchlogix are left out: the function reads the bits that they make.
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

GATES = ("_export_lut_ids", "weights", "weight")
INDICES = ("connections._export_indices", "connections.indices", "indices")
"""Names in order of precedence: export mode resolves learned wires and other parametrisations."""
CLASSES, IN_DIM = "classes", "in_dim"
_ROLE = re.compile(rf"(?P<layer>.*?)\.?(?P<role>{'|'.join(map(re.escape, (*INDICES, *GATES)))})")
_BESIDE = re.compile(r".*\.?(thresholds|raw_diffs|connections\.weights?)")
"""Arrays that are left out: thresholds that make the input bits, and scores of learned wires."""


def is_layers(path: Path) -> bool:
    """Return whether a file is an npz that holds gates and wires under such names."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    return any(map(_ROLE.fullmatch, array_files.names(path)))


def load(path: Path) -> FunctionNetlist:
    """Read the layers of an npz. Raises CircuitError."""
    try:
        return from_arrays(notebook.read(path, lambda name: True))
    except CircuitError as error:
        raise refusal(path, error) from error


def from_arrays(arrays: Mapping[str, Any]) -> FunctionNetlist:
    """Return the function of named arrays, listed in the order of the layers.

    Args:
        arrays: NumPy arrays, or PyTorch tensors on a CPU.

    Returns:
        The function.

    Raises:
        CircuitError: The arrays are not layers of gates, or their names suggest another order.
    """
    layers: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        if _BESIDE.fullmatch(name) or name in (CLASSES, IN_DIM):
            continue
        if (match := _ROLE.fullmatch(name)) is None:
            raise CircuitError(f"The array {name!r:.60} belongs to no layer of gates: leave out what is not one.")
        layers.setdefault(match["layer"], {})[match["role"]] = np.asarray(array)
    if not layers:
        raise CircuitError("Expected the gates and wires of layers, got none.")
    _check_order(layers)
    netlists = [(_wires(name, arrays), _gates(name, arrays)) for name, arrays in layers.items()]
    least = int(netlists[0][0].max(initial=-1)) + 1
    inputs = int(np.asarray(arrays.get(IN_DIM, least)))
    classes = np.asarray(arrays[CLASSES]).tolist() if CLASSES in arrays else None
    return FunctionNetlist.from_layers(netlists, inputs, classes=classes)


def _check_order(layers: Iterable[str]) -> None:
    """Raise CircuitError if modules of one parent are numbered, and not in ascending order.

    Numbers are compared among modules of one name, as in enc1, enc2, head1, head2, and among all of a parent if no
    number occurs twice, as in conv1, fc2, conv3.
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
                    f"Layers run in the order of the file, which has {earlier!r:.60} before {name!r:.60}: save them as "
                    "model.state_dict() lists them, not sorted by name, or rename them."
                )
            highest[key] = (number, name)


def _gates(layer: str, arrays: Mapping[str, Array]) -> Array:
    """Return the gate ids `[n]` of a layer."""
    array = next((arrays[name] for name in GATES if name in arrays), None)
    if array is None:
        raise CircuitError(f"Layer {layer or 0} has wires and no gates: expected {layer}.weights.")
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array
    if array.ndim != 2 or array.shape[1] != GATE_COUNT or not np.isfinite(array).all():
        raise CircuitError(
            f"The weights of layer {layer or 0} must be {GATE_COUNT} finite logits a gate, got {list(array.shape)}: of "
            "gates that are parametrised otherwise, save the model in its export mode."
        )
    return np.asarray(array.argmax(axis=1))


def _wires(layer: str, arrays: Mapping[str, Array]) -> Array:
    """Return the wires `[2, n]` of a layer."""
    array = next((arrays[name] for name in INDICES if name in arrays), None)
    if array is None:
        raise CircuitError(
            f"Layer {layer or 0} has gates and no wires: expected {layer}.indices, as torch.stack(layer.indices)."
        )
    if array.ndim != 2 or len(array) != 2 or array.dtype.kind not in "iu":
        raise CircuitError(
            f"The wires of layer {layer or 0} must be whole numbers [2, n], got {list(array.shape)}: gates read two "
            "inputs, and wires that are learned are saved in export mode."
        )
    return array
