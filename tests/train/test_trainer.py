"""The epoch loop: schedule, chunks, stopping, starting from another run, skipped steps."""

import dataclasses
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.engine import job as tasks
from difflogic.engine.api import Engine
from difflogic.engine.job import PROBE_STREAM, Job, TrainState
from difflogic.errors import CheckpointError, ConfigError, LimitError, UsageError
from difflogic.model.statistics import undecided_gates
from difflogic.train.observer import Observer
from difflogic.train.replica import Replica
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.train.diary import Diary
from tests.train.scripted import Scripted
from tests.train.tiny import every, tiny_config


def test_run_in_memory_writes_nothing(config: Config, engine: Engine, complete: Run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = Trainer(config, engine).run()
    assert run.path is None
    assert list(tmp_path.iterdir()) == []
    assert len(run.metrics) == run.state.epoch == 12
    assert np.array_equal(run.circuit.flat_logits(), run.state.logits)
    assert run.interrupted is None
    assert np.array_equal(run.state.logits, complete.state.logits)


class Looks(Observer):
    """Observer that requests all states, and records the order of calls."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.seen: dict[int, Any] = {}

    def advanced(self, epoch: int) -> None:
        self.order.append(f"advanced {epoch}")

    def wants_states(self) -> bool:
        return True

    def shown(self, members: Sequence[Replica]) -> None:
        self.order.append(f"shown {members[0].state.epoch}")
        self.seen[members[0].state.epoch] = members[0].state.logits.copy()

    def judging(self, epoch: int) -> None:
        self.order.append(f"judging {epoch}")

    def judged(self, members: Sequence[Replica]) -> None:
        self.order.append(f"judged {members[0].state.epoch} {members[0].metrics[-1].hard_loss}")

    def saved(self, epoch: int) -> None:
        self.order.append(f"saved {epoch}")

    def ending(self) -> None:
        self.order.append("ending")


def test_observer_sees_every_state_and_changes_no_number(
    finished: Run, config: Config, engine: Engine, tmp_path: Path
) -> None:
    looks = Looks()
    again = Trainer(config, engine).run(observer=looks, out=tmp_path / "run")
    judged = [row.hard_loss for row in again.metrics if row.hard_loss is not None]
    first = ["advanced 1", "shown 1", "judging 1", f"judged 1 {judged[0]}", "saved 1", "advanced 2", "shown 2"]
    assert looks.order[: len(first)] == first
    assert looks.order[-5:] == ["shown 12", "judging 12", f"judged 12 {judged[-1]}", "saved 12", "ending"]
    assert again.state.logits.tobytes() == finished.state.logits.tobytes()
    assert set(looks.seen) == set(range(1, 13))
    half = Trainer(config.with_(train={"epochs": 6}), engine).run()
    assert looks.seen[6].tobytes() == half.state.logits.tobytes()


def test_training_fetches_metrics_and_logs_in_chunks(config: Config, one: Engine) -> None:
    scripted, diary = Scripted(one, {1: 60, 5: 30}), Diary()
    Trainer(config, scripted).run(observer=every(4, diary))
    assert diary.advances == [1, 4, 5, 8, 10, 12]
    assert scripted.calls == [1, 3, 1, 3, 2, 2]
    assert diary.logs == [(1, 0.5), (4, 0.5), (5, 0.75), (8, 0.75), (10, 1 - 9 / 120), (12, 1 - 9 / 120)]
    assert scripted.closed


def test_every_epoch_can_be_logged_without_stopping_at_it(config: Config, one: Engine) -> None:
    scripted, diary = Scripted(one, {1: 60, 5: 30}), Diary()
    Trainer(config, scripted).run(observer=every(1, diary))
    assert scripted.calls == [1, 3, 1, 3, 2, 2]
    accuracies = [0.5] * 4 + [0.75] * 5 + [1 - 9 / 120] * 3
    assert diary.logs == list(enumerate(accuracies, 1))


def test_calls_are_cut_to_what_the_engine_takes(one: Engine) -> None:
    scripted = Scripted(one, {})
    Trainer(tiny_config(eval_interval=100), scripted).run(observer=every(100))
    assert scripted.calls == [1, 3, 3, 3, 2]


def test_checkpoints_at_evaluations(config: Config, engine: Engine, tmp_path: Path) -> None:
    diary = Diary()
    run = Trainer(config, engine).run(out=tmp_path / "run", observer=every(2, diary))
    assert diary.saves == [1, 5, 10, 12]
    assert diary.began_with is not None
    assert (diary.began_with.path, diary.began_with.epoch) == (run.path, 0)


def test_best_is_the_lowest_so_far(config: Config, one: Engine) -> None:
    run = Trainer(config, Scripted(one, {1: 50, 5: 20, 10: 40, 12: 30})).run()
    assert [row.best for row in run.metrics if row.best is not None] == [50, 20, 20, 20]


@pytest.mark.parametrize(("stop", "epochs"), [(1, 5), (0, 12)])
def test_stop_when_solved(stop: int, epochs: int, config: Config, one: Engine) -> None:
    run = Trainer(config, Scripted(one, {5: 0, 12: 0})).run(stop_when_solved=stop)
    assert run.state.epoch == len(run.metrics) == epochs
    assert run.solved
    assert run.summary.startswith(f"Solved: right on all 4 evaluation grids (epoch {epochs})")


def test_unsolved_run_is_reported(config: Config, one: Engine) -> None:
    run = Trainer(config, Scripted(one, {5: 3, 10: 3})).run()
    assert not run.solved
    first = "Not solved: 3 wrong cells on all 4 evaluation grids (epoch 10); 9 wrong cells at epoch 12."
    assert run.summary.startswith(first)
    run = Trainer(config, Scripted(one, {})).run()
    assert run.summary.startswith("Not solved: 9 wrong cells on all 4 evaluation grids (epoch 12).")


def test_solved_run_stays_solved(config: Config, one: Engine) -> None:
    run = Trainer(config, Scripted(one, {5: 0})).run()
    assert run.solved
    assert (run.best.epoch, run.state.epoch) == (5, 12)
    assert run.summary.startswith("Solved: right on all 4 evaluation grids (epoch 5); 9 wrong cells at epoch 12.")


def test_skipped_epochs_are_reported(config: Config, one: Engine) -> None:
    diary = Diary()
    run = Trainer(config, Scripted(one, {}, skipped=(7, 9))).run(observer=diary)
    assert diary.notices == [
        "The gradient was not finite in 2 epochs, from 7 to 9: these optimiser steps were skipped."
    ]
    assert [row.epoch for row in run.metrics if row.skipped] == [7, 9]
    assert run.metrics[6].to_dict()["soft_loss"] is None
    assert run.metrics[6].csv_line().startswith("7,nan,")


def test_init_from_starts_from_another_run(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    other = config.with_(seed=5)
    for source in (finished.path, finished.path / "checkpoint.safetensors"):
        run = Trainer(other, Scripted(engine, {})).run(init_from=source)
        assert np.array_equal(run.state.logits, finished.state.logits)
        assert not run.state.optimizer.mu.any()
        assert run.state.optimizer.step == 0
        assert np.array_equal(run.circuit.update_wires[0], finished.circuit.update_wires[0])
    assert Trainer(config, engine).run(epochs=2, init_from=finished.path).metrics[0].epoch == 1


def test_init_from_gives_fixed_wires_further_candidates(finished: Run, config: Config, engine: Engine) -> None:
    run = Trainer(config.with_(model={"candidates": 2}), Scripted(engine, {})).run(init_from=finished.path)
    assert run.circuit.candidates == 2
    assert np.array_equal(run.circuit.chosen.flat_logits(), finished.circuit.flat_logits())
    assert np.array_equal(run.circuit.chosen.update_wires[0], finished.circuit.update_wires[0])


def test_init_from_needs_the_same_shape(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    update = dataclasses.replace(config.model.update, widths=(10, 11, 8, 4, 2))
    wider = config.with_(model=dataclasses.replace(config.model, update=update))
    with pytest.raises(CheckpointError, match=r"expected update logits of shapes \[\[11, 16\], .* got \[\[12, 16\]"):
        Trainer(wider, engine).run(init_from=finished.path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_refusing_device_leaves_no_folder(config: Config, one: Engine, tmp_path: Path) -> None:
    class Small(Scripted):
        def play(self, job: Job, state: TrainState) -> Scripted:
            raise LimitError("The device is too small.")

    with pytest.raises(LimitError):
        Trainer(config, Small(one, {})).run(out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_failure_frees_model_and_folder(config: Config, engine: Engine, tmp_path: Path) -> None:
    class Fails(Observer):
        def advanced(self, epoch: int) -> None:
            if epoch == 7:
                raise ZeroDivisionError("at epoch 7")

    with pytest.raises(ZeroDivisionError):
        Trainer(config, engine).run(out=tmp_path / "run", observer=Fails())
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["status"], manifest["epoch"]) == ("failed", 5)
    assert manifest["result"] == "ZeroDivisionError: at epoch 7"
    assert Trainer(config, engine).run(resume=tmp_path / "run").state.epoch == 12
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "complete"


@pytest.mark.parametrize("epochs", [0, -3])
def test_epochs_must_be_positive(epochs: int, config: Config, one: Engine) -> None:
    with pytest.raises(ConfigError, match=f"epochs must be an integer between 1 and 2147483648, got {epochs}"):
        Trainer(config, one).run(epochs=epochs)


def test_contradicting_arguments_are_refused(config: Config, one: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give resume alone"):
        Trainer(config, one).run(resume=tmp_path, out=tmp_path)
    with pytest.raises(ConfigError, match="log_interval must be an integer of at least 1, got 0"):
        Trainer(config, one).run(observer=every(0))


def test_training_runs_in_any_thread(config: Config, engine: Engine) -> None:
    runs: list[Run] = []
    thread = threading.Thread(target=lambda: runs.append(Trainer(config, engine).run()))
    thread.start()
    thread.join()
    assert runs[0].state.epoch == 12


def test_probes_are_fixed_and_not_training_data(config: Config) -> None:
    probes = tasks.probes(config)
    assert probes.shape == (4, 5, 6, 2)
    assert set(np.unique(probes)) == {0, 1}
    assert np.array_equal(probes, tasks.probes(config))
    assert not np.array_equal(probes, tasks.probes(config.with_(seed=24)))
    key = prng.key_from_seed(config.seed)
    stream = prng.fold_in(key, PROBE_STREAM)
    for _ in range(1000):
        key, sub = prng.split(key)
        assert not np.array_equal(sub, stream)


def test_gates_of_a_solution_converge(config: Config, one: Engine) -> None:
    soft = Trainer(config, Scripted(one, {5: 0})).run(stop_when_solved=1)
    hard = Trainer(config, Scripted(one, {5: 0})).run(stop_when_solved=1, decide=True)
    assert undecided_gates(soft.state.logits) > 0
    assert undecided_gates(hard.state.logits) == hard.metrics[-1].undecided == 0
    assert np.array_equal(hard.state.logits.argmax(axis=1), soft.state.logits.argmax(axis=1))
    assert np.array_equal(hard.circuit.flat_logits(), hard.state.logits)
    unsolved = Trainer(config, Scripted(one, {})).run(stop_when_solved=1, decide=True)
    assert unsolved.metrics[-1].undecided == undecided_gates(soft.state.logits)
