"""Evaluations: a circuit that keeps every cell has a known answer to each test, and a trained one the reference's."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.actions.evaluate import RunResults, evaluate
from difflogic.config import presets
from difflogic.config.presets import LETTER_G
from difflogic.config.resized import resized
from difflogic.core import gates, prng, rules
from difflogic.engine import job
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError, NotFoundError, RunFolderError, UsageError
from difflogic.evaluation import paper, rehearsal, suite
from difflogic.evaluation.faults import FaultTests, single_stuck_gates
from difflogic.evaluation.measure import Measure
from difflogic.evaluation.paper import PUBLISHED, Published
from difflogic.evaluation.rehearsal import FIXED_DRAWS, MASK_DRAWS, EvaluationContext
from difflogic.evaluation.rollout import DAMAGE_STREAM, DamagePlan
from difflogic.evaluation.trained_circuit import load
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import census
from difflogic.reference.engine import ReferenceEngine
from difflogic.train.run import Run
from tests.evaluation.pass_on import keeper, keeper_config, kept
from tests.reference.test_parity import published

PICTURE = ("11..", ".11.", "..11", "1111")
STILL = {"target": "picture", "picture": PICTURE, "start": "picture", "start_picture": PICTURE}
STILL |= {"height": 4, "width": 4, "steps": 3}
LIFE = {"target": "rule", "rule": "B3/S23", "start": "boards", "height": 3, "width": 3, "steps": 1}
BOARD = {"target": "checkerboard", "height": 6, "width": 5, "steps": 4}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "ROBUST_SIDE", 12)
    monkeypatch.setattr(suite, "ROBUST_STEPS", 30)
    monkeypatch.setattr(suite, "ROBUST_DAMAGE", 3)
    monkeypatch.setattr(suite, "RULE_SIDE", 12)


def judge(path: Path, task: dict[str, Any], channels: int = 2, name: str = "", **train: Any) -> RunResults:
    config = keeper_config(channels, task, **train)
    run = kept(path / "run", config.with_(name=name) if name else config)
    return evaluate(run, ReferenceEngine(), starts=5)


def keys(evaluation: RunResults) -> list[str]:
    return [measure.key for measure in evaluation.measures]


def test_a_picture_that_stays(tmp_path):
    found = judge(tmp_path, STILL)
    assert keys(found) == [
        "accuracy", "persistence-2t", "persistence-4t", "larger-grid-2x", "larger-grid-4x", "asynchronous",
        "self-healing",
    ]  # fmt: skip
    for key in keys(found)[:-1]:
        assert found[key].values["wrong"] == 0, key
        assert found[key].text.startswith("exact"), key
    assert found["accuracy"].values["samples"] == 1
    assert found["asynchronous"].values["samples"] == FIXED_DRAWS
    assert found["larger-grid-4x"].values["values"] == 16 * 16


def test_a_hole_that_never_heals(tmp_path):
    healing = judge(tmp_path, STILL)["self-healing"]
    assert healing.values["wrong"] == 3  # ones in the middle 2x2 of `PICTURE`
    assert healing.curve == [0, 0, 0] + [3] * 10
    assert "exact_from" not in healing.values


def test_a_hole_where_nothing_was(tmp_path):
    """The middle of the image is empty, so that the damage never shows."""
    ring = ("1..1", "....", "....", "1..1")
    healing = judge(tmp_path, STILL | {"picture": ring, "start_picture": ring})["self-healing"]
    assert (healing.values["wrong"], healing.values["exact_from"]) == (0, 0)
    assert healing.text == "exact from step 0 on"


def test_a_rule_by_its_table(tmp_path):
    found = judge(tmp_path, LIFE, channels=1)
    centre = rules.patches()[:, 4]
    assert keys(found) == ["neighbourhoods", "generations"]
    assert found["neighbourhoods"].values["right"] == (rules.table("B3/S23") == centre).sum()
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    kept_rule = judge(frozen, LIFE | {"rule": "B/S012345678"}, channels=1)
    assert kept_rule["neighbourhoods"].text == "512 of 512 right"
    assert set(kept_rule["generations"].curve) == {0}


def test_a_rule_from_generation_to_generation(tmp_path):
    start_key, _ = _context(tmp_path, LIFE, 1).keys(301)
    config = resized(keeper_config(1, LIFE), 12, 12)
    board = rehearsal.fresh_starts(config, 1, start_key)[0, ..., 0]
    after, curve = board, []
    for _ in range(suite.RULE_GENERATIONS + 1):
        curve.append(np.count_nonzero(board != after))
        after = rules.apply(rules.table("B3/S23"), after, periodic=False)
    assert evaluate(tmp_path / "run", ReferenceEngine())["generations"].curve == curve


def test_two_steps_a_generation(tmp_path):
    found = judge(tmp_path, LIFE | {"rule": "B/S012345678", "steps": 2}, channels=1)
    assert keys(found) == ["generations"]
    assert len(found["generations"].curve) == suite.RULE_GENERATIONS + 1


def _context(path: Path, task: dict[str, Any], channels: int = 2, **train: Any) -> EvaluationContext:
    run = kept(path / "run", keeper_config(channels, task, **train))
    return EvaluationContext(ReferenceEngine(), load(run), 5, False)


def test_a_board_that_stays_noise(tmp_path):
    context = _context(tmp_path, BOARD)
    found = evaluate(context.trained.path, ReferenceEngine(), starts=5)
    assert keys(found) == [
        "accuracy", "every-start", "persistence-2t", "persistence-4t", "larger-grid-2x", "larger-grid-4x",
        "asynchronous", "fault-tolerance", "self-healing", "robustness",
    ]  # fmt: skip
    starts = rehearsal.fresh_starts(context.own, 5, context.keys(100)[0])
    wrong = np.count_nonzero(starts[..., :1] != job.fixed_target(context.own.task))
    accuracy = found["accuracy"].values
    assert (accuracy["wrong"], accuracy["values"], accuracy["samples"]) == (wrong, 5 * 30, 5)
    assert accuracy["accuracy"] == 1 - wrong / 150
    assert accuracy["hard_loss_per_sample"] == wrong / 5
    assert accuracy["soft_loss_per_sample"] == pytest.approx(wrong / 5, abs=1e-3)  # the gate A is nearly certain
    assert accuracy["gap_per_sample"] == accuracy["hard_loss_per_sample"] - accuracy["soft_loss_per_sample"]
    assert found["asynchronous"].values["samples"] == 5 * MASK_DRAWS
    assert found["asynchronous"].curve[0] == found["asynchronous"].curve[-1]


def test_damage_leaves_zeros(tmp_path):
    context = _context(tmp_path, BOARD)
    found, large = evaluate(context.trained.path, ReferenceEngine()), context.larger(4)
    hole = (slice(None), slice(7, 17), slice(5, 15))  # 10 cells a side, half of 20, in the middle of 24x20
    for key, test in (("fault-tolerance", 600), ("self-healing", 601)):
        state = rehearsal.fresh_starts(large, 1, context.keys(test)[0])[..., :1]
        state[hole] = 0
        differs = state != job.fixed_target(large.task)
        assert found[key].values["wrong"] == np.count_nonzero(differs)
        assert len(found[key].curve) == 17
        if key == "fault-tolerance":
            differs[hole] = False
            assert found[key].values["wrong_outside"] == np.count_nonzero(differs)
            assert found[key].text.startswith(f"outside the square: {np.count_nonzero(differs)} of 380 wrong")


def test_robustness_is_the_mean_after_the_damage(tmp_path):
    context = _context(tmp_path, BOARD)
    found = evaluate(context.trained.path, ReferenceEngine())["robustness"]
    start_key, play_key = context.keys(700)
    config, damage = resized(context.config, 12, 12), DamagePlan(3, range(1, 31), "random")
    state = rehearsal.fresh_starts(config, suite.ROBUST_TRIALS, start_key)
    errors = []
    for step in range(1, 31):
        state = damage.hit(prng.fold_in(prng.fold_in(play_key, DAMAGE_STREAM), step), state)
        errors.append(np.count_nonzero(state[..., :1] != job.fixed_target(config.task), axis=(1, 2, 3)))
    trials = np.mean(errors, axis=0)
    assert len(set(trials)) == suite.ROBUST_TRIALS
    assert found.values["mean_error"] == pytest.approx(trials.mean())
    assert found.values["trial_deviation"] == pytest.approx(np.std(trials, ddof=1))
    assert found.values["worst_error"] == np.max(errors)
    assert len(found.curve) == 31
    assert "30 asynchronous steps, a 3x3 square zeroed anywhere after each" in found.title


@pytest.mark.parametrize(("paper", "met"), [(1000, True), (0, False), (-1.5, None)])
def test_one_trial_of_the_paper_is_compared_within_the_spread(tmp_path, monkeypatch, paper, met):
    context = _context(tmp_path, BOARD)
    first = suite.robustness(context)
    if paper < 0:  # one and a half deviations below ours
        paper = first.values["mean_error"] + paper * first.values["trial_deviation"]
    monkeypatch.setattr(EvaluationContext, "paper", Published(robustness=paper))
    assert suite.robustness(context).met is met


def test_an_asynchronous_run_is_judged_as_it_was_trained(tmp_path):
    found = judge(tmp_path, BOARD, fire_rate=0.5)
    assert found["accuracy"].values["samples"] == 5 * MASK_DRAWS
    assert "asynchronous" not in keys(found)
    assert found["synchronous"].values["samples"] == 5


def test_damage_of_the_training(tmp_path):
    task = STILL | {"damage_side": 2, "damage_steps": (1, 2)}
    found = judge(tmp_path, task)
    assert keys(found)[1] == "damaged-as-trained"
    assert found["damaged-as-trained"].title == "2x2 square zeroed at step 1, 2, as trained"
    assert found["damaged-as-trained"].values["samples"] == 5
    assert found["damaged-as-trained"].values["wrong"] > 0
    assert found["accuracy"].values["wrong"] == 0


@pytest.mark.parametrize("start", ["zeros", "random"])
def test_larger_grids_only_where_the_target_has_a_place(tmp_path, start):
    task = {"target": "picture", "picture": PICTURE, "start": start, "height": 4, "width": 4, "steps": 2}
    assert not any(key.startswith("larger") for key in keys(judge(tmp_path, task)))


def test_the_paper_stands_beside_its_presets(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "is_own_task", lambda config: config.task.target == "checkerboard")
    found = judge(tmp_path, BOARD, name="checkerboard")
    assert found["robustness"].paper == f"mean error 1130 in {suite.ROBUST_STEPS} steps, 1 trial"
    assert found["robustness"].met is (found["robustness"].values["mean_error"] <= 1130) is True
    assert (found["larger-grid-4x"].paper, found["larger-grid-4x"].met) == ("exact", False)
    assert found["larger-grid-2x"].paper == ""
    assert found.report["gates"]["paper_active"] == PUBLISHED["checkerboard"].active_gates == 22


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("game-of-life", {"task": {"rule": "B36/S23"}}),
        ("lizard", {"task": {"picture": LETTER_G, "loss_channels": 3, "height": 16, "width": 16}}),
        ("checkerboard", {"task": {"height": 18}}),
        ("checkerboard", {"task": {"steps": 30}}),
        ("checkerboard", {"task": {"start": "zeros"}}),
        ("checkerboard", {"model": {"periodic": True}}),
        ("checkerboard-async", {"train": {"fire_rate": 0.5}}),
        ("checkerboard", {"name": "mine"}),
    ],
)
def test_another_task_is_not_compared(name, changed):
    assert paper.published(presets.get(name).with_(**changed)) == Published()


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_papers_own_task_is(name):
    """Trained for longer, by another recipe, with another seed; its rule written as a table."""
    trained = {"seed": 7, "train": {"epochs": 9000}, "optimizer": {"lr": 0.01}, "model": {"wiring_per_kernel": True}}
    config = presets.get(name).with_(**trained)
    assert paper.published(config) == PUBLISHED[name]
    if config.task.rule:
        table = np.packbits(rules.table(config.task.rule)).tobytes().hex()
        assert paper.published(config.with_(task={"rule": table})) == PUBLISHED[name]


def test_another_rule_has_no_figure_of_the_paper(tmp_path):
    found = judge(tmp_path, LIFE | {"rule": "B36/S23"}, channels=1, name="game-of-life")
    assert {each.paper for each in found.measures} == {""}
    assert {each.met for each in found.measures} == {None}
    assert found.report["gates"]["paper_active"] is None


def test_a_quick_evaluation_is_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "is_own_task", lambda _: True)
    run = kept(tmp_path / "run", keeper_config(2, BOARD).with_(name="checkerboard"))
    robust = evaluate(run, ReferenceEngine(), quick=True)["robustness"]
    assert len(robust.curve) == 4
    assert robust.paper.startswith("mean error 1130 in ")
    assert robust.met is None


def test_a_trained_run(complete: Run, engine: Engine):
    found = evaluate(complete.path, engine, starts=70)
    assert keys(found)[0] == "training"
    assert found["training"].values["hard_loss"] == complete.metrics[-1].hard_loss
    context = EvaluationContext(ReferenceEngine(), load(complete.path), 70, False)
    start = rehearsal.fresh_starts(context.own, 70, context.keys(100)[0])
    last = ReferenceEngine().rollout(complete.circuit, start, 3, "hard")[-1]
    assert found["accuracy"].values["wrong"] == np.count_nonzero(last[..., :1] != job.target(complete.config.task))
    judged = evaluate(complete.path, ReferenceEngine(), starts=70)
    assert [measure.curve for measure in judged.measures] == [measure.curve for measure in found.measures]


def test_a_run_on_anything_but_a_hardware_gpu_is_evaluated_by_the_cpu_engine(complete: Run, engine: Engine):
    hardware = engine.info.engine == "gpu" and not engine.info.software
    assert evaluate(complete.path, starts=1).report["engine"].startswith("gpu" if hardware else "cpu")


def test_census():
    circuit = keeper(2)
    logits = circuit.flat_logits()
    logits[0, gates.NAMES.index("XOR")] = 30  # the perception gate
    logits[1] = 0  # undecided, and FALSE
    first, second = census(Circuit.with_logits(circuit, logits))
    assert (first.name, first.gates, first.active, first.undecided) == ("perceive 0", 1, 1, 0)
    assert first.kinds[gates.NAMES.index("XOR")] == 1
    assert (second.name, second.gates, second.active, second.undecided) == ("update 0", 2, 1, 1)
    assert second.kinds[0] == second.kinds[gates.PASS_THROUGH] == 1
    assert sum(second.kinds) == 2


def test_the_document(tmp_path):
    found = judge(tmp_path, BOARD)
    [path] = found.keep()
    assert path == tmp_path / "run/evaluation.json"
    data = json.loads(path.read_text())
    assert (data["format"], data["version"], data["difflogic"]) == ("difflogic-evaluation", 1, difflogic.__version__)
    assert [each["key"] for each in data["measures"]] == keys(found)
    assert all(set(each) == {"key", "title", "text", "values", "paper", "met", "curve"} for each in data["measures"])
    assert data["gates"]["layers"][1]["kinds"][gates.PASS_THROUGH] == 2
    assert data["epoch"] == 3


def test_results_of_a_checkpoint_file_need_the_name_of_a_folder(tmp_path):
    run = kept(tmp_path / "run", keeper_config(2, BOARD))
    found = evaluate(run / "checkpoint.safetensors", ReferenceEngine(), starts=1)
    with pytest.raises(UsageError, match=r'give a folder for its files, as in keep\("out"\)'):
        found.keep()
    assert found.keep(tmp_path / "new/out") == [tmp_path / "new/out/evaluation.json"]
    assert found.keep(str(tmp_path)) == [tmp_path / "evaluation.json"]
    with pytest.raises(RunFolderError, match=r"Cannot write .*gone.evaluation\.json: No such file"):
        replace(found, folder=tmp_path / "gone").keep()
    (tmp_path / "a file").touch()
    with pytest.raises(RunFolderError, match=r"Cannot write .*a file: File exists"):
        found.keep(tmp_path / "a file")
    assert keys(found)[0] == "accuracy"


def test_members_of_a_population(tmp_path):
    run = kept(tmp_path / "run", keeper_config(2, BOARD), seeds=3, leader=1)
    assert load(run).config.seed == 8
    assert load(run, 3).config.seed == 9
    assert load(run).title == "keeper, seed 8 of 3 models, after epoch 3"
    for member in (0, 4):
        with pytest.raises(UsageError, match=f"Unknown model {member} of .*: expected 1 to 3, of seeds 7 to 9"):
            load(run, member)


def test_what_cannot_be_evaluated(tmp_path):
    untrained = kept(tmp_path / "untrained", keeper_config(2, BOARD), epoch=0)
    with pytest.raises(CheckpointError, match="has no trained circuit yet, since its checkpoint is from epoch 0"):
        evaluate(untrained, ReferenceEngine())
    with pytest.raises(NotFoundError, match="No run folder or checkpoint file at"):
        evaluate(tmp_path / "nowhere", ReferenceEngine())
    with pytest.raises(UsageError, match="must be at least 1, got 0"):
        evaluate(untrained, ReferenceEngine(), starts=0)


def test_progress_is_told(tmp_path):
    told: list[str] = []
    run = kept(tmp_path / "run", keeper_config(2, STILL))
    found = evaluate(run, ReferenceEngine(), tell=told.append)
    assert told == [f"{measure.title}: {measure.text}" for measure in found.measures]
    assert all(isinstance(measure, Measure) for measure in found.measures)


def test_a_picture_that_stays_has_every_fault_in_it(tmp_path):
    """Cells that keep their state keep a fault: no fault, no error; all cells stuck, half of them are right."""
    trained = load(kept(tmp_path / "run", keeper_config(2, STILL)))
    context = EvaluationContext(ReferenceEngine(), trained, 200, quick=True)
    cells, gates_, single = [test(context) for test in FaultTests(stuck_cells=1.0, stuck_gates=2)]
    assert (cells.values["0"], cells.values["1"]) == (1, pytest.approx(0.5, abs=0.05))
    values = [*cells.values.values()]
    assert values == sorted(values, reverse=True)
    assert (gates_.values["0"], list(gates_.values)) == (1, ["0", "1", "2"])
    assert single.values == {}, "there is no gate in a wire"
    too_many = next(iter(FaultTests(stuck_gates=10**6)))(context)
    assert int([*too_many.values][-1]) == trained.circuit.gates


def test_each_gate_of_the_published_circuit_is_stuck_once(tmp_path):
    """The last gate makes the board: stuck, it leaves one colour, which is right where the board has it."""
    config = keeper_config(8, BOARD | {"steps": 12})
    trained = load(kept(tmp_path / "run", config))
    trained = dataclasses.replace(trained, model=dataclasses.replace(trained.model, circuit=published()))
    found = single_stuck_gates(EvaluationContext(ReferenceEngine(), trained, 4, quick=True))
    board = job.fixed_target(config.task)
    assert set(found.values) == {f"g{gate}={value}" for gate in range(len(found.values) // 2) for value in (0, 1)}
    last = [found.values[f"g{len(found.values) // 2 - 1}={value}"] for value in (0, 1)]
    assert sorted(last) == pytest.approx(sorted((board == value).mean() for value in (0, 1)))
    assert min(found.values.values()) < 0.7


def test_settings_of_no_task_are_refused_before_the_first_test(tmp_path: Path) -> None:
    run, told = kept(tmp_path / "run", keeper_config(2, BOARD)), []
    with pytest.raises(UsageError, match="--set supports only runs with a task in Python, and this run has none"):
        evaluate(run, ReferenceEngine(), starts=1, tell=told.append, settings={"bits": 3})
    assert told == []
