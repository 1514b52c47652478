"""Read and write a proof's files: proof.json (see `difflogic.evaluation.proof`) and its counterexample."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.circuits.export.text import Files
from difflogic.circuits.readers.rule import located, rule_netlist
from difflogic.core import text_picture
from difflogic.errors import CircuitError
from difflogic.evaluation.proof import CLAIMS, FORMAT, NAME, VERSION, Claim, Proof, fingerprint, shown
from difflogic.model import netlist_json
from difflogic.runs import plots

NUMBERED = "proof-{}.json"
"""Template for the file name of each sample's proof after the first, by number."""
COUNTEREXAMPLE = ("proof-counterexample.npy", "proof-counterexample.png")


def read(path: Path) -> Proof:
    """Read the file `path` (proof.json) without checking the proof. Raises CircuitError if the file is malformed."""
    return netlist_json.load_as(partial(_from_data, path), path)


def _from_data(path: Path, data: dict[str, Any]) -> Proof:
    netlist_json.check_format(data, FORMAT, VERSION)
    kinds = {"claim": str, "proved": bool, "method": str, "text": str, "rule": str, "target": list, "circuit": dict}
    kinds |= {"circuit_sha256": str}
    for name, kind in kinds.items():
        if not isinstance(data.get(name), kind):
            raise CircuitError(
                f"{name} of a proof must be {netlist_json.KINDS[kind]}, got {netlist_json.shown(data.get(name))}."
            )
    first = data.get("from_step")
    if data["claim"] not in CLAIMS or not (first is None or type(first) is int):
        raise CircuitError(
            f"claim of a proof must be one of {', '.join(CLAIMS)}, and from_step an integer or null, got "
            f"{str(data['claim'])[:80]!r} and {netlist_json.shown(first)}."
        )
    netlist = netlist_json.from_data(data["circuit"])
    if netlist.scenario is None:
        raise CircuitError("The circuit of the proof has no habitat: expected its grid, initial state and steps.")
    if fingerprint(netlist) != data["circuit_sha256"]:
        raise CircuitError("The circuit was changed after the proof: its hash differs from circuit_sha256.")
    scenario, target = netlist.scenario, np.zeros((0, 0, 0), dtype=np.uint8)
    if data["claim"] == "rule":
        rule_netlist(located(data["rule"], path), netlist.periodic)  # raises an error unless it is a rule
    else:
        target = text_picture.decode([str(row) for row in data["target"]], netlist.visible)
        if target.shape[:2] != (scenario.height, scenario.width):
            raise CircuitError(f"Expected a target of the grid's {scenario.width}x{scenario.height} cells.")
    claim = Claim(data["claim"], netlist, scenario, target, data["rule"], path)
    proof = Proof(claim, data["proved"], data["method"], data["text"], first)
    # Values that occur twice must agree, since people read the first lines and programs read the circuit.
    for name in ("height", "width", "periodic", "steps", "fire_rate"):
        if data.get(name) != (own := proof.to_dict()[name]):
            raise CircuitError(
                f"Expected {name} of the proof to be {own} as in its circuit, got {netlist_json.shown(data.get(name))}."
            )
    return proof


def files_of(proof: Proof) -> Files:
    """Return a mapping from file name to contents: proof.json, and a counterexample's .npy file and image if any."""
    files: Files = {NAME: proof.to_json()}
    if (start := proof.counterexample) is not None:
        buffer = io.BytesIO()
        np.save(buffer, start)
        target, became = proof.claim.target, shown(proof.claim, start)
        differs = (became != target).any(axis=-1, keepdims=True).astype(np.uint8)
        picture = plots.row_png([start[..., : target.shape[-1]], became, target, differs])
        files |= dict(zip(COUNTEREXAMPLE, (buffer.getvalue(), picture), strict=True))
    return files
