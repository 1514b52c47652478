"""circuit.json: the hard circuit, readable and computing the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.circuit import Circuit
from difflogic.errors import CircuitError
from difflogic.netlist import Netlist
from difflogic.reference.engine import ReferenceEngine
from tests.random_circuits import bits, circuits, random_circuit

CIRCUIT = random_circuit(np.random.default_rng(1))
TEXT = Netlist.from_circuit(CIRCUIT).to_json()


@given(circuits(), st.integers(0, 2**32 - 1))
def test_read_back_it_computes_what_the_engine_does(circuit: Circuit, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = bits(rng, 3, int(rng.integers(3, 7)), int(rng.integers(3, 7)), circuit.channels)
    netlist = Netlist.from_json(Netlist.from_circuit(circuit).to_json())
    assert np.array_equal(netlist.rollout(x, 3), ReferenceEngine().rollout(circuit, x, 3, "hard"))


def test_what_it_looks_like() -> None:
    data = json.loads(TEXT)
    assert data["format"] == "difflogic-circuit"
    assert (data["version"], data["channels"], data["periodic"]) == (1, 2, False)
    assert set(data["gates"][0]) == {"id", "gate", "name", "a", "b"}
    assert [row["id"] for row in data["gates"]] == [f"g{i}" for i in range(len(data["gates"]))]
    first_a = CIRCUIT.perceive_wires[0][0, 0, 0]
    assert data["gates"][0]["a"] == f"in[0][{first_a}]"
    assert data["gates"][1]["a"] == f"in[1][{first_a}]", "perception gates come once per channel"
    assert data["outputs"] == [f"g{len(data['gates']) - 2}", f"g{len(data['gates']) - 1}"]


def test_ties_go_to_the_lowest_gate() -> None:
    flat = np.zeros((CIRCUIT.gates, 16), dtype=np.float32)
    assert not Netlist.from_circuit(CIRCUIT.with_logits(flat)).gates.any()


def test_an_input_may_be_an_output() -> None:
    head = '"format": "difflogic-circuit", "version": 1, "channels": 1, "periodic": true'
    text = f'{{{head}, "gates": [], "outputs": ["in[0][3]"]}}'
    x = np.zeros((1, 3, 4, 1), dtype=np.uint8)
    x[0, 1, 3] = 1
    assert np.array_equal(Netlist.from_json(text).rollout(x, 1)[1], np.roll(x, 1, axis=2)), (
        "the left neighbour, wrapped"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 2'),
        ("difflogic-circuit", "other"),
        ('"id": "g0"', '"id": "g9"'),
        ('"in[0]', '"in[7]'),
        ('"a": "g', '"a": "g9'),
        ('"channels": 2', '"channels": "two"'),
        ('"outputs"', '"results"'),
        ("]}", ""),
    ],
)
def test_a_damaged_circuit_is_refused(old: str, new: str, tmp_path: Path) -> None:
    assert old in TEXT
    path = tmp_path / "circuit.json"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(CircuitError):
        Netlist.load(path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match="Cannot read the circuit"):
        Netlist.load(tmp_path / "circuit.json")
