"""The predicted cost of a training is reported, or refused, before anything is allocated."""

from typing import Any

import pytest

from difflogic.config import presets
from difflogic.config.request import TrainRequest
from difflogic.devices import cost
from difflogic.devices.open import open_engine
from difflogic.engine import memory
from difflogic.errors import LimitError
from difflogic.model.circuit import Circuit
from difflogic.train import start
from difflogic.train.session import Rules
from difflogic.train.trainer import Trainer
from tests.train.diary import Diary
from tests.train.tiny import tiny_config

SMALL = presets.checkerboard(small=True)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine with 16 GB."""
    for module in (cost, memory):
        monkeypatch.setattr(module, "physical_memory", lambda: 16 * 10**9)


@pytest.mark.parametrize(
    "changed",
    [
        {"train": {"batch": 500_000}},
        {"train": {"probes": 2_000_000_000}},
        {"task": {"steps": 100_000_000}},
        {"task": {"height": 60_000, "width": 60_000}},
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_made(changed: dict[str, Any], machine: None, monkeypatch) -> None:
    monkeypatch.setattr(Circuit, "initial", lambda *_: pytest.fail("a circuit was made"))
    for name in ("cpu", "reference"):
        with pytest.raises(LimitError, match=r"needs (about|at least) [0-9.]+ GB.* but this machine has "):
            Trainer(SMALL.with_(**changed), open_engine(name)).run()


def test_a_population_that_does_not_fit_says_how_many_do(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Circuit, "initial", lambda *_: pytest.fail("a circuit was made"))
    with pytest.raises(LimitError, match=r"^A population of 12000 needs about .* train at most (\d+)\.$") as no:
        Trainer(SMALL, open_engine("cpu")).run(population=12000)
    fitting = int(str(no.value).split()[-1].removesuffix("."))
    memory.check_processor(SMALL, fitting, open_engine("cpu").threads)
    with pytest.raises(LimitError):
        memory.check_processor(SMALL, fitting + 1, open_engine("cpu").threads)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_no_preset_is_refused_or_called_long(name: str, machine: None) -> None:
    memory.check_processor(presets.get(name), 4, 16)
    assert cost.notice(presets.get(name), 1) is None


def test_what_takes_long_is_announced() -> None:
    diary, config = Diary(), tiny_config(epochs=2_000_000_000)
    Trainer(config, open_engine("cpu")).run(observer=diary, rules=Rules(give_up=lambda members: "enough"))
    assert diary.notices == [cost.notice(config, 1)]
    assert diary.notices[0].startswith("This may take about ")
    assert " hours on a typical processor, less than 2 s per epoch; Ctrl-C saves the run" in diary.notices[0]
    slow = cost.notice(SMALL.with_(train={"batch": 20_000, "epochs": 1}), 1)
    assert slow is not None
    assert "minutes per epoch" in slow


@pytest.mark.parametrize("name", ["game-of-life", "checkerboard", "checkerboard-async", "lizard", "heart-persistent"])
def test_what_is_predicted_is_what_the_cpu_engine_takes(name: str) -> None:
    engine = open_engine("cpu")
    member = start.fresh(TrainRequest(config=presets.get(name))).members[0]
    taken = engine.open([member.job], [member.state]).nbytes
    predicted = engine.memory([member.job])
    assert 0.9 * taken <= predicted <= 2 * taken
    assert predicted == cost.cost_of(presets.get(name), 1, engine.threads).memory


def test_a_step_with_candidates_costs_as_many_evaluations() -> None:
    one, four = (cost.cost_of(SMALL.with_(model={"candidates": k}), 1) for k in (1, 4))
    assert four.evaluations == 4 * one.evaluations


def test_a_rollout_that_memory_does_not_hold_is_refused_and_a_long_one_announced(machine: None) -> None:
    assert cost.check_rollout(SMALL.model, 64 * 64, 100, 3 * 100) is None
    told = cost.check_rollout(SMALL.model, 64 * 64, 100_000, 3 * 200)
    assert told is not None
    assert told.startswith("This may take about ")
    with pytest.raises(LimitError, match=r"^Displaying a grid of 3600000000 cells needs about 493\.2 GB, "):
        cost.check_rollout(SMALL.model, 60_000 * 60_000, 1, 9)
