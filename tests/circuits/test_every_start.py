"""Proofs for every initial state, compared with all initial states of tiny grids."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflogic.circuits.synthesis import convert, every_start
from difflogic.circuits.synthesis.bdd import Forest
from difflogic.circuits.synthesis.every_start import RANDOM, SAT, THREE_VALUED, prove_every_start, unroll
from difflogic.config import presets
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import LimitError
from difflogic.model.cell_netlist import CellNetlist
from tests.learned import learned
from tests.random_netlists import random_netlist
from tests.reference.test_parity import published

GRIDS = [(2, 3, 1), (3, 3, 1), (2, 2, 2), (1, 5, 2), (3, 4, 1)]
"""Rows, columns and channels: at most 12 values, so at most 4096 starts."""


def all_starts(height: int, width: int, channels: int) -> Bits:
    count = height * width * channels
    starts = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    return starts.astype(np.uint8).reshape(-1, height, width, channels)


def shown(netlist: CellNetlist, starts: Bits, steps: int, target: Bits) -> np.ndarray:
    """Return if each initial state shows the target after each step, bool `[steps + 1, starts]`."""
    states = netlist.rollout(starts, steps)[..., : target.shape[-1]]
    return np.asarray((states == target).all(axis=(2, 3, 4)))


def draw_case(rng: np.random.Generator) -> tuple[CellNetlist, Bits, int]:
    """Return a circuit, a target that one of its initial states leads to, and a number of steps."""
    height, width, channels = GRIDS[rng.integers(len(GRIDS))]
    netlist = random_netlist(rng, int(rng.integers(0, 30)), channels, bool(rng.integers(2)))
    steps = int(rng.integers(1, 6))
    target = netlist.rollout(np.zeros((1, height, width, channels)), steps)[-1, 0, ..., : netlist.visible]
    return netlist, target, steps


def test_every_result_agrees_with_all_initial_states() -> None:
    taken = set()
    for seed in (*range(80), 119):  # of these the last alone needs the solver to be proved
        netlist, target, steps = draw_case(np.random.default_rng(seed))
        found = prove_every_start(netlist, target, steps, seconds=60)
        taken.add((found.proved, found.method))
        right = shown(netlist, all_starts(*target.shape[:2], netlist.channels), steps + 20, target)
        if found.proved:
            assert found.from_step is not None
            assert right[found.from_step :].all()
        else:
            assert found.proved is False
            assert not right[-1 if found.method == THREE_VALUED else steps].all()
        if found.counterexample is not None:
            assert not shown(netlist, found.counterexample[None], steps, target)[-1, 0]
    assert taken >= {(True, THREE_VALUED), (True, SAT), (False, THREE_VALUED), (False, RANDOM)}


@given(st.integers(0, 2**32 - 1))
def test_solver_finds_a_wrong_initial_state_if_there_is_one(seed: int) -> None:
    netlist, target, steps = draw_case(np.random.default_rng(seed))
    end = time.monotonic() + 60
    graph = unroll(convert.lean(netlist), target, steps, end)
    assert graph is not None
    answer = every_start._satisfied(graph, end)
    right = shown(netlist, all_starts(*target.shape[:2], netlist.channels), steps, target)[-1]
    if right.all():
        assert answer is False
    else:
        assert isinstance(answer, np.ndarray)
        start = answer.reshape(1, *target.shape[:2], netlist.channels)
        assert not shown(netlist, start, steps, target)[-1, 0]


def cell(outputs: list[int], gates: list[int], wires: list[tuple[int, int]], channels: int = 1) -> CellNetlist:
    return CellNetlist.build(channels, False, gates, wires, outputs, visible=1)


def test_example_of_the_documentation_is_true() -> None:
    """Each cell becomes (left neighbour AND itself): 0 spreads from the left border."""
    netlist = cell([9], [1], [(3, 4)])
    zeros = np.zeros((1, 4, 1), dtype=np.uint8)
    found = prove_every_start(netlist, zeros, 4, seconds=1)
    assert (found.proved, found.method, found.from_step) == (True, THREE_VALUED, 4)
    late = prove_every_start(netlist, zeros, 2, seconds=1)
    assert (late.proved, late.from_step) == (True, 4)
    ones = prove_every_start(netlist, zeros + 1, 4, seconds=1)
    assert ones.proved is False
    assert ones.counterexample is not None
    assert "are known from step 1 on, and wrong, for every initial state" in ones.reason


def test_solver_proves_values_that_stay_unknown() -> None:
    """Two channels become copies of the first, which becomes their XOR: 0 from step 2 on, but both are unknown."""
    netlist = CellNetlist.build(3, True, [6], [(13, 22)], [27, 4, 4], visible=1)
    found = prove_every_start(netlist, np.zeros((2, 3, 1), dtype=np.uint8), 2, seconds=30)
    assert (found.proved, found.method, found.from_step) == (True, SAT, 2)


@pytest.mark.parametrize("most", [0, every_start.MOST_READ])
def test_exact_step_knows_values_that_gates_do_not(monkeypatch, most) -> None:
    """(x AND y) AND (NOT x AND z) is 0, but each of its gates may be 1."""
    monkeypatch.setattr(every_start, "MOST_READ", most)
    netlist = CellNetlist.build(1, True, [1, 4, 1], [(4, 3), (4, 5), (9, 10)], [11])
    found = prove_every_start(netlist, np.zeros((2, 3, 1), dtype=np.uint8), 1, seconds=30)
    assert (found.proved, found.method, found.from_step) == (True, THREE_VALUED if most else SAT, 1)


def test_solver_finds_a_rare_initial_state() -> None:
    """A cell stays 1 while its four neighbours are: of 2^16 initial states on a torus, only all ones never end in 0."""
    wires, gates, last = [], [], 4
    for patch in (1, 3, 5, 7):
        gates.append(1)
        wires.append((last, patch))
        last = 9 + len(gates) - 1
    netlist = CellNetlist.build(1, True, gates, wires, [last])
    found = prove_every_start(netlist, np.zeros((4, 4, 1), dtype=np.uint8), 8, seconds=60)
    assert (found.proved, found.method) == (False, SAT)
    assert found.counterexample is not None
    assert found.counterexample.all()


def test_proof_without_time_is_undecided() -> None:
    netlist = CellNetlist.build(1, True, [1, 1], [(4, 1), (9, 3)], [10])
    found = prove_every_start(netlist, np.zeros((16, 16, 1), dtype=np.uint8), 100, seconds=0)
    assert found.proved is None
    assert "too large for the time" in found.reason or "had not decided" in found.reason


@pytest.mark.parametrize("side", [16, 32, 64])
def test_published_checkerboard_is_proved(side: int) -> None:
    target = ((np.indices((side, side)) // 2).sum(axis=0) % 2).astype(np.uint8)[..., None]
    netlist = CellNetlist.from_circuit(published(), visible=1)
    found = prove_every_start(netlist, target, side, seconds=1)
    assert (found.proved, found.method, found.from_step) == (True, THREE_VALUED, side)


@given(st.integers(0, 2**32 - 1))
def test_asynchronous_rounds_show_the_target(seed: int) -> None:
    """Every initial state shows the target after `from_step` rounds, in each of which each cell fires."""
    netlist, target, steps = draw_case(np.random.default_rng(seed))
    found = prove_every_start(netlist, target, steps, seconds=1, synchronous=False)
    if not found.proved:
        return
    assert found.from_step is not None
    rng = np.random.default_rng(5)
    state = all_starts(*target.shape[:2], netlist.channels)
    for _ in range(found.from_step):
        missing = np.ones(target.shape[:2], dtype=bool)
        while missing.any():
            state, missing = fired(netlist, state, rng, missing)
    for _ in range(5):
        assert (state[..., : target.shape[-1]] == target).all()
        state, _ = fired(netlist, state, rng, missing)


def fired(netlist: CellNetlist, state: Bits, rng: np.random.Generator, missing: np.ndarray) -> tuple[Bits, np.ndarray]:
    """Return the state after a step in which some cells fire, and the cells that have not fired yet."""
    fires = rng.random(missing.shape) < 0.6
    [after] = netlist.steps(state, 1)
    return np.where(fires[None, ..., None], after, state), missing & ~fires


def test_asynchronous_steps_suffice_for_all_rounds() -> None:
    assert every_start.asynchronous_steps(7, 256, 1.0) == 7
    steps = every_start.asynchronous_steps(2, 256, 0.5)
    each = steps // 2
    assert 2 * 256 * 0.5**each <= 1e-9 < 2 * 256 * 0.5 ** (each - 1)


def test_memory_of_a_proof_is_limited() -> None:
    config = presets.get("checkerboard")
    netlist = CellNetlist.of_run(learned(config), config)
    every_start.check_fits(netlist, 16, 16, 10**9)
    with pytest.raises(LimitError, match=r"A proof on 65536x65536 cells takes [\d.e+]+ GB of memory, but 1 GB are"):
        every_start.check_fits(netlist, 65536, 65536, 10**9)


@given(st.integers(0, 2**32 - 1))
def test_possible_bits_contain_all_values(seed: int) -> None:
    """Each value that a bit has for some value of the unknown inputs is one of its possible values."""
    rng = np.random.default_rng(seed)
    program = random_netlist(rng, 25).program
    unknown = rng.random(program.inputs) < 0.5
    base = rng.integers(0, 2, program.inputs)
    samples = np.where(unknown[:, None], rng.integers(0, 2, (program.inputs, 64)), base[:, None]).astype(np.uint8)
    taken = unpack_bits(program.all_bits(pack_bits(samples)), 64)
    inputs = [((base == value) | unknown).astype(int).tolist() for value in (0, 1)]
    zero, one = map(np.array, program.possible_bits(*inputs))
    assert (one[taken.max(axis=1) == 1] == 1).all()
    assert (zero[taken.min(axis=1) == 0] == 1).all()
    known = ~unknown.any()
    assert not known or not (zero & one).any()


@given(st.integers(0, 2**32 - 1))
def test_decision_diagrams_find_exactly_the_possible_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    netlist = random_netlist(rng, 25)
    unknown, base = rng.random(netlist.inputs) < 0.6, rng.integers(0, 2, netlist.inputs)
    count = int(unknown.sum())
    samples = np.repeat(base[:, None], 1 << count, axis=1).astype(np.uint8)
    samples[unknown] = np.arange(1 << count) >> np.arange(count)[:, None] & 1
    taken = unpack_bits(netlist.program.all_bits(pack_bits(samples)), 1 << count)[netlist.outputs]
    inputs = [((base == value) | unknown).astype(int).tolist() for value in (0, 1)]
    zero, one = Forest(netlist, range(netlist.inputs)).possible(*inputs, samples=1)
    assert (zero, one) == ((1 - taken.min(axis=1)).tolist(), taken.max(axis=1).tolist())
