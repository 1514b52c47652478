"""Equivalence checking: results are right, and counterexamples differ."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from difflogic.circuits.synthesis import tools, truth_tables
from difflogic.circuits.synthesis.convert import gate_count, to_netlist, to_xag
from difflogic.circuits.synthesis.prove import JUDGES, network, prove
from difflogic.circuits.synthesis.simplify import structural
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from tests.programs import needs
from tests.random_circuits import random_circuit
from tests.random_netlists import netlists, random_netlist


def changed(netlist: CellNetlist, place: int, gate: int) -> CellNetlist:
    gates = netlist.gates.copy()
    gates[place % len(gates)] = gate
    return replace(netlist, gates=gates)


@given(
    netlists().filter(lambda netlist: netlist.channels == 1 and len(netlist.gates) > 0),
    st.integers(0, 100),
    st.integers(0, 15),
)
def test_result_is_right(netlist: CellNetlist, place: int, gate: int) -> None:
    other = changed(netlist, place, gate)
    words = truth_tables.all_patterns(9)
    equal = np.array_equal(netlist.evaluate(words), other.evaluate(words))
    (verdict,) = prove(netlist, other, ["difflogic"])
    assert verdict.equal is equal
    assert (verdict.counterexample is None) == equal
    if verdict.counterexample is not None:
        bits = [int(netlist.bit_name(bit) in verdict.counterexample.ones) for bit in range(9)]
        inputs = np.array(bits, dtype=np.uint64)[:, None]
        values = [int(each.evaluate(inputs)[0, 0]) & 1 for each in (netlist, other)]
        assert verdict.counterexample.outputs == ((f"out[{netlist.origin[0]}]", *values),)
        assert values[0] != values[1]


@pytest.mark.parametrize("name", ["berkeley-abc", "yosys"])
@given(netlist=netlists(most=15), place=st.integers(0, 100), gate=st.integers(0, 15))
@settings(max_examples=6)
def test_independent_checkers_agree(name: str, netlist: CellNetlist, place: int, gate: int) -> None:
    needs(name)
    assume(len(netlist.gates) > 0)
    other = changed(structural(netlist) if place % 2 and len(structural(netlist).gates) else netlist, place, gate)
    own, theirs = prove(netlist, other, ["difflogic", name])
    assert own.equal is theirs.equal
    assert theirs.how.startswith("says")


def test_wide_functions_are_decided_by_sat() -> None:
    """Functions of 27 inputs joined in another order are equal; with one of them left out they differ."""
    chain = [[0, 1], *([27 + index, index + 2] for index in range(25))]
    back = [[26, 25], *([27 + index, 24 - index] for index in range(25))]
    one = CellNetlist.build(3, False, [6] * 26, chain, [52, 0, 0])
    other = CellNetlist.build(3, False, [6] * 26, back, [52, 0, 0])
    (verdict,) = prove(one, other, ["difflogic"])
    assert verdict.equal is True
    assert verdict.how == "outputs: 2 by structure, 1 by SAT"
    shorter = CellNetlist.build(3, False, [6] * 25, back[:25], [51, 0, 0])
    (verdict,) = prove(one, shorter, ["difflogic"])
    assert verdict.equal is False
    assert verdict.how == "by SAT"
    assert verdict.counterexample is not None
    assert verdict.counterexample.outputs[0][0] == "out[0]"


def test_removed_channels_are_matched_by_name() -> None:
    """Channel 1 is unseen: without it the automaton is the same, and its own next state is not compared."""
    whole = CellNetlist.build(3, False, [1, 6], [[18, 3], [0, 9]], [27, 28, 4], visible=1)
    fewer = structural(whole)
    assert fewer.origin == (0, 2)
    for one, other in ((whole, fewer), (fewer, whole)):
        assert prove(one, other, ["difflogic"])[0].equal is True
    wrong = replace(fewer, outputs=fewer.outputs[::-1].copy())
    assert prove(whole, wrong, ["difflogic"])[0].equal is False


def test_removed_channel_that_matters_is_detected() -> None:
    whole = CellNetlist.build(2, False, [6], [[0, 9]], [18, 9], visible=1)
    fewer = CellNetlist.build(1, False, [3], [[0, 0]], [9])
    (verdict,) = prove(whole, fewer, ["difflogic"])
    assert verdict.equal is False
    assert verdict.counterexample is not None
    assert "in[1][0]" in verdict.counterexample.ones


def test_circuits_that_show_different_channels_are_refused() -> None:
    one, other = (CellNetlist.build(1, False, [], [], [0], origin=[name]) for name in (0, 4))
    with pytest.raises(CircuitError, match=r"the same visible outputs, got out\[0\] and out\[4\]"):
        prove(one, other)


@pytest.mark.parametrize("channels", [1, 2])
def test_network_agrees_with_its_gates(channels: int) -> None:
    circuit = random_circuit(np.random.default_rng(4), channels=channels)
    netlist = CellNetlist.from_circuit(circuit)
    good = network(circuit, netlist)
    assert (good.equal, good.proves) == (True, False)
    assert ("all 512" if channels == 1 else "4096 random") in good.how
    used = structural(netlist)
    wrong = replace(used, outputs=np.zeros_like(used.outputs))
    assert network(circuit, wrong).equal is False


def test_silent_tool_is_no_proof(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    program = tmp_path / tools.YOSYS
    program.write_text("#!/bin/sh\necho broken\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    netlist = random_netlist(np.random.default_rng(1), 5)
    (verdict,) = prove(netlist, netlist, [tools.YOSYS])
    assert verdict.equal is None
    assert "broken" in verdict.how


def test_every_gate_is_read_by_the_checkers() -> None:
    """All sixteen types, on two bits and on one bit twice, are in the file that a checker reads."""
    needs("berkeley-abc", "yosys")
    gates = [*range(16), *range(16)]
    wires = [[0, 1]] * 16 + [[2, 2]] * 16
    channels = 32
    first = 9 * channels
    netlist = CellNetlist.build(channels, False, gates, wires, range(first, first + 32))
    verdicts = prove(netlist, to_netlist(to_xag(netlist), netlist))
    assert [verdict.equal for verdict in verdicts] == [True] * len(JUDGES)
    assert gate_count(netlist) == 10
