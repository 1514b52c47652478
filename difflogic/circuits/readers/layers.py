"""Layers of logic gates that another program trained, as an npz file or a state dict.

Two packages for PyTorch have such layers: `LogicLayer` of Petersen's difflogic, and `LogicDense` of torchlogix. Their
gates are numbered as ours are. The arrays of a layer are called as in the state dict, `P.` and a name, and layers are
in the order of the numbers in their prefixes P:

    weights or weight              floats [n, 16], the logits of the sixteen gates
    _export_lut_ids                integers [n], the gates' ids; torchlogix has them in its export mode
    indices, connections.indices   integers [2, n], row 0 input a, row 1 input b. They are in the state dict of
      or connections._export_indices  torchlogix; of a LogicLayer, `torch.stack(layer.indices)` is added
    classes, without a prefix      optional: how many classes the last layer's groups are counted for, or their names
    in_dim, without a prefix       optional: how many inputs there are; else one more than the largest index

    np.savez("model.npz", classes=10, **{name: array.numpy() for name, array in model.state_dict().items()})

Thresholds of torchlogix are left out: the function reads the bits that they make.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.circuits.readers import notebook
from difflogic.core.gates import GATE_COUNT
from difflogic.errors import CircuitError
from difflogic.model.circuit import Array
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist_json import refusal

GATES = ("_export_lut_ids", "weights", "weight")
INDICES = ("connections._export_indices", "connections.indices", "indices")
"""What is looked for in this order: in export mode learned wires and other parametrisations become what they mean."""
CLASSES, IN_DIM = "classes", "in_dim"
_ROLE = re.compile(rf"(?P<layer>.*?)\.?(?P<role>{'|'.join(map(re.escape, (*INDICES, *GATES)))})")
_BESIDE = re.compile(r".*\.?(thresholds|raw_diffs|connections\.weights?)")
"""Arrays of what makes the bits, and of wires that are still to be chosen."""


def is_layers(path: Path) -> bool:
    """Return whether a file is an npz that holds gates and wires under such names."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    return any(map(_ROLE.fullmatch, names))


def load(path: Path) -> FunctionNetlist:
    """Read the layers of an npz. Raises CircuitError."""
    try:
        return from_arrays(notebook.read(path, lambda name: True))
    except CircuitError as error:
        raise refusal(path, error) from error


def from_arrays(arrays: Mapping[str, Any]) -> FunctionNetlist:
    """The function of the arrays by name, of NumPy or of PyTorch on a CPU. Raises CircuitError."""
    layers: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        if _BESIDE.fullmatch(name) or name in (CLASSES, IN_DIM):
            continue
        if (found := _ROLE.fullmatch(name)) is None:
            raise CircuitError(f"The array {name!r:.60} belongs to no layer of gates: leave out what is not one.")
        layers.setdefault(found["layer"], {})[found["role"]] = np.asarray(array)
    if not layers:
        raise CircuitError("Expected the gates and wires of layers, got none.")
    ordered = sorted(layers, key=lambda prefix: [int(part) for part in re.findall(r"\d+", prefix)])
    made = [(_wires(name, layers[name]), _gates(name, layers[name])) for name in ordered]
    least = int(made[0][0].max(initial=-1)) + 1
    inputs = int(np.asarray(arrays.get(IN_DIM, least)))
    classes = np.asarray(arrays[CLASSES]).tolist() if CLASSES in arrays else None
    return FunctionNetlist.from_layers(made, inputs, classes=classes)


def _gates(layer: str, arrays: Mapping[str, Array]) -> Array:
    """The ids `[n]` of a layer's gates."""
    found = next((arrays[name] for name in GATES if name in arrays), None)
    if found is None:
        raise CircuitError(f"Layer {layer or 0} has wires and no gates: expected {layer}.weights.")
    if found.ndim == 1 and found.dtype.kind in "iu":
        return found
    if found.ndim != 2 or found.shape[1] != GATE_COUNT or not np.isfinite(found).all():
        raise CircuitError(
            f"The weights of layer {layer or 0} must be {GATE_COUNT} finite logits a gate, got {list(found.shape)}: of "
            "gates that are parametrised otherwise, save the model in its export mode."
        )
    return np.asarray(found.argmax(axis=1))


def _wires(layer: str, arrays: Mapping[str, Array]) -> Array:
    """The wires `[2, n]` of a layer."""
    found = next((arrays[name] for name in INDICES if name in arrays), None)
    if found is None:
        raise CircuitError(
            f"Layer {layer or 0} has gates and no wires: expected {layer}.indices, as torch.stack(layer.indices)."
        )
    if found.ndim != 2 or len(found) != 2 or found.dtype.kind not in "iu":
        raise CircuitError(
            f"The wires of layer {layer or 0} must be whole numbers [2, n], got {list(found.shape)}: gates read two "
            "inputs, and wires that are learned are saved in export mode."
        )
    return found
