"""An automaton that acts: its decisions, as grids and as one circuit, whole and damaged."""

import json

import numpy as np
import pytest

from difflogic.cli.main import main
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, UsageError
from difflogic.model import function_json, netlist_json
from difflogic.policies import controllers
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.automaton import AutomatonActor, ZeroedCells
from difflogic.policies.environments import Spaces
from difflogic.tensor import Tensor
from tests.policies.agents import config
from tests.policies.test_commands import run

CPU = Device("cpu")
SEEN = Sightings(np.array([0, 1, -2], np.float32), np.array([1, 4, 2], np.float32))
TINY = {"side": 5, "channels": 6, "steps": 3, "widths": [24], "bits": 3, "start_logit": 2.0}


SPACES = Spaces(3, 3)


def actor_of(seed: int) -> AutomatonActor:
    actor = AutomatonActor(config(automaton=TINY), SPACES, SEEN, CPU)
    drawn = np.random.default_rng(seed).standard_normal(actor.layer.logits.shape)
    actor.layer.logits.assign(drawn)
    actor.updated()  # the first mean is the logits themselves
    return actor


def observations(seed: int, count: int = 300) -> np.ndarray:
    return (SEEN.mean + 3 * SEEN.spread * np.random.default_rng(seed).standard_normal((count, 3))).astype(np.float32)


def decisions(actor: AutomatonActor, seen: np.ndarray) -> np.ndarray:
    return actor.decided(Tensor(actor.features(seen))).numpy().argmax(axis=1)


def test_its_controller_takes_the_action_that_its_cells_vote_for():
    different = 0
    for seed in range(4):
        actor, seen = actor_of(seed), observations(seed)
        chosen = decisions(actor, seen)
        np.testing.assert_array_equal(controllers.of_actor(actor, "", SPACES)(seen), chosen)
        last = actor.states(actor.features(seen))[-1]
        votes = last[:, 1:-1, 1:-1].reshape(len(seen), 9, 3, 2).sum(axis=(1, 3))
        np.testing.assert_array_equal(votes.argmax(axis=1), chosen)
        different += len(set(chosen)) > 1
    assert different


def test_the_gates_of_a_cell_are_known_without_it():
    actor = actor_of(0)
    assert config(policy="automaton", automaton=TINY).gate_count == actor.circuit.gates


def test_the_border_alone_sees_and_every_threshold_is_seen():
    actor, seen = actor_of(0), observations(0)
    grids = actor.features(seen)
    assert not grids[:, 1:-1, 1:-1].any()
    for bit in np.eye(actor.thermometer.bits, dtype=np.uint8):
        assert actor.start(bit[:, None]).any()


def test_damage_reaches_the_cells_that_it_says_and_no_more():
    actor, seen = actor_of(1), observations(1)
    features = actor.features(seen)
    whole = actor.states(features)
    ZeroedCells(1, every_step=False).on(actor)
    once = actor.states(features)
    assert (once != whole).any()
    assert (once == whole).all(axis=(0, 2, 3, 4)).any(), "a single cell, where it was zero already, changes nothing"
    ZeroedCells(25, every_step=True).on(actor)
    assert len(set(decisions(actor, seen))) == 1, "who sees nothing always does the same"
    with pytest.raises(UsageError, match="must be 1 to 25, the number of cells, got 26"):
        ZeroedCells(26, every_step=True).on(actor)
    with pytest.raises(UsageError, match="requires an automaton"):
        ZeroedCells(1, every_step=True).on(LogicActor(config(), Spaces(3, 2), SEEN, CPU))


def test_channels_must_be_shared_out_among_the_actions():
    with pytest.raises(ConfigError, match="must be a multiple of the number of actions, 4, got 6"):
        AutomatonActor(config(automaton=TINY), Spaces(3, 4), SEEN, CPU)


def test_it_is_trained_judged_damaged_drawn_and_exported(tmp_path, capsys):
    file, path = tmp_path / "signs.toml", tmp_path / "run"
    learned = config(policy="automaton", steps=512, automaton=TINY | {"side": 4, "steps": 2, "channels": 4})
    file.write_text(learned.to_toml())
    run("train-policy", "--config", file, "--out", path)
    held = function_json.load(path / function_json.NAME)
    found = json.loads(run("evaluate", path, "--starts", 5, "--damage", 2, "--json"))["measures"]
    assert [each["title"].partition(", ")[2] for each in found[:3]] == [
        "", "2 cells zeroed once per decision", "2 cells zeroed before each step"
    ]  # fmt: skip
    assert "4x4 cells of 4 bits" in run("show", path)
    small = tmp_path / "small.json"
    assert json.loads(run("simplify", path, "-o", small, "--json"))["equal"]
    assert function_json.load(small).inputs <= held.inputs
    assert netlist_json.load(path / "circuit.json").channels == 4
    run("export", path / "circuit.json", "--format", "golly", "--out", tmp_path)
    assert main(["evaluate", str(small), "--damage", "2"]) == 2
    assert "requires the run of a policy automaton" in capsys.readouterr().err
    assert main(["export", str(path), "--format", "golly", "--out", str(tmp_path)]) == 2
    assert "does not support a controller" in capsys.readouterr().err
