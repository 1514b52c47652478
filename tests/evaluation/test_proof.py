"""Claims about runs: what is proved, what is refused, and that proof.json can be checked by anyone."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import difflogic
from difflogic.circuits.readers.rule import rule_netlist
from difflogic.config import dataset, presets
from difflogic.config.dataset import Dataset
from difflogic.config.schema import Config
from difflogic.core import rules
from difflogic.engine import job
from difflogic.engine.job import TrainState
from difflogic.errors import CircuitError, LimitError, UsageError
from difflogic.evaluation import proof, proof_file, trained_circuit
from difflogic.evaluation.proof import Proof
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.deployment import Scenario
from difflogic.reference.engine import ReferenceEngine
from difflogic.runs import checkpoint
from difflogic.runs.checkpoint import Checkpoint, ModelState
from tests.evaluation.pass_on import keeper, keeper_config
from tests.learned import learned


def kept_run(path: Path, config: Config, circuit: Circuit, data: Dataset | None = None) -> Path:
    """A run folder with nothing but that circuit's checkpoint."""
    state = replace(TrainState.initial(job.make_job(config, circuit, data)), epoch=3)
    path.mkdir()
    checkpoint.save(path, Checkpoint((ModelState(config, circuit, state),)))
    return path


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkerboard that seed 23 learns."""
    config = presets.get("checkerboard")
    return kept_run(tmp_path_factory.mktemp("board") / "run", config, learned(config))


def proved(run: Path, every: bool = False, size: tuple[int, int] | None = None, seconds: float = 30) -> Proof:
    return proof.decide(proof.of_run(trained_circuit.load(run), every, size), seconds)


def test_every_start_of_the_learned_board(board: Path) -> None:
    found = proved(board, every=True)
    assert found.proved
    starts = np.random.default_rng(1).integers(0, 2, (64, 16, 16, 8), dtype=np.uint8)
    assert found.from_step is not None
    assert found.from_step <= found.claim.scenario.steps
    states = ReferenceEngine().rollout(trained_circuit.load(board).circuit, starts, 40, "hard")[..., :1]
    assert (states[found.from_step :] == found.claim.target).all()
    assert found.text.startswith("Every one of the 2^2048 starts on 16x16 cells shows the target from step ")
    assert proof.at_once(trained_circuit.load(board)).from_step == found.from_step


def test_a_larger_grid_has_as_many_times_the_steps(board: Path) -> None:
    found = proved(board, size=(16, 48))
    assert found.proved
    assert found.claim.scenario.steps == 60


def test_a_smaller_grid_than_training_began_on(board: Path) -> None:
    """A robust run grew from 8x8 cells, which do not fit 5x3: growth belongs to its training."""
    config = presets.get("checkerboard").with_(growth={"until": [10], "sides": [8], "steps": [10]})
    run = kept_run(board.parent / "grown", config, learned(presets.get("checkerboard")))
    assert " on 5x3 cells" in proved(run, every=True, size=(3, 5)).text


def test_right_but_late(board: Path) -> None:
    config = presets.get("checkerboard").with_(task={"steps": 5})
    run = kept_run(board.parent / "late", config, learned(presets.get("checkerboard")))
    found = proved(run)
    assert found.from_step is not None
    assert found.from_step > 5
    assert found.text.endswith("which is later than step 5, where the task compares.")


def test_an_asynchronous_circuit_is_proved_in_rounds(board: Path) -> None:
    config = presets.get("checkerboard").with_(train={"fire_rate": 0.6})
    run = kept_run(board.parent / "asynchronous", config, learned(presets.get("checkerboard")))
    found = proved(run, every=True)
    assert found.proved
    assert " rounds, in each of which every cell fires at least once, and ever after" in found.text
    assert "No step can be named for an asynchronous circuit" in found.text


def test_a_wrong_one_has_a_counterexample_that_replays(tmp_path: Path) -> None:
    config = keeper_config(2, {"target": "checkerboard", "height": 4, "width": 4, "steps": 3})
    run = kept_run(tmp_path / "run", config, keeper(2))
    found = proved(run)
    assert found.proved is False
    assert found.counterexample is not None
    last = ReferenceEngine().rollout(keeper(2), found.counterexample[None], 3, "hard")[-1, 0, ..., :1]
    wrong = int((last != found.claim.target).sum())
    assert wrong
    assert found.text.endswith(f"For the counterexample, {wrong} of 16 values are wrong at step 3.")
    outcome = difflogic.prove(run)
    names = [path.name for path in outcome.keep()]
    assert names == ["proof.json", "proof-counterexample.npy", "proof-counterexample.png"]
    np.testing.assert_array_equal(np.load(run / names[1]), found.counterexample)
    picture = Image.open(io.BytesIO((run / names[2]).read_bytes()))
    assert picture.width == 4 * picture.height
    right = proof_file.files_of(replace(found, proved=True, counterexample=None))
    replace(outcome, files=right).keep()
    assert sorted(path.name for path in run.glob("proof*")) == ["proof.json"]


def picture_config(height: int = 4, steps: int = 3, **train: float) -> Config:
    rows = ("1...", "....", "....", "...1")[:height]
    task = {"target": "picture", "height": height, "width": 4, "steps": steps, "start": "picture"}
    return keeper_config(2, task | {"picture": rows, "start_picture": rows}, **train)


def test_a_picture_that_stays(tmp_path: Path) -> None:
    found = proved(kept_run(tmp_path / "run", picture_config(), keeper(2)))
    assert (found.proved, found.from_step, found.method) == (True, 1, "rollout")
    assert found.text.endswith("right at step 3, and stays for ever, since the states repeat.")
    larger = proved(tmp_path / "run", size=(8, 6))
    assert larger.proved
    assert larger.claim.target.sum() == 2


def test_a_picture_that_is_lost(tmp_path: Path) -> None:
    """Life's blinker is itself after two steps, and not after three."""
    blinker = (".....", "..1..", "..1..", "..1..", ".....")
    life = presets.get("game-of-life")
    task = {"target": "picture", "height": 5, "width": 5, "steps": 2, "start": "picture", "rule": ""}
    config = life.with_(task=task | {"picture": blinker, "start_picture": blinker})
    found = proved(kept_run(tmp_path / "run", config, learned(life)))
    assert found.proved
    assert found.text.endswith("right at step 2, and is lost at step 3.")
    odd = proved(kept_run(tmp_path / "odd", config.with_(task={"steps": 3}), learned(life)))
    assert odd.proved is False
    assert odd.text == "Wrong: 4 of 25 values differ at step 3."


def test_a_picture_that_was_wrong_within_its_cycle() -> None:
    """Hidden channels count to three; the image is right at steps 4, 6 and 7, and step 7 is the state of step 4."""
    scenario = Scenario("zeros", 3, 3, steps=6)
    wires, outputs = [(13, 13), (13, 22), (13, 13)], [27, 28, 29]
    counted = CellNetlist.build(3, False, [12, 8, 3], wires, outputs, visible=1, scenario=scenario)
    states = counted.steps(np.zeros((1, 3, 3, 3), np.uint8), 8)
    assert [int(state[0, 1, 1, 0]) for state in states] == [1, 0, 1, 1, 0, 1, 1, 0]
    found = proof.decide(proof.Claim("one-start", counted, scenario, np.ones((3, 3, 1), np.uint8)))
    assert (found.proved, found.from_step) == (True, 6)
    assert found.text.endswith("right at step 6, and is lost at step 8.")


def test_a_rule_on_all_neighbourhoods(tmp_path: Path) -> None:
    life = presets.get("game-of-life")
    found = proved(kept_run(tmp_path / "run", life, learned(life)), every=True)
    assert found.proved
    assert found.text == "From every initial state, on every grid, each step is one generation of B3/S23."
    other = proved(kept_run(tmp_path / "other", life.with_(task={"rule": "B36/S23"}), learned(life)))
    assert other.proved is False
    assert other.text.startswith("Wrong for B36/S23: it differs where these inputs are 1: in[0][")


@pytest.mark.parametrize("rule", ["B3/S23", "B/S", "B012345678/S012345678", "B2/S", "01" * 64])
def test_a_rule_as_a_circuit(rule: str) -> None:
    boards = rules.patches().reshape(-1, 3, 3, 1)
    [after] = rule_netlist(rule, periodic=False).steps(boards, 1)
    np.testing.assert_array_equal(after[:, 1, 1, 0], rules.table(rule))


def test_what_is_refused(tmp_path: Path, board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still = kept_run(tmp_path / "still", picture_config(), keeper(2))
    with pytest.raises(UsageError, match=r'has only one initial state \("picture"\)'):
        proved(still, every=True)
    drawn = kept_run(tmp_path / "drawn", picture_config(fire_rate=0.5), keeper(2))
    with pytest.raises(UsageError, match="Cannot prove an asynchronous circuit with one initial state"):
        proved(drawn)
    life = presets.get("game-of-life")
    rule = kept_run(tmp_path / "rule", life, learned(life))
    with pytest.raises(UsageError, match=r"applies to every grid size: omit `size`\."):
        proved(rule, size=(9, 9))
    task = {"target": "picture", "height": 3, "width": 3, "steps": 1, "start": "zeros", "picture": ("...",) * 3}
    zeros = keeper_config(2, task)
    with pytest.raises(UsageError, match="depends on the border of its grid"):
        proved(kept_run(tmp_path / "zeros", zeros, keeper(2)), size=(9, 9))
    monkeypatch.setattr(proof.memory, "free_memory", lambda: 1000)
    with pytest.raises(LimitError, match="A proof on 16x16 cells takes"):
        proved(board)


def test_proof_json_is_checked_from_itself_alone(tmp_path: Path, board: Path) -> None:
    found = proved(board)
    file = tmp_path / "proof.json"
    file.write_text(str(proof_file.files_of(found)["proof.json"]))
    claimed = proof_file.read(file)
    assert claimed.to_dict() == found.to_dict()
    assert proof.lies(claimed, proof.decide(claimed.claim)) == []
    lie = {"proved": False, "from_step": 3, "text": "It is right everywhere.", "method": "by hand"}
    file.write_text(json.dumps(json.loads(file.read_text()) | lie))
    assert proof.lies(proof_file.read(file), proof.decide(claimed.claim)) == ["proved", "text", "method", "from_step"]


def change(data: dict, *path: str, to: object) -> dict:
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return data


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("version",), 2, "Expected format difflogic-proof version 1, got format difflogic-proof version 2"),
        (("claim",), "all", "claim of a proof must be one of every-start, one-start, rule"),
        (("proved",), 1, "proved of a proof must be true or false, got 1"),
        (("from_step",), "3", "and from_step an integer or null"),
        (("circuit", "gates", 0, "gate"), 9, "its hash differs from circuit_sha256"),
        (("circuit", "habitat", "height"), 8, "Expected a target of the grid's 16x8 cells"),
        (("target",), ["1"], "Expected a target of the grid's 16x16 cells"),
        (("target",), ["?" * 16] * 16, "expected only the characters"),
        (("height",), 999, "Expected height of the proof to be 16 as in its circuit, got 999"),
        (("width",), None, "Expected width of the proof to be 16 as in its circuit, got None"),
        (("periodic",), True, "Expected periodic of the proof to be False"),
        (("steps",), 1, "Expected steps of the proof to be "),
        (("fire_rate",), 0.5, "Expected fire_rate of the proof to be 1.0 as in its circuit, got 0.5"),
        (("claim",), "one-start", ""),
    ],
)
def test_a_proof_that_is_none(tmp_path: Path, board: Path, path: tuple, to: object, message: str) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(change(proved(board).to_dict(), *path, to=to)))
    if message:
        with pytest.raises(CircuitError, match=f"{file}: .*{message}"):
            proof_file.read(file)
    else:
        with pytest.raises(CircuitError, match="Expected a circuit with one initial state"):
            proof.decide(proof_file.read(file).claim)


@pytest.mark.parametrize("lies", [False, True])
def test_each_of_a_few_samples_is_proved(tmp_path: Path, lies: bool) -> None:
    """Channel 0 is held, so that what is written there is still there, and nothing else is."""
    x = np.random.default_rng(3).integers(0, 2, (3, 5, 4, 1), dtype=np.uint8)
    y = x.copy()
    y[2] ^= np.uint8(lies)
    samples = difflogic.Dataset.of(x, y, steps=2)
    model = replace(difflogic.circuit(channels=4, kernels=2, hidden=(8,)), held=(0,))
    data = samples.fields() | {"data": {**samples.fields()["data"], "held_out": 0.0}}
    config = presets.of_samples(samples).with_(**data, model=model, train={"batch": 3})
    run = kept_run(tmp_path / "run", config, Circuit.initial(config.model, 1), samples)
    (run / dataset.NAME).write_bytes(samples.encode())
    found = difflogic.prove(run)
    right = [words.startswith(f"Sample {number}: From its initial") for number, words in enumerate(found.words, 1)]
    assert found.proved is not lies
    assert right == [True, True, not lies]
    assert list(found.files) == ["proof.json", "proof-2.json", "proof-3.json"]
    for name, text in found.files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        again = proof_file.read(tmp_path / name)
        assert proof.lies(again, proof.decide(again.claim)) == []
    drawn = config.with_(task={"start": "random"})
    other = kept_run(tmp_path / "other", drawn, Circuit.initial(drawn.model, 1), samples)
    (other / dataset.NAME).write_bytes(samples.encode())
    with pytest.raises(UsageError, match=r"^Cannot prove the samples: expected at most 64"):
        difflogic.prove(other)
