"""The parameters of the authors' notebook, as an npz file.

Their notebook keeps them as nested lists, `params["perceive"][layer]` and `params["update"][layer]`, and wires
likewise; the file holds one array for each:

    logits/perceive/L   float32 [K, out, 16]      logits/update/L   float32 [out, 16]
    wires/perceive/L    integers [2, out]         wires/update/L    integers [2, out], row 0 input a, row 1 input b
    hyperparams_json    optional: their hyperparameters as text, of which `periodic` is read
    periodic            optional: 0 or 1; it goes before. Without either the boundary is zero

    np.savez("circuit.npz", **{f"logits/{n}/{i}": layer for n in params for i, layer in enumerate(params[n])},
             **{f"wires/{n}/{i}": np.stack(layer) for n in wires for i, layer in enumerate(wires[n])})

Wires of perception may also be `[K, 2, out]`. C, the channels, is the width of the last update layer.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from difflogic.circuit import NETWORKS, Array, ArraysByNetwork, Circuit
from difflogic.errors import CircuitError

MAX_BYTES = 1 << 30
"""Arrays that unpack to more are refused."""


def load(path: Path) -> Circuit:
    """Read the parameters. Raises CircuitError."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > MAX_BYTES:
            raise CircuitError(f"The arrays in {path} take {size} bytes; at most {MAX_BYTES} are read.")
        with np.load(path, allow_pickle=False) as archive:
            wanted = ("logits/", "wires/", "periodic", "hyperparams_json")
            arrays = {name: archive[name] for name in archive.files if name.startswith(wanted)}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CircuitError(f"Cannot read the parameters {path}: {error}.") from error
    try:
        return from_arrays(arrays)
    except CircuitError as error:
        raise CircuitError(f"{path}: {error}") from error


def from_arrays(arrays: dict[str, Array]) -> Circuit:
    """The circuit of the arrays by name. Raises CircuitError."""
    tables = {kind: _layers(arrays, kind) for kind in ("logits", "wires")}
    last = tables["logits"]["update"][-1]
    channels = last.shape[0] if last.ndim else 0
    return Circuit.from_arrays(tables["logits"], tables["wires"], channels, _is_periodic(arrays))


def _layers(arrays: dict[str, Array], kind: str) -> ArraysByNetwork:
    found: ArraysByNetwork = {network: [] for network in NETWORKS}
    for network, layers in found.items():
        while (name := f"{kind}/{network}/{len(layers)}") in arrays:
            layers.append(arrays[name])
        if not layers:
            raise CircuitError(
                f"Expected arrays {kind}/{network}/0, 1, ..., got {', '.join(sorted(arrays)) or 'none'}."
            )
    return found


def _is_periodic(arrays: dict[str, Array]) -> bool:
    if "periodic" in arrays:
        return bool(arrays["periodic"].any())
    if "hyperparams_json" not in arrays:
        return False
    try:
        return bool(json.loads(str(arrays["hyperparams_json"]))["periodic"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CircuitError(f"hyperparams_json holds no periodic: {error!r}.") from error
