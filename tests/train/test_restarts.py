"""Attempts that share one budget of epochs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.config import presets, schedule
from difflogic.config.customise import configure
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.open import Placement, open_engine
from difflogic.errors import RunFolderError, UsageError
from difflogic.runs import attempts, checkpoint, chosen, run_list
from difflogic.train import budget, restarts
from difflogic.train.observer import Observer
from difflogic.train.signals import Stop
from difflogic.train.trainer import Trainer
from tests.sampled import sampled
from tests.train.tiny import assert_same_run

EPOCHS = 500
PLAIN = presets.checkerboard()
SEARCHED = PLAIN.with_(hardening={"share": 0.8, "begin": 101, "end": 400}, search={"begin": 400})
GROWING = PLAIN.with_(growth={"until": [60, 100], "sides": [8, 12], "steps": [9, 14]})


def test_schedule_with_a_search_shrinks_and_others_are_cut() -> None:
    alone = schedule.attempt_of(SEARCHED, 1, 250)
    assert alone.seed == schedule.seed_of(SEARCHED.seed, 1)
    assert (alone.train.epochs, alone.hardening.begin, alone.hardening.end, alone.search.begin) == (250, 50, 200, 200)
    assert schedule.attempt_of(SEARCHED, 0, EPOCHS) == SEARCHED
    cut = schedule.attempt_of(GROWING, 2, 250)
    assert cut == GROWING.with_(seed=schedule.seed_of(GROWING.seed, 2), train={"epochs": 250})


def test_later_attempts_with_a_search_train_longer() -> None:
    """Lengths alternate; a longer training keeps the hardening of its configuration."""
    lizard = configure(TrainRequest("lizard")).config
    assert isinstance(lizard, Config)
    later = [schedule.attempt_of(lizard, number, lizard.train.epochs) for number in range(6)]
    assert [each.search.begin for each in later] == [105, 105, 420, 840, 105, 105]
    assert [each.hardening.share for each in later] == [0, 0, 0.4, 0.4, 0, 0]
    assert (later[3].hardening.begin, later[3].hardening.end) == (10, 53)
    last = schedule.attempt_of(lizard, 3, lizard.train.epochs // 7)
    assert (last.hardening.begin, last.hardening.end, last.search.begin) == (1, 8, 120)
    least = schedule.attempt_of(lizard, 2, 1)
    assert (least.hardening.begin, least.hardening.end, least.search.begin) == (0, 1, 1)
    falling = lizard.with_(schedule={"share": 0.1, "begin": 40, "end": 90})
    assert schedule.attempt_of(falling, 0, 1).schedule.end == 1
    late = lizard.with_(search={"begin": 1200})
    assert [schedule.attempt_of(late, number, 3500).search.begin for number in (1, 2, 3)] == [1200, 1750, 1750]
    own = lizard.with_(hardening={"share": 0.2, "begin": 1, "end": 9})
    later_seed = schedule.seed_of(own.seed, 2)
    assert schedule.attempt_of(own, 2, 3500) == own.with_(seed=later_seed, search={"begin": 420})


def test_every_attempt_has_its_own_seed() -> None:
    seeds = [schedule.seed_of(seed, attempt) for seed in range(9) for attempt in range(5)]
    assert seeds[::5] == list(range(9))
    assert len(set(seeds)) == 45
    assert all(0 <= seed < 2**32 for seed in seeds)


def flattened(config: Config) -> Config:
    """Configuration whose loss never changes: a learning rate of 0, and always the same initial state."""
    return config.with_(task={"start": "zeros"}, train={"epochs": 100, "eval_interval": 5}, optimizer={"lr": 0.0})


@pytest.fixture(scope="module")
def placement() -> Placement:
    """Placement on one engine, since attempts do not depend on it."""
    return Placement(open_engine("cpu"))


@pytest.mark.parametrize("population", [1, 2])
def test_attempts_share_the_epochs(population: int, config: Config, placement: Placement, tmp_path: Path) -> None:
    flat = flattened(config)
    done = restarts.train(TrainRequest(config=flat, restarts=2, population=population), placement, tmp_path / "run")
    lengths = [run.state.epoch * population for run in done.runs]
    assert lengths == {1: [20, 20, 60], 2: [30, 30, 40]}[population]
    assert done.record.effort == sum(lengths) == 100
    assert [run.interrupted for run in done.runs] == [None] * 3
    told = json.loads((tmp_path / "run" / attempts.NAME).read_text())
    assert [each["status"] for each in told["attempts"]] == ["given up", "given up", "complete"]
    assert [each["seed"] for each in told["attempts"]] == [schedule.seed_of(config.seed, n) for n in range(3)]
    manifest = json.loads((tmp_path / "run" / "attempt-1" / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    circuits = {(tmp_path / "run" / f"attempt-{n}" / "circuit.json").read_bytes() for n in (1, 2, 3)}
    assert len(circuits) == 3


def test_attempt_is_the_same_as_a_single_run(config: Config, placement: Placement, tmp_path: Path) -> None:
    flat = flattened(config)
    second = restarts.train(TrainRequest(config=flat, restarts=1), placement, tmp_path / "run").runs[-1]
    alone = Trainer(second.config, placement.engine).run()
    assert second.state.logits.tobytes() == alone.state.logits.tobytes()
    assert [row.soft_loss for row in second.metrics] == [row.soft_loss for row in alone.metrics]


@pytest.mark.parametrize(
    ("number", "population", "sentence"),
    [
        (5, 1, "`restarts` must be at most 4 for 500 epochs, got 5: an attempt is first tested after 100 epochs."),
        (-1, 1, "`restarts` must be an integer between 0 and 2147483648, got -1."),
        (1, 6, "With restarts, 6 models share 500 epochs, 83 each, but an attempt is first tested after 100 epochs: "
               "give a smaller population, or more epochs."),
    ],
)  # fmt: skip
def test_too_small_budget_is_refused(number: int, population: int, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        budget.check(TrainRequest(config=PLAIN, restarts=number, population=population))
    assert str(refused.value) == sentence


class StopAt(Observer):
    """Observer that ends an attempt at an epoch, and records all attempts."""

    def __init__(self, attempt: int = 0, epoch: int = 0) -> None:
        self.at, self.stop = (attempt, epoch), Stop()
        self.told: list[attempts.Attempt] = []

    def attempted(self, attempt: attempts.Attempt) -> None:
        self.told.append(attempt)

    def advanced(self, epoch: int) -> None:
        if self.told[-1].number == self.at[0] and epoch >= self.at[1]:
            self.stop.ask("enough")


@pytest.mark.parametrize(("attempt", "epoch"), sampled([(1, 3), (2, 15), (3, 59)], {(2, 15)}))
def test_interrupted_attempts_continue_bit_for_bit(
    attempt: int, epoch: int, config: Config, placement: Placement, tmp_path: Path
) -> None:
    """First the attempt that was interrupted, between evaluations or at one, then the remaining ones."""
    flat = flattened(config)
    whole = restarts.train(TrainRequest(config=flat, restarts=2), placement, tmp_path / "whole")
    observer = StopAt(attempt, epoch)
    cut = restarts.train(TrainRequest(config=flat, restarts=2), placement, tmp_path / "cut", observer)
    assert cut.interrupted == "enough"
    assert [each.status for each in cut.record.attempts] == ["given up"] * (attempt - 1) + ["interrupted"]
    observer = StopAt()
    cut = restarts.resume(tmp_path / "cut", placement, observer=observer)
    assert (observer.told[0].number, observer.told[0].status) == (attempt, "running")
    assert cut.record == whole.record
    assert [run.path.name for run in cut.runs if run.path is not None] == ["attempt-1", "attempt-2", "attempt-3"]
    for number in (1, 2, 3):
        assert_same_run(tmp_path / "whole" / f"attempt-{number}", tmp_path / "cut" / f"attempt-{number}")


def test_killed_attempts_continue(config: Config, placement: Placement, tmp_path: Path) -> None:
    flat, out = flattened(config), tmp_path / "run"
    whole = restarts.train(TrainRequest(config=flat, restarts=2), placement, out)
    first, second, third = whole.record.attempts
    begun = replace(second, status="running", epoch=0, wrong=None, given_up=None)
    shutil.rmtree(out / "attempt-3")
    whole.record.with_attempt(first).with_attempt(begun).write(out)
    assert restarts.resume(out, placement).record == whole.record
    whole.record.with_attempt(first).with_attempt(second).with_attempt(replace(third, status="running")).write(out)
    for name in (checkpoint.NAME, checkpoint.PREVIOUS):
        (out / "attempt-3" / name).unlink()
    assert restarts.resume(out, placement).record == whole.record


def test_complete_attempts_are_not_resumed(config: Config, placement: Placement, tmp_path: Path) -> None:
    out = tmp_path / "my run"
    restarts.train(TrainRequest(config=flattened(config), restarts=0), placement, out)
    sentence = f"has ended and has no attempts left: .* --resume '{out}/attempt-1' --epochs N"
    with pytest.raises(UsageError, match=sentence):
        restarts.resume(out, placement)
    with pytest.raises(RunFolderError, match="is not empty"):
        restarts.train(TrainRequest(config=flattened(config), restarts=0), placement, out)
    (out / "attempt-1").rename(tmp_path / "elsewhere")
    (out / "attempt-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="attempt-1 leads out of"):
        restarts.resume(out, placement)
    (out / "attempt-1").unlink()
    (out / attempts.NAME).write_text('{"format": 1, "attempts": 3}')
    with pytest.raises(RunFolderError, match=r"restarts\.json cannot be used: "):
        restarts.resume(out, placement)


def test_folder_of_attempts_stands_for_the_best_one(config: Config, placement: Placement, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = restarts.train(TrainRequest(config=flattened(config), restarts=2), placement, out)
    wrong = [attempt.wrong for attempt in done.record.attempts]
    assert None not in wrong
    best = wrong.index(min(each for each in wrong if each is not None))
    assert done.best is done.runs[best]
    assert chosen.run_folder(out) == done.best.path
    entry = run_list.read(out)
    assert isinstance(entry, run_list.Entry)
    assert (entry.path, entry.status, entry.attempts, entry.epoch, entry.epochs) == (out, "complete", 3, 100, 100)
    assert entry.hard_loss == done.best.wrong
    assert list(run_list.find(tmp_path)) == [out]
    shutil.rmtree(out / "attempt-3")
    begun = replace(done.record.attempts[2], status="running", epoch=0)
    done.record.with_attempt(begun).write(out)
    killed = run_list.read(out)
    assert isinstance(killed, run_list.Entry)
    assert (killed.status, killed.epoch) == ("killed", 40)


@pytest.mark.exhaustive
def test_every_second_attempt_at_a_rule_searches() -> None:
    parity = configure(TrainRequest("game-of-life", rule="B1357/S1357")).config
    begins = [schedule.attempt_of(parity, number, parity.train.epochs).search.begin for number in range(4)]
    assert begins == [0, 1, 0, 1]
    run = restarts.train(TrainRequest(config=parity, restarts=1), Placement(open_engine("cpu")))
    assert (run.solved, len(run.record.attempts)) == (True, 2)
    conway = configure(TrainRequest("game-of-life")).config
    assert schedule.attempt_of(conway, 1, conway.train.epochs).search.begin == 0
