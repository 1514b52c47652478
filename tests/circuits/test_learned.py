"""Circuits that seed 23 learns, simplified and proved, and the circuit printed in the paper."""

from dataclasses import replace

import numpy as np
import pytest

from difflogic.circuits.readers import digitaljs
from difflogic.circuits.synthesis.behaviour import pruned
from difflogic.circuits.synthesis.convert import gate_count
from difflogic.circuits.synthesis.prove import network, prove
from difflogic.circuits.synthesis.simplify import Simplified, simplified, structural
from difflogic.config import presets
from difflogic.engine import job
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import active_gates
from tests.circuits import digitaljs_text
from tests.export_cases import published
from tests.random_circuits import bits

BOARD = presets.checkerboard()


@pytest.fixture(scope="module")
def small_life(life: Circuit) -> Simplified[CellNetlist]:
    return simplified(CellNetlist.from_circuit(life))


def test_published_circuit_has_the_gates_of_its_article() -> None:
    """It is the circuit that shows its checkerboard in test_known_automata."""
    netlist = replace(digitaljs.from_data(digitaljs_text.published()), visible=1)
    assert prove(netlist, published(), ["difflogic"])[0].equal
    small = simplified(netlist)
    assert small.verdict.equal
    assert gate_count(small.netlist) == 3, "the other gates are a NOT, a wire, and what channel 0 never sees"
    assert small.netlist.origin == (0, 2, 3)


def test_checkerboard_simplifies_and_is_proved(checkerboard: Circuit) -> None:
    netlist = CellNetlist.from_circuit(checkerboard, visible=1)
    found = simplified(netlist)
    assert active_gates(checkerboard.flat_logits()) == 21
    assert found.verdict.equal
    assert gate_count(found.netlist) <= 5, "five is what the paper reaches by pruning, and this is proved equal"
    x = job.probes(BOARD)
    final = list(found.netlist.steps(x[..., list(found.netlist.origin)], 20))[-1]
    assert (final[..., :1] == job.target(BOARD.task)).all()


def test_pruned_checkerboard_shows_its_task(checkerboard: Circuit) -> None:
    netlist = simplified(CellNetlist.from_circuit(checkerboard, visible=1)).netlist
    found = pruned(netlist, BOARD.with_(train={"probes": 8}))
    assert gate_count(found.netlist) <= min(5, gate_count(netlist))
    starts = bits(np.random.default_rng(99), 16, 16, 16, 8).astype(np.uint8)
    final = list(found.netlist.steps(starts[..., list(found.netlist.origin)], 20))[-1]
    assert (final[..., :1] == job.target(BOARD.task)).all()


def test_life_is_proved_on_all_neighbourhoods(life: Circuit, small_life: Simplified[CellNetlist]) -> None:
    assert active_gates(life.flat_logits()) == 315
    assert gate_count(structural(CellNetlist.from_circuit(life))) <= 170
    assert gate_count(small_life.netlist) <= 24
    assert small_life.verdict.equal
    assert small_life.verdict.how == "outputs: 1 by exhaustion (up to 512 combinations of inputs)"
    boards = np.arange(512)[:, None] >> np.arange(9) & 1
    centres = small_life.netlist.rollout(boards.reshape(-1, 3, 3, 1), 1)[1][:, 1, 1, 0]
    wanted = [int(board.sum() == 3 or (board.sum() == 4 and board[4])) for board in boards]
    assert centres.tolist() == wanted
    verdict = network(life, small_life.netlist)
    assert (verdict.equal, verdict.proves) == (True, False)
    assert "all 512" in verdict.how
