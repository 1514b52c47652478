"""Reader of parameters from the paper authors' notebook, saved as an npz file.

The notebook has nested lists of parameters, `params["perceive"][layer]` and `params["update"][layer]`, and lists of
wires with the same structure. The file contains one array for each element:

    logits/perceive/L   float32 [K, out, 16]      logits/update/L   float32 [out, 16]
    wires/perceive/L    integers [2, out]         wires/update/L    integers [2, out], row 0 input a, row 1 input b
    hyperparams_json    optional: hyperparameters as JSON text, of which only `periodic` is used
    periodic            optional: 0 or 1, overrides hyperparams_json; the boundary is zero if both are missing

    np.savez("circuit.npz", **{f"logits/{n}/{i}": layer for n in params for i, layer in enumerate(params[n])},
             **{f"wires/{n}/{i}": np.stack(layer) for n in wires for i, layer in enumerate(wires[n])})

Wires of perception may also be `[K, 2, out]`. The number of channels is the width of the last update layer.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from difflogic.errors import CircuitError, DataError, LimitError
from difflogic.model.circuit import NETWORKS, Array, ArraysByNetwork, Circuit
from difflogic.model.netlist_json import refusal
from difflogic.system.array_files import Header, read_arrays

MAX_BYTES = 1 << 30
"""Maximum total size of all decompressed arrays in bytes."""
PERIODIC, HYPERPARAMETERS = "periodic", "hyperparams_json"
_SHOWN = 5
"""Maximum number of array names listed in an error message."""


def load(path: Path) -> Circuit:
    """Read a soft circuit from an npz file of parameters. Raises CircuitError if the file is invalid."""
    named = (PERIODIC, HYPERPARAMETERS)
    arrays = read(path, lambda name: name.startswith(("logits/", "wires/")) or name in named)
    try:
        return from_arrays(arrays)
    except CircuitError as error:
        raise refusal(path, error) from error


def read(path: Path, is_read: Callable[[str], bool]) -> dict[str, Array]:
    """Return the arrays in an npz file whose names `is_read` accepts. Raises CircuitError."""
    try:
        return read_arrays(path, partial(_check_size, path), is_read)
    except (DataError, LimitError) as error:
        raise refusal(path, error) from error


def _check_size(path: Path, headers: Mapping[str, Header]) -> None:
    size = sum(header.nbytes for header in headers.values())
    if size > MAX_BYTES:
        raise CircuitError(f"The arrays in {path} take {size} bytes, expected at most {MAX_BYTES}.")


def from_arrays(arrays: dict[str, Array]) -> Circuit:
    """Return the soft circuit given by named arrays. Raises CircuitError if they are invalid."""
    tables = {kind: _layers(arrays, kind) for kind in ("logits", "wires")}
    known = {f"{kind}/{name}/{i}" for kind, table in tables.items() for name in table for i in range(len(table[name]))}
    if others := sorted(arrays.keys() - known - {PERIODIC, HYPERPARAMETERS}):
        raise CircuitError(
            f"The array {others[0]!r:.60} belongs to no layer: layers must be numbered 0, 1, ... without a gap."
        )
    last = tables["logits"]["update"][-1]
    channels = last.shape[0] if last.ndim else 0
    return Circuit.from_arrays(tables["logits"], tables["wires"], channels, _is_periodic(arrays))


def _layers(arrays: dict[str, Array], kind: str) -> ArraysByNetwork:
    by_network: ArraysByNetwork = {network: [] for network in NETWORKS}
    for network, layers in by_network.items():
        while (name := f"{kind}/{network}/{len(layers)}") in arrays:
            layers.append(arrays[name])
        if not layers:
            raise CircuitError(f"Expected arrays {kind}/{network}/0, 1, ..., got {_names(arrays)}.")
    return by_network


def _names(arrays: dict[str, Array]) -> str:
    """Return the first few array names as text."""
    names = sorted(arrays)
    some = ", ".join(f"{name:.40}" for name in names[:_SHOWN])
    return f"{some}, ... ({len(names)} arrays)" if len(names) > _SHOWN else some or "none"


def _is_periodic(arrays: dict[str, Array]) -> bool:
    """Return whether the arrays specify a torus, by default False. Raises CircuitError for an invalid value."""
    if PERIODIC in arrays:
        value = arrays[PERIODIC].tolist() if arrays[PERIODIC].dtype.kind in "biu" else arrays[PERIODIC].dtype
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
    elif HYPERPARAMETERS in arrays:
        try:
            value = json.loads(str(arrays[HYPERPARAMETERS]))["periodic"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CircuitError(f"{HYPERPARAMETERS} contains no `periodic`: {error!r:.80}.") from error
    else:
        return False
    if not isinstance(value, int) or value not in (0, 1):
        raise CircuitError(f"periodic must be 0 or 1, false or true, got {value!r:.40}.")
    return bool(value)
