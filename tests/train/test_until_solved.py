"""Attempts until one passes the success test or a limit is reached."""

import itertools
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import difflogic
from difflogic.circuits.synthesis import repair
from difflogic.circuits.synthesis.invariant import start_of
from difflogic.config import presets, recipes, schedule
from difflogic.config.customise import configure
from difflogic.config.presets import checkerboard
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.core.text_picture import encode
from difflogic.devices.open import Placement, open_engine
from difflogic.engine.api import Evaluation
from difflogic.engine.job import fixed_target
from difflogic.errors import UsageError
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import active_gates
from difflogic.runs import attempts, chosen
from difflogic.train import budget, finishing, restarts
from difflogic.train.observer import Observer
from difflogic.train.replica import Replica
from difflogic.train.restarts import Attempts
from difflogic.train.run import Run
from difflogic.train.session import Session
from difflogic.train.signals import Deadline, Stop
from difflogic.train.success import SuccessTest
from tests.sampled import exhaustive
from tests.sections import sections
from tests.train.tiny import assert_same_run, tiny_config

FLAT = tiny_config(epochs=40).with_(optimizer={"lr": 0.0}, train={"eval_interval": 20})
"""Nothing is learned, so that each attempt is stopped early at epoch 20."""


@pytest.fixture
def placement() -> Placement:
    return Placement(open_engine("reference"), "it was given")


@pytest.fixture
def fast() -> Placement:
    return Placement(open_engine("cpu"), "it was given")


def passes_at(monkeypatch: pytest.MonkeyPatch, seed: int, epoch: int) -> None:
    """The success test passes one model alone, at one evaluation."""

    def passed(test: SuccessTest, replica: Replica, evaluation: Evaluation) -> bool:
        return (replica.seed, replica.state.epoch) == (seed, epoch)

    monkeypatch.setattr(SuccessTest, "passed", passed)


def never(monkeypatch: pytest.MonkeyPatch) -> None:
    passes_at(monkeypatch, -1, -1)


def solve(placement: Placement, out: Path | None = None, limit: str | None = None, population: int = 1) -> Attempts:
    within = None if limit is None else Within.parse(limit)
    request = TrainRequest(config=FLAT, until_solved=True, within=within, population=population)
    return restarts.train(request, placement, out)


def test_attempts_continue_until_one_passes(placement: Placement, tmp_path, monkeypatch) -> None:
    third = schedule.seed_of(FLAT.seed, 2)
    passes_at(monkeypatch, third, 10)
    done = solve(placement, tmp_path / "run")
    assert done.solved
    assert not done.is_unsolved
    attempts = [(each.status, each.epoch, each.of) for each in done.record.attempts]
    assert attempts == [("given up", 20, None), ("given up", 20, None), ("solved", 10, None)]
    assert done.best.config.seed == third
    assert done.summary.startswith("Solved, attempt 3: ")
    assert chosen.load(tmp_path / "run").config.seed == third
    with pytest.raises(UsageError, match="has ended and has no attempts left"):
        restarts.resume(tmp_path / "run", placement)


@pytest.mark.parametrize(("owner", "name"), [(Session, "write_end"), (restarts, "_ended")], ids=["run", "attempt"])
def test_resume_recognizes_a_solution_that_was_saved_and_not_recorded(
    owner: Any, name: str, placement: Placement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before the end of the second run, or of its attempt, is written."""
    passes_at(monkeypatch, schedule.seed_of(FLAT.seed, 1), 10)
    complete = solve(placement, tmp_path / "complete", "50 epochs")
    calls, original = itertools.count(), getattr(owner, name)

    def end(*arguments: Any) -> Any:
        if next(calls):
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, end)
        with pytest.raises(KeyboardInterrupt):
            solve(placement, tmp_path / "killed", "50 epochs")
    assert attempts.read(tmp_path / "killed").attempts[-1].status == "running"
    assert restarts.resume(tmp_path / "killed", placement).record == complete.record
    assert_same_run(tmp_path / "complete/attempt-2", tmp_path / "killed/attempt-2")


def test_solved_attempt_is_not_stopped_early(placement: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
    passes_at(monkeypatch, FLAT.seed, 20)
    (attempt,) = solve(placement).record.attempts
    assert (attempt.status, attempt.epoch, attempt.given_up) == ("solved", 20, None)


def test_dead_gates_of_a_solution_are_wires(placement: Placement, tmp_path, monkeypatch) -> None:
    random = FLAT.with_(initial={"logit": 0.0, "noise": 1.0})
    passes_at(monkeypatch, FLAT.seed, 10)
    done = restarts.train(TrainRequest(config=random, until_solved=True), placement, tmp_path / "run").best
    # Nothing is learned at a rate of 0, so that the circuit it began with is the one that was solved.
    begun = Circuit.initial(random.model, random.seed, random.initial)
    assert active_gates(done.circuit.flat_logits()) < active_gates(begun.flat_logits())
    starts = done.member.job.probes
    before, after = (CellNetlist.of_run(each, random).rollout(starts, 4)[..., :1] for each in (begun, done.circuit))
    np.testing.assert_array_equal(before, after)
    kept = netlist_json.to_json(CellNetlist.of_run(done.circuit, random))
    assert (tmp_path / "run/circuit.json").read_text() == kept


def test_results_of_the_best_attempt_are_at_the_top(placement: Placement, tmp_path, monkeypatch) -> None:
    passes_at(monkeypatch, schedule.seed_of(FLAT.seed, 1), 10)
    done = difflogic.solve(FLAT, engine=placement.engine, out=str(tmp_path / "run"))
    assert done.solved
    for name in ("config.toml", "circuit.json", "rollout.gif", "loss.png"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "run/attempt-2" / name).read_bytes()
    assert (tmp_path / "run/summary.txt").read_text() == done.summary


def test_limit_of_epochs_ends_attempts(placement: Placement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never(monkeypatch)
    done = solve(placement, tmp_path / "run", "45 epochs")
    assert [each.epoch for each in done.record.attempts] == [20, 20, 5]
    assert done.is_unsolved
    assert done.summary.startswith("Not solved within 45 epochs, attempt ")
    passes_at(monkeypatch, schedule.seed_of(FLAT.seed, 3), 10)
    more = restarts.resume(tmp_path / "run", placement, within=Within.parse("90 epochs"))
    assert more.solved
    assert [each.epoch for each in more.record.attempts] == [20, 20, 5, 10]


def test_limit_of_time_leaves_a_run_that_continues_bit_for_bit(placement: Placement, tmp_path, monkeypatch) -> None:
    passes_at(monkeypatch, schedule.seed_of(FLAT.seed, 1), 10)
    whole = solve(placement, tmp_path / "whole")
    cut = solve(placement, tmp_path / "cut", "0.000001s")
    assert cut.out_of_time
    assert cut.is_unsolved
    assert cut.summary.startswith("Not solved within 1e-06 s")
    assert [each.status for each in cut.record.attempts] == ["interrupted"]
    on = restarts.resume(tmp_path / "cut", placement)
    assert [each.status for each in on.record.attempts] == [each.status for each in whole.record.attempts]
    for number in (1, 2):
        assert_same_run(tmp_path / f"whole/attempt-{number}", tmp_path / f"cut/attempt-{number}")
    assert "within" not in json.loads((tmp_path / "cut/request.json").read_text())


def test_accepted_model_of_a_population_is_saved(placement: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
    passes_at(monkeypatch, FLAT.seed + 2, 10)
    done = solve(placement, population=3)
    assert done.solved
    assert done.best.best.config.seed == FLAT.seed + 2


def test_deadline_requests_a_stop() -> None:
    other = Stop()
    assert Deadline(other, 1000).reason is None
    assert Deadline(other, 0).reason == "the limit of 0 s"
    assert Deadline(other, 60, used=61).reason == "the limit of 60 s"
    late = Deadline(other, 1000)
    other.ask("enough")
    assert late.reason == "enough"
    end = time.monotonic() + 5
    soon = Deadline(Stop(), 0.01)
    while soon.reason is None:
        assert time.monotonic() < end


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("60s", Within(seconds=60)),
        ("90", Within(seconds=90)),
        ("1.5 m", Within(seconds=90)),
        ("2h", Within(seconds=7200)),
        ("2000 epochs", Within(epochs=2000)),
        ("1epoch", Within(epochs=1)),
        ("60s or 2000 epochs", Within(60, 2000)),
        ("2000 epochs or 1.5m", Within(90, 2000)),
        ("48h", Within(seconds=172_800)),
        ("0.1s", Within(seconds=0.1)),
    ],
)
def test_limits_are_parsed(text: str, limit: Within) -> None:
    assert Within.parse(text) == limit == Within.parse(str(limit))


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "60s or 5m", "60s or", "9 epochs or 8 epochs or 1s"),
        *("-3s", "0s", "0 epochs", "1.5 epochs", "1e9s", "5 days"),
    ],
)
def test_wrong_limits_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Expected a time or a number of epochs, such as 60s, 5m or 2000 epochs"):
        Within.parse(text)


def test_epoch_on_a_smaller_grid_costs_its_share() -> None:
    """8x8 cells with 9 steps are 0.1125 of 16x16 with 20, 12x12 with 14 are 0.39375."""
    growing = checkerboard().with_(growth={"until": [60, 100], "sides": [8, 12], "steps": [9, 14]})
    assert schedule.effort(growing, 60) == pytest.approx(60 * 0.1125)
    assert schedule.effort(growing, 110) == pytest.approx(60 * 0.1125 + 40 * 0.39375 + 10)
    assert schedule.effort(checkerboard(), 110) == 110
    for epochs in (0, 1, 59, 60, 61, 100, 101, 250, 500):
        assert schedule.epochs_within(growing, schedule.effort(growing, epochs)) == epochs
    assert schedule.epochs_within(growing, 10**6) == 500


def test_limit_below_one_attempt_is_refused() -> None:
    config = recipes.applied("robust", checkerboard())
    with pytest.raises(UsageError, match=r"2 epochs are too few to test an attempt, which takes \d+\. Give a larger"):
        budget.check(TrainRequest(config=config, until_solved=True, within=Within(epochs=2)))


def test_short_limit_of_time_is_reported() -> None:
    """The lizard's first look is at epoch 210 of 3500, that of a board on 8x8 cells after 22 epochs' worth."""
    lizard, board = (recipes.applied("robust", presets.get(name)) for name in ("lizard", "checkerboard"))

    def notice(config: Config, population: int, within: Within | None) -> str | None:
        return budget.notice(TrainRequest(config=config, population=population, until_solved=True, within=within))

    told = notice(lizard, 1, Within(seconds=10))
    assert told is not None
    assert re.fullmatch(r"It takes about \d+ s on two cores to see .*, longer than the limit of `within`: .*", told)
    assert notice(lizard, 1, Within(seconds=1000)) is None
    assert notice(board, 1, Within(seconds=10)) is None
    assert notice(board, 64, Within(seconds=10)) is not None
    assert notice(lizard, 1, Within(epochs=1)) is notice(lizard, 1, None) is None is None


NOISE = np.random.default_rng(5).integers(0, 2, (16, 16)).tolist()
PICTURE = tuple("".join(".1"[bit] for bit in row) for row in NOISE)
HARD = TrainRequest(preset="lizard", recipe="robust", set=sections(height=16, width=16, picture=PICTURE, epochs=20))
"""Request that cannot be learned in seconds."""


def unpruned(circuit: Circuit, visible: int) -> Circuit:
    """Leave circuits of several hundred repairs as they are: no search leaves as many."""
    return circuit


MAGENTA = {"picture": tuple("".join(".5"[bit] for bit in row) for row in NOISE), "loss_channels": 3}
"""Red and blue alike, and no green."""


@pytest.mark.parametrize(
    ("limit", "task", "interval", "epochs"),
    [
        ("4 epochs", {}, 10, (4, 4)),
        *exhaustive(("600s", {}, 10, (7, 7)), (None, MAGENTA, 10, (20, 20))),
        (None, {}, 1, (2, 19)),
    ],
    ids=["4 epochs are over", "the time is over", "all epochs are over", "a milestone is reached"],
)
def test_finishing_repairs_an_image_with_few_wrong_cells(
    limit: str | None,
    task: dict[str, Any],
    interval: int,
    epochs: tuple[int, int],
    fast: Placement,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attempt itself is solved, however its training ends, and has its own curves and summary."""
    monkeypatch.setattr(repair, "MOST_WRONG", 0.5)
    monkeypatch.setattr(finishing, "pruned", unpruned)
    if interval > 1:
        monkeypatch.setattr(restarts.stalled, "is_milestone", lambda *_: False)
    request = configure(HARD).request
    assert isinstance(request.config, Config)
    config = request.config.with_(task=task, train={"eval_interval": interval})
    within = None if limit is None else Within.parse(limit)
    asked = replace(request, config=config, until_solved=True, within=within)
    observer = Observer()

    def advanced(epoch: int) -> None:
        if limit == "600s" and epoch == 7 and observer.stop is not None:
            observer.stop.ask("the limit of 600 s")

    observer.advanced = advanced  # type: ignore[method-assign]
    made = restarts.train(asked, fast, tmp_path / "run", observer)
    [attempt] = made.record.attempts
    assert (attempt.status, attempt.wrong, attempt.given_up, made.interrupted) == ("solved", 0, None, None)
    assert epochs[0] <= attempt.epoch <= epochs[1]
    netlist = netlist_json.from_json((tmp_path / "run/circuit.json").read_text(encoding="utf-8"))
    assert netlist.visible == config.task.loss_channels
    grown = netlist.rollout(start_of(netlist)[None], config.task.steps)[-1, 0, ..., : netlist.visible]
    assert np.array_equal(grown, fixed_target(config.task))
    assert re.search(r"Repaired: +\d+ wrong cells, \d+ gates added\n", made.summary)
    assert ("Learned:         1 of 3 channels; the others are copies of these or" in made.summary) == bool(task)
    read = difflogic.load_run(tmp_path / "run")
    assert (read.solved, len(read.metrics), read.config.task.loss_channels) == (True, attempt.epoch, 1)
    assert (
        read.netlist.rollout(start_of(netlist)[None], config.task.steps)[-1].tobytes()
        == netlist.rollout(start_of(netlist)[None], config.task.steps)[-1].tobytes()
    )
    with pytest.raises(UsageError, match="has ended"):
        restarts.resume(tmp_path / "run", fast)


@pytest.mark.parametrize("options", [{"until_solved": True}, {"restarts": 3}], ids=["until solved", "restarts"])
def test_preset_image_stays_and_returns(options: dict[str, Any], fast: Placement, tmp_path: Path) -> None:
    made = restarts.train(configure(TrainRequest("image", **options)).request, fast, tmp_path / "run")
    best = made.best
    assert isinstance(best, Run)
    assert (made.solved, best.best.config.task) == (True, presets.image().task)
    assert "Stays:           from step 12 on, for ever" in made.summary
    assert "Returns:         after a 3x3 square is set to zero, for 100.0 %" in made.summary
    netlist = netlist_json.from_json((tmp_path / "run/circuit.json").read_text(encoding="utf-8"))
    states = netlist.rollout(start_of(netlist), 40)[12:, ..., :1]
    assert (states == fixed_target(presets.image().task)).all()


def test_run_without_attempts_says_that_nothing_holds_its_image() -> None:
    run = difflogic.fit("image", restarts=0, set={"train": {"epochs": 2}}, engine="cpu")
    assert "Held:            no: only runs with attempts" in run.summary


@pytest.mark.parametrize(
    ("shown", "learned"),
    [
        ((0, 0, 0), None),  # nothing is lit
        ((1, 2, 3), None),  # all differ
        ((1, 1, 0), [0]),
        ((0, 2, 1, 2, 0, 1), [1, 2]),
    ],
)
def test_each_channel_is_learned_once(shown: tuple[int, ...], learned: list[int] | None) -> None:
    """Channels have these patterns, of which 0 is dark."""
    kinds = np.stack([np.zeros((16, 16), np.uint8), *np.random.default_rng(1).integers(0, 2, (3, 16, 16), np.uint8)])
    target = kinds[list(shown)].transpose(1, 2, 0)
    config = configure(HARD).config
    assert isinstance(config, Config)
    config = config.with_(task={"picture": encode(target), "loss_channels": len(shown)})
    once = finishing.learned_once(config)
    assert (once == config) == (learned is None)
    if learned is not None:
        assert np.array_equal(fixed_target(once.task), target[..., learned])
        assert once.with_(task={"picture": config.task.picture, "loss_channels": len(shown)}) == config


def test_resume_recognizes_a_finished_image(fast: Placement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after the finished circuit is saved and before the end of the run is written."""
    monkeypatch.setattr(finishing, "pruned", unpruned)
    monkeypatch.setattr(repair, "MOST_WRONG", 0.5)
    request = replace(configure(HARD).request, until_solved=True)
    complete = restarts.train(request, fast, tmp_path / "complete")
    with monkeypatch.context() as patch:
        patch.setattr(Session, "write_end", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restarts.train(request, fast, tmp_path / "killed")
    assert restarts.resume(tmp_path / "killed", fast).record == complete.record
    assert_same_run(tmp_path / "complete/attempt-1", tmp_path / "killed/attempt-1")


@pytest.mark.parametrize(
    ("fields", "enough", "epoch"),
    [({"until_solved": True}, 10, 10), *exhaustive(({"restarts": 1}, None, 30), ({"restarts": 0}, 10, 30))],
    ids=["stopped early", "all epochs are used up", "the only attempt is not stopped early"],
)
def test_finishing_repairs_what_an_attempt_leaves_wrong(fields, enough, epoch, fast: Placement, monkeypatch) -> None:
    monkeypatch.setattr(repair, "MOST_WRONG", 1.0)
    monkeypatch.setattr(finishing, "pruned", unpruned)
    monkeypatch.setattr(restarts.stalled, "why", lambda rows, *_: "enough" if len(rows) == enough else None)
    monkeypatch.setattr(restarts.stalled, "is_milestone", lambda *_: False)
    request = configure(HARD).request
    assert isinstance(request.config, Config)
    request = replace(request, config=request.config.with_(train={"eval_interval": 10, "epochs": 30}))
    [attempt] = restarts.train(replace(request, **fields), fast).record.attempts
    assert (attempt.status, attempt.epoch) == ("solved", epoch)


@pytest.mark.parametrize(
    "fields", [{"search": {"begin": 0}}, {"train": {"fire_rate": 0.5}}, {"task": {"loss_steps": (11, 12)}}]
)
def test_only_images_that_end_with_a_search_are_repaired(fields: dict[str, Any]) -> None:
    config = configure(HARD).config
    assert isinstance(config, Config)
    circuit = Circuit.initial(config.model, 23, config.initial)
    netlist = CellNetlist.of_run(circuit, config)
    shown = netlist.rollout(start_of(netlist)[None], config.task.steps)[-1, 0, ..., 0]
    config = config.with_(task={"picture": tuple("".join(".1"[bit] for bit in row) for row in shown)})
    assert finishing.can_be_finished(config)
    model, lines = finishing.Finishing(config, config).run(circuit, 23, 0) or pytest.fail("it is not finished")
    assert (model.best, lines) == (0, [])
    assert not finishing.can_be_finished(config.with_(**fields))
