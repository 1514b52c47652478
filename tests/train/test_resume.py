"""Stopped and resumed runs equal uninterrupted ones, bit for bit."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from difflogic import fit
from difflogic.cli.screen.training import interruption
from difflogic.config import kept_starts
from difflogic.config.harden import hardening
from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError, ConfigError, NotFoundError, RunFolderError, UsageError
from difflogic.model.statistics import undecided_gates
from difflogic.runs import checkpoint, request_file
from difflogic.train.observer import Observer
from difflogic.train.run import Run
from difflogic.train.signals import Stop
from difflogic.train.trainer import Trainer
from tests.sampled import exhaustive, sampled
from tests.tasks import task_config
from tests.train import child
from tests.train.diary import Diary
from tests.train.scripted import Scripted
from tests.train.tiny import EPOCHS, arrays_of, assert_same_run, columns_of, every, tiny_config

Whole = Callable[[int], Run]
KILLS = [
    *(("reference", 1, operation) for operation in (1, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 17, 19, 22)),
    *(("reference", 3, operation) for operation in (4, 8, 9, 15)),
    *((engine, *which) for engine in ("cpu", "gpu") for which in ((1, 5), (1, 17), (3, 8))),
]
"""Engine, number of models, and the operation on files that kills the process. Only reading depends on the engine."""

any_engine_will_do = pytest.mark.parametrize("engine", ["reference"], indirect=True)
"""Cases that do not depend on the engine."""


class SignalAt(Observer):
    """Observer that sends this process a signal at an epoch."""

    def __init__(self, epoch: int, number: signal.Signals) -> None:
        self.epoch, self.number = epoch, number

    def advanced(self, epoch: int) -> None:
        if epoch == self.epoch:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("population", "first"), sampled([(1, 1), (1, 3), (1, 5), (1, 11), (3, 7)], [(1, 5), (3, 7)]))
def test_two_halves_equal_the_complete_run(
    population: int, first: int, whole: Whole, config: Config, engine: Engine, tmp_path: Path
) -> None:
    trainer = Trainer(config, engine)
    trainer.run(epochs=first, out=tmp_path / "halves", population=population)
    assert len(trainer.run(resume=tmp_path / "halves").members) == population
    assert_same_run(whole(population).path, tmp_path / "halves")


def test_run_stores_its_starts(tmp_path: Path) -> None:
    """Their file is needed only where it begins, and is then the one that the configuration names."""
    drawn = np.random.default_rng(2).integers(0, 2, (3, 5, 6, 2), dtype=np.uint8)
    np.save(tmp_path / "starts.npy", drawn)
    np.save(tmp_path / "others.npy", 1 - drawn)
    config, engine = kept_starts.kept(tiny_config(), drawn), open_engine("cpu")
    trainer = Trainer(config, engine)
    for starts, what in ((None, "give the file with `starts`"), (tmp_path / "others.npy", "does not contain")):
        with pytest.raises(UsageError, match=what):
            trainer.run(out=tmp_path / "refused", starts=starts)
    assert not (tmp_path / "refused").exists()
    trainer.run(out=tmp_path / "whole", starts=tmp_path / "starts.npy", population=2)
    trainer.run(epochs=7, out=tmp_path / "halves", starts=tmp_path / "starts.npy", population=2)
    for file in ("starts.npy", "others.npy"):
        (tmp_path / file).unlink()
    trainer.run(resume=tmp_path / "halves")
    assert_same_run(tmp_path / "whole", tmp_path / "halves")
    pools = [each.state.pool for each in checkpoint.read(tmp_path / "whole").members]
    for pool in pools:
        assert pool is not None
        np.testing.assert_array_equal(pool[1:7:2], drawn)
    assert not np.array_equal(*pools)  # what is not kept is drawn by the seed
    assert not hardening(config).pool.size  # they are not at hand where the run is hardened


@pytest.mark.parametrize(("name", "candidates"), [("a pool of boards", 1), ("everything", 1), ("everything", 4)])
@pytest.mark.parametrize("which", ["reference", "cpu"])
def test_pool_continues_bit_for_bit(name: str, candidates: int, which: str, tmp_path: Path) -> None:
    config = task_config(name, epochs=EPOCHS, eval_interval=5, model={"candidates": candidates})
    trainer = Trainer(config, open_engine(which))
    trainer.run(out=tmp_path / "whole", population=2)
    trainer.run(epochs=7, out=tmp_path / "halves", population=2)
    trainer.run(resume=tmp_path / "halves")
    assert_same_run(tmp_path / "whole", tmp_path / "halves")
    assert checkpoint.load(tmp_path / "halves").state.pool is not None


@any_engine_will_do
@pytest.mark.parametrize(("heard_by", "log_interval"), [("advanced", 10), ("logged", 1), ("saved", 1), ("saved", 10)])
def test_signal_at_any_moment_saves_the_run(
    heard_by: str, log_interval: int, finished: Run, config: Config, engine: Engine, tmp_path: Path
) -> None:
    def listen(value: object, *rest: object) -> None:
        epoch = getattr(value, "epoch", value)
        if epoch in (6, 10) and not seen:
            seen.append(epoch)
            os.kill(os.getpid(), signal.SIGINT)

    seen: list[object] = []
    observer = Observer()
    setattr(observer, heard_by, listen)
    run = Trainer(config, engine).run(out=tmp_path / "run", observer=every(log_interval, observer))
    assert run.interrupted is signal.SIGINT
    assert [checkpoint.load(run.path).state.epoch, run.state.epoch, len(run.metrics)] == [seen[0]] * 3
    Trainer(config, engine).run(resume=run.path)
    assert_same_run(finished.path, run.path)


@pytest.mark.parametrize(
    ("number", "population", "epoch"),
    [
        (signal.SIGINT, 1, 1),
        *exhaustive((signal.SIGTERM, 1, 4), (signal.SIGHUP, 1, 5), (signal.SIGUSR1, 1, 7)),
        (signal.SIGUSR2, 3, 7),
    ],
)
def test_signal_saves_and_resume_continues(
    number: signal.Signals, population: int, epoch: int, whole: Whole, config: Config, engine: Engine, tmp_path: Path
) -> None:
    before = signal.getsignal(number)
    observer = SignalAt(epoch, number)
    run = Trainer(config, engine).run(out=tmp_path / "stopped", observer=observer, population=population)
    assert run.interrupted is number
    assert signal.getsignal(number) is before
    assert checkpoint.load(run.path).state.epoch == len(run.metrics) == epoch
    assert [member.state.epoch for member in run.members] == [epoch] * population
    assert json.loads((run.path / "manifest.json").read_text())["status"] == "interrupted"
    again = Trainer(config, engine).run(resume=run.path)
    assert_same_run(whole(population).path, again.path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert [entry["after_epoch"] for entry in manifest["resumes"]] == [epoch]


class Enough(Observer):
    """Observer that requests a stop at an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch, self.stop = epoch, Stop()

    def advanced(self, epoch: int) -> None:
        if epoch >= self.epoch:
            self.stop.ask(f"epoch {epoch} is enough")


@any_engine_will_do
def test_stop_request_ends_a_run_and_resume_continues(finished: Run, config: Config, engine: Engine, tmp_path) -> None:
    observer = Enough(4)
    run = Trainer(config, engine).run(out=tmp_path / "stopped", observer=observer)
    assert run.interrupted == "epoch 4 is enough"
    assert checkpoint.load(run.path).state.epoch == len(run.metrics) == 4
    assert json.loads((run.path / "manifest.json").read_text())["status"] == "interrupted"
    assert f"Interrupted by epoch 4 is enough after epoch 4 of {EPOCHS}" in interruption(run, tmp_path)
    assert Trainer(config, engine).run(resume=run.path).interrupted is None
    assert_same_run(finished.path, run.path)


@pytest.mark.parametrize("again", [fit, lambda resume, engine: Trainer(tiny_config(), engine).run(resume=resume)])
def test_resume_keeps_the_request(again: Callable[..., Run], config: Config, one: Engine, tmp_path: Path) -> None:
    """The run still stops when it is solved, and then sets its unconverged gates, as `harden` requests."""
    engine = Scripted(one, {5: 0})
    Trainer(config, engine).run(out=tmp_path / "run", observer=Enough(3), stop_when_solved=1, decide=True)
    run = again(resume=tmp_path / "run", engine=engine)
    assert (run.epoch, run.complete, undecided_gates(run.state.logits)) == (5, True, 0)


def test_request_of_another_kind_is_refused(finished: Run, one: Engine) -> None:
    first = ("[]", "{", '{"format": 1, "config": {}}')
    for content in (*first, '{"format": 1, "target": "/etc/passwd"}', '{"format": 2}'):
        (finished.path / request_file.NAME).write_text(content)
        with pytest.raises(RunFolderError, match=r"request\.json cannot be used: .*\. Restore it from a backup\."):
            fit(resume=finished.path, engine=one)
    (finished.path / request_file.NAME).unlink()  # as version 0.1.0 wrote runs
    assert fit(resume=finished.path, engine=one).epoch == EPOCHS


def test_stop_request_at_the_last_epoch_leaves_a_complete_run(config: Config) -> None:
    observer = Enough(1)
    run = Trainer(config, open_engine("reference")).run(epochs=1, observer=observer)
    assert (run.complete, run.interrupted) == (True, "epoch 1 is enough")


class Twice(SignalAt):
    """Sends the signal a second time, as a person does, and the system that sends SIGXCPU every second."""

    def advanced(self, epoch: int) -> None:
        super().advanced(epoch)
        super().advanced(epoch)


@any_engine_will_do
def test_second_sigxcpu_changes_nothing(config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(out=tmp_path / "run", observer=Twice(7, signal.SIGXCPU))
    assert (run.interrupted, checkpoint.load(run.path).state.epoch) == (signal.SIGXCPU, 7)


@any_engine_will_do
def test_second_ctrl_c_quits_at_once(config: Config, engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Trainer(config, engine).run(out=tmp_path / "run", observer=Twice(7, signal.SIGINT))
    assert checkpoint.load(tmp_path / "run").state.epoch == 5
    Trainer(config, engine).run(resume=tmp_path / "run")  # the lock is free again


@any_engine_will_do
@pytest.mark.parametrize(
    ("ignored", "number", "heard"),
    [
        (signal.SIGINT, signal.SIGINT, None),
        (signal.SIGINT, signal.SIGTERM, signal.SIGTERM),
        (signal.SIGHUP, signal.SIGHUP, None),
    ],
    ids=["a background job", "a background job that is ended", "nohup"],
)
def test_ignored_signals_stay_ignored(
    ignored: signal.Signals, number: signal.Signals, heard: signal.Signals | None, config: Config, engine: Engine,
    tmp_path: Path,
) -> None:  # fmt: skip
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        run = Trainer(config, engine).run(out=tmp_path / "run", observer=SignalAt(7, number))
        assert signal.getsignal(ignored) is signal.SIG_IGN
    finally:
        signal.signal(ignored, before)
    assert run.interrupted is heard
    assert run.state.epoch == (EPOCHS if heard is None else 7)


def test_resume_extends(config: Config, engine: Engine, tmp_path: Path) -> None:
    long = Trainer(config, engine).run(epochs=17, out=tmp_path / "long")
    short = Trainer(config, engine).run(out=tmp_path / "short")
    assert columns_of(short.path)[EPOCHS][3] != "", "the last epoch is evaluated, scheduled or not"
    extended = Trainer(config, engine).run(epochs=17, resume=short.path)
    assert_same_run(long.path, extended.path)
    assert Config.load(short.path / "config.toml").train.epochs == 17


@any_engine_will_do
def test_resuming_a_complete_run_writes_its_results_again(finished: Run, config: Config, engine: Engine) -> None:
    arrays, columns = arrays_of(finished.path), columns_of(finished.path)
    for name in ("loss.png", "rollout.gif", "circuit.json", "summary.txt"):
        (finished.path / name).unlink()
    run = Trainer(config, engine).run(resume=finished.path)
    assert (arrays_of(run.path), columns_of(run.path)) == (arrays, columns)
    assert {"loss.png", "rollout.gif", "circuit.json", "summary.txt"} <= {child.name for child in run.path.iterdir()}


@any_engine_will_do
@pytest.mark.parametrize("population", [1, 3])
def test_newer_rows_are_cut(population: int, whole: Whole, config: Config, engine: Engine, tmp_path: Path) -> None:
    path = Trainer(config, engine).run(epochs=5, out=tmp_path / "cut", population=population).path
    lines = (whole(population).path / "metrics.jsonl").read_text().splitlines(keepends=True)
    *newer, torn = lines[5 * population : 7 * population]
    with (path / "metrics.jsonl").open("a") as file:
        file.write("".join(newer) + torn[:17])
    with (path / "metrics.csv").open("a") as file:
        file.write("8,1.0")
    Trainer(config, engine).run(resume=path)
    assert_same_run(whole(population).path, path)


@any_engine_will_do
def test_missing_rows_are_an_error(config: Config, engine: Engine, finished: Run) -> None:
    journal = finished.path / "metrics.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(CheckpointError, match=r"end at epoch 4, but its checkpoint is from epoch 12: restore metrics"):
        Trainer(config, engine).run(resume=finished.path)


@any_engine_will_do
def test_resume_refuses_another_configuration(config: Config, engine: Engine, finished: Run) -> None:
    with pytest.raises(ConfigError, match="differs in its configuration: only epochs may change"):
        Trainer(config.with_(seed=24), engine).run(resume=finished.path)


@any_engine_will_do
def test_resume_refuses_to_go_back(config: Config, engine: Engine, finished: Run) -> None:
    with pytest.raises(UsageError, match="is at epoch 12, past the requested 6: give more `epochs`"):
        Trainer(config, engine).run(epochs=6, resume=finished.path)


def test_resume_needs_a_run(config: Config, one: Engine, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="No run folder or checkpoint file at"):
        Trainer(config, one).run(resume=tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match=r"does not contain checkpoint\.safetensors"):
        Trainer(config, one).run(resume=tmp_path)
    lone = tmp_path / "lone.safetensors"
    lone.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is not in a run folder: start a new run from it with --init-from"):
        Trainer(config, one).run(resume=lone)


@any_engine_will_do
def test_previous_checkpoint_can_be_resumed(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(out=tmp_path / "run", observer=SignalAt(7, signal.SIGINT))
    current = run.path / checkpoint.NAME
    current.write_bytes(current.read_bytes()[:-1])
    sentence = "The previous checkpoint is intact: continue from epoch 5 with --resume"
    with pytest.raises(CheckpointError, match=sentence):
        Trainer(config, engine).run(resume=run.path)
    Trainer(config, engine).run(resume=run.path / checkpoint.PREVIOUS)
    assert_same_run(finished.path, run.path)


@any_engine_will_do
def test_interrupted_save_is_reported(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(out=tmp_path / "run", observer=SignalAt(7, signal.SIGINT))
    (run.path / checkpoint.NAME).unlink()
    notes = Diary()
    Trainer(config, engine).run(resume=run.path, observer=notes)
    assert notes.notices == [
        "checkpoint.safetensors is missing (a save was interrupted): continuing from checkpoint.previous.safetensors."
    ]
    assert_same_run(finished.path, run.path)


@any_engine_will_do
def test_change_of_the_engine_is_reported(finished: Run, config: Config, engine: Engine) -> None:
    manifest = json.loads((finished.path / "manifest.json").read_text())
    manifest["engine"] = {**manifest["engine"], "engine": "gpu", "adapter": "Imaginary 9000"}
    (finished.path / "manifest.json").write_text(json.dumps(manifest))
    notes = Diary()
    Trainer(config, engine).run(resume=finished.path, observer=notes)
    assert "The run was on gpu: Imaginary 9000" in notes.notices[0]
    assert "will not be identical bit for bit" in notes.notices[0]


@pytest.mark.parametrize(("engine", "population", "operation"), sampled(KILLS, KILLS[1:20:9]), indirect=["engine"])
def test_kill_during_a_save(population, operation, whole: Whole, config: Config, engine, tmp_path) -> None:
    process = child.start(tmp_path / "killed", engine=engine.info.engine, population=population, kill_at=operation)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    run = Trainer(config, engine).run(resume=tmp_path / "killed")
    assert_same_run(whole(population).path, run.path)
    assert not list(run.path.glob("*.tmp"))


@pytest.mark.exhaustive
def test_kills_at_any_moment(finished: Run, config: Config, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "killed"
    for epochs in (3, 4):
        heard, told = child.pipe()
        process = child.start(path, engine=engine.info.engine, resume=path.exists(), told=told)
        told.close()
        for _ in range(epochs):
            heard.recv()
            heard.send("go on")
        process.kill()
        process.join()
    assert_same_run(finished.path, Trainer(config, engine).run(resume=path).path)
