"""Agents that remember: bits that a step leaves to the next, learned through time, and what machine comes of it."""

import numpy as np
import pytest

from difflogic.circuits.synthesis import function as synthesis
from difflogic.devices.device import Device
from difflogic.errors import ConfigError
from difflogic.model import function_json
from difflogic.model.circuit import Circuit
from difflogic.model.controller import Controller
from difflogic.model.thermometer import Thermometer
from difflogic.policies import controllers
from difflogic.policies.environments import Environments, Spaces
from difflogic.policies.member import Member
from difflogic.tensor import Tensor, nn
from difflogic.train.trainer import Trainer
from tests.policies.agents import config
from tests.programs import needs

CPU = Device("cpu")
CORRIDOR = {
    "environment": {"id": "test/Corridor-v0", "n_envs": 16},
    "steps": 16_384,
    "logic": {"thresholds": ((-0.5, 0.5), (0.5,)), "widths": [16, 16], "memory": 4},
    "ppo": {"n_steps": 16, "batch_size": 128, "n_epochs": 10},
    "evaluation": {"interval": 1024, "episodes": 10, "final_episodes": 50, "threshold": 1.0},
    "seed": 1,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory") / "run"
    return Trainer(config(**CORRIDOR), CPU).run(out=folder, stop_when_solved=1)


def test_what_was_shown_at_the_beginning_decides_at_the_end(trained):
    assert trained.best.score.mean == 1
    without = Member(config(**CORRIDOR).with_(logic={"memory": 0}), CPU)
    assert abs(without.evaluate(50).mean - 0.5) < 0.3, "nobody without a memory knows which side"


def test_its_controller_is_the_same_machine_and_stays_it(trained, tmp_path):
    path = trained.path / "controller.json"
    controller = function_json.load(path)
    assert (controller.memory, controller.output_names) == (4, ("action[0]", *(f"memory{k}" for k in range(4))))
    assert function_json.to_json(controller) == path.read_text()
    member = trained.best
    seen = np.random.default_rng(0).integers(0, 2, (64, 6)) * [2, 1, 1, 1, 1, 1] - [1, 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(controller(seen), member.agent.decide(seen.astype(np.float32)))
    smaller = synthesis.simplified(controller)
    assert smaller.verdict.equal, smaller.verdict
    assert smaller.verdict.proves
    least = controllers.pruned(controller, 50, seed=5)
    assert least.before.mean == least.after.mean == 1
    assert least.smaller.verdict.equal
    assert len(least.smaller.netlist.gates) <= len(smaller.netlist.gates)
    assert least.smaller.netlist.latches, "without a bit nothing tells the sides apart"


def test_gradients_go_back_through_the_steps():
    """Against differences of the soft circuit, unrolled by hand."""
    circuit = Circuit.feed_forward([3, 4, 3], seed=2)
    rng = np.random.default_rng(0)
    x, weights = rng.random((5, 2, 3)), rng.random((5, 2, 3))
    goes_on = np.array([[1, 1], [1, 0], [1, 1], [0, 1], [1, 1]], bool)

    def loss(logits):
        layer = nn.Logic(circuit.with_logits(logits), device="reference")
        memory, total = x[0, :, 2:], 0.0
        for t in range(5):
            y = layer(Tensor(np.concatenate([x[t, :, :2], memory], axis=1), layer.logits.device)).numpy()
            memory, total = y[:, 2:] * goes_on[t][:, None], total + (weights[t] * y).sum()
        return total

    layer = nn.Logic(circuit, device="reference")
    y = layer.unrolled(Tensor(x, layer.logits.device), 1, goes_on)
    (y * Tensor(weights, layer.logits.device)).sum().backward()
    logits, found = circuit.flat_logits().astype(np.float64), layer.logits.grad.numpy()
    assert y.numpy().shape == (5, 2, 3)
    for gate, place in ((0, 3), (1, 7), (5, 1), (6, 14)):
        step = np.zeros_like(logits)
        step[gate, place] = 1e-2
        difference = (loss(logits + step) - loss(logits - step)) / 2e-2
        assert found[gate, place] == pytest.approx(difference, rel=2e-2, abs=2e-4)


def test_copies_remember_alone_and_forget_where_an_episode_begins():
    spaces = Environments("test/Choose3-v0", 2, seed=0, memory=2).spaces
    assert spaces == Spaces(3, 3, known=((), (0.5,), (0.5,)), memory=2)
    world = Environments("test/Corridor-v0", 2, seed=0, memory=3)
    assert not world.observations[:, 2:].any()
    world.step(np.array([0 + 2 * 5, 1 + 2 * 2]))
    np.testing.assert_array_equal(world.observations[:, 2:], [[1, 0, 1], [0, 1, 0]])
    state = world.state()
    world.begin_anew(np.array([True, False]))
    np.testing.assert_array_equal(world.observations[:, 2:], [[0, 0, 0], [0, 1, 0]])
    world.restore(state)
    np.testing.assert_array_equal(world.observations[:, 2:], [[1, 0, 1], [0, 1, 0]])


def remembering(*outputs: int) -> Controller:
    """A bit is seen, bit 0, and three are remembered, 1 to 3; bit 4 is NOT seen, 5 memory0 AND memory1."""
    bits = Thermometer(((0.0,), *((0.5,),) * 3))
    return Controller.from_gates(bits, ([12, 1], [(0, 0), (1, 2)], list(outputs)), 2, memory=3)


@pytest.mark.parametrize("checker", ["difflogic", "berkeley-abc", "yosys"])
def test_memory_that_no_decision_depends_on_counts_for_nothing(checker):
    needs(*{checker} - {"difflogic"})
    # The action is memory0; that becomes what is seen. memory1 and memory2 only keep each other.
    machine = remembering(1, 0, 3, 2)
    smaller = synthesis.simplified(machine)
    assert smaller.verdict.equal, smaller.verdict
    assert smaller.netlist.latches == {1: 1}
    assert [*map(len, smaller.netlist.thermometer.thresholds)] == [1, 1, 0, 0]
    assert synthesis.prove(machine, smaller.netlist, [checker])[0].equal
    # One whose memory0 takes over another bit does otherwise, and so does one whose action needs memory1.
    for other in (remembering(1, 4, 3, 2), remembering(5, 0, 0, 2)):
        assert not synthesis.prove(machine, other, [checker])[0].equal
        assert not synthesis.prove(smaller.netlist, other, [checker])[0].equal


def test_memory_that_cannot_be_learned_is_refused():
    with pytest.raises(ConfigError, match=r'memory = 1 needs logic\.forward = "hard"'):
        config(logic={"memory": 1, "forward": "soft"})
    for fields, path in (
        ({"policy": "mlp", "logic": {"memory": 1}}, "logic"),
        ({"policy": "automaton", "automaton": {"memory": 1}}, "automaton"),
        ({"algorithm": "sac", "logic": {"memory": 1}}, "logic"),
    ):
        with pytest.raises(ConfigError, match=rf'^Only agents with policy "logic".* {path}\.memory must be 0'):
            config(**fields)
    with pytest.raises(ConfigError, match="with memory needs discrete actions"):
        Environments("test/Aim-v0", 1, seed=0, memory=1)
