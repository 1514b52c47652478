"""Training that begins on a smaller grid."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from difflogic.config import schedule
from difflogic.config.limits import MOST
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.open import Placement, open_engine
from difflogic.engine import job as tasks
from difflogic.engine.api import Engine, Model
from difflogic.engine.job import Job
from difflogic.errors import LimitError
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.plan import Plan
from difflogic.gpu.workspace import Workspace
from difflogic.runs import checkpoint
from difflogic.train import stages, start
from difflogic.train.stages import Stage
from difflogic.train.trainer import Trainer
from tests.devices.test_race import LONG, Rivals
from tests.train.tiny import assert_same_run, quick_config

GROWTH = {"until": (4, 7), "sides": (3, 4), "steps": (1, 2)}


@pytest.fixture
def config() -> Config:
    return quick_config(growth=GROWTH, initial={"noise": 0.5}, fire_rate=0.7)


def test_every_stage_continues_from_the_last_state(config: Config, engine: Engine) -> None:
    member = start.fresh(TrainRequest(config=config)).members[0]
    state, losses = member.state, []
    for stage, epochs in enumerate((4, 3, 5)):
        model = engine.open([tasks.make_job(schedule.at_stage(config, stage), member.circuit)], [state])
        model.train(epochs)
        losses += [row.soft_loss for row in model.fetch_metrics()[0]]
        state, judged = model.states()[0], model.evaluate()[0]
        model.close()
    run = Trainer(config, engine).run()
    assert [row.soft_loss for row in run.metrics] == losses
    assert run.state.logits.tobytes() == state.logits.tobytes()
    assert (run.metrics[-1].hard_loss, run.metrics[-1].train_hard_loss) == (judged.hard_loss, judged.train_hard_loss)


def test_evaluations_use_the_largest_grid(config: Config, engine: Engine) -> None:
    """A learning rate of 0 keeps the circuit, and so its evaluation."""
    still = config.with_(train={"eval_interval": 1}, optimizer={"lr": 0.0})
    verdicts = {row.hard_loss for row in Trainer(still, engine).run().metrics}
    assert verdicts == {row.hard_loss for row in Trainer(schedule.at_stage(still, 2), engine).run().metrics}
    assert len(verdicts) == 1


def test_evaluation_opens_no_second_model(config: Config, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, ...]] = []

    make = type(engine).open

    def listening(self: Engine, jobs: Sequence[Job], *rest: Any) -> Model:
        opened.append(jobs[0].probes.shape)
        return make(self, jobs, *rest)

    monkeypatch.setattr(type(engine), "open", listening)
    Trainer(config.with_(train={"eval_interval": 1}), engine).run()
    assert opened == [(4, 3, 3, 2), (4, 4, 4, 2), (4, 5, 6, 2)]  # one for each stage


@pytest.mark.parametrize("changed", [{}, {"fire_rate": 1.0}, {"probes": 70}])
def test_evaluation_in_parts_is_the_same(config: Config, changed: dict[str, Any], monkeypatch) -> None:
    engine = open_engine("cpu")
    config = config.with_(initial={"logit": 0.5}, train=changed)
    job, state = (lambda member: (member.job, member.state))(start.fresh(TrainRequest(config=config)).members[0])
    model = engine.open([tasks.make_job(schedule.at_stage(config, 2), job.circuit)], [state])
    judged = model.evaluate()[0]
    monkeypatch.setattr(stages, "STRETCH_BYTES", 1)
    assert stages.on_probes(engine, job, state, judged) == judged
    assert judged.hard_loss > 0


@pytest.mark.exhaustive
def test_memory_limit_holds_while_the_grid_grows(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine("gpu")
    config = config.with_(growth={"until": (7,), "sides": (4,), "steps": (2,)})
    with pytest.raises(LimitError) as refused:
        _run_within(engine, config, 1, monkeypatch)
    found = re.search(r"allow at least ([\d.]+) MB", str(refused.value))
    assert found is not None
    assert _run_within(engine, config, round(1e6 * float(found[1])), monkeypatch) > 0


def _run_within(engine: Engine, config: Config, limit: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Trains on a GPU with that limit, within which it stays at every moment; the most bytes that it took."""
    held, most = {}, 0
    make, close = Workspace.__init__, Workspace.close

    def making(self: Workspace, device: GpuDevice, plan: Plan, *arguments: Any) -> None:
        nonlocal most
        held[self] = plan.total_bytes()
        most = max(most, sum(held.values()))
        make(self, device, plan, *arguments)

    def closing(self: Workspace) -> None:
        del held[self]
        close(self)

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "__init__", making)
        patch.setattr(Workspace, "close", closing)
        Trainer(config.with_(train={"eval_interval": 1}), Placement(engine, max_memory=limit)).run()
    assert not held
    assert most <= limit
    return most


def test_grid_that_does_not_fit_is_refused_before_training(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine("gpu")
    wide = config.with_(task={"height": 40, "width": 40})
    monkeypatch.setattr("difflogic.gpu.model.GpuModel.train", lambda *_: pytest.fail("an epoch was trained"))
    with pytest.raises(LimitError, match="The smallest plan needs"):
        Trainer(wide, Placement(engine, max_memory=600_000)).run()


def test_resume_in_any_stage_equals_the_uninterrupted_run(config: Config, engine: Engine, tmp_path: Path) -> None:
    config = config.with_(search={"begin": 9}, train={"batch": 1})
    Trainer(config, engine).run(out=tmp_path / "whole", population=2)
    Trainer(config, engine).run(epochs=2, out=tmp_path / "parts", population=2)
    for epochs in (4, 5, 7, 8, 9, 11, 12):
        Trainer(config, engine).run(epochs=epochs, resume=tmp_path / "parts")
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    assert checkpoint.load(tmp_path / "parts").state.costs is not None


@pytest.mark.parametrize(
    ("begin", "epoch", "found"),
    [
        (0, 0, [(4, 9), (7, 16), (MOST, 30)]),
        (0, 4, [(7, 16), (MOST, 30)]),
        (0, 99, [(MOST, 30)]),
        (9, 6, [(7, 16), (9, 30), (MOST, "search")]),
        (5, 0, [(4, 9), (5, 16), (MOST, "search")]),
        (4, 4, [(MOST, "search")]),
    ],
)
def test_stages_after_an_epoch(begin: int, epoch: int, found: list[object], config: Config) -> None:
    """The end of each stage, and the cells of its grid; a search cuts short what would still grow."""
    config = config.with_(search={"begin": begin})
    jobs = [tasks.make_job(config, start.fresh(TrainRequest(config=config)).members[0].circuit)]

    def trained(stage: Stage) -> object:
        return "search" if stage.searches else (stage.smaller or stage.jobs)[0].probes[0, ..., 0].size

    assert [(stage.until, trained(stage)) for stage in stages.stages(jobs, epoch)] == found


def test_engines_are_compared_on_the_complete_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    rivals = Rivals(monkeypatch, 1.0, 0.5)
    rivals.train(growth=GROWTH, **LONG)
    assert rivals.gpu.epochs == list(range(1, 12))  # the small grids, then the first trial
    assert rivals.cpu.epochs == list(range(12, 101))
    assert len(rivals.decisions) == len(rivals.heard) == 1
