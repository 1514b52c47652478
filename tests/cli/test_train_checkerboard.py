"""`difflogic train-checkerboard`: what it prints, where it writes, what it refuses."""

import json
import re
import signal
from pathlib import Path

import pytest

from difflogic.cli.screen import sinks
from difflogic.cli.screen.training import TrainingReporter
from difflogic.engine.api import EngineInfo
from difflogic.runs import checkpoint
from difflogic.train.observer import Beginning
from difflogic.train.session import Session
from tests.cli.conftest import Call, complaints
from tests.sampled import sampled
from tests.train import processes
from tests.train.tiny import assert_same_run, tiny_config


@pytest.mark.parametrize(
    ("models", "seeds", "losses"),
    [
        ((), "seed 23", r", hard loss \d+ \(\d+\.\d\d % right\)"),
        (("--population", 3), "seeds 23 to 25", r" at best, \d+\.\d{4} in the median, solved \d of 3"),
    ],
)
def test_run_is_reported_in_lines(call: Call, models: tuple[object, ...], seeds: str, losses: str) -> None:
    code, out, errors = call(*models, "--log-interval", 4, "--out", "here")
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"tiny: 54 soft gates, 6x5 grid, 2 channels, 3 steps, batch 3, {seeds}"
    assert lines[1].startswith("Engine reference: NumPy (")
    assert lines[1].endswith("; reference was requested")
    assert lines[2] == "Run folder here"
    logs = [line for line in lines if line.startswith("Epoch ")]
    form = rf"Epoch [ \d]{{4}}: soft loss \d+\.\d{{4}}{losses}( at epoch \d+)?"
    assert all(re.fullmatch(form, line) for line in logs)
    assert [int(line[6:10]) for line in logs] == [1, 4, 5, 8, 10, 12]
    assert lines[-1] == "Run folder:      here"
    verdict = Path("here/summary.txt").read_text().splitlines()[0]
    assert verdict.startswith(("Solved: ", "Not solved: "))
    end = out[out.index(f"\n\n{verdict}\n") :].strip().splitlines()
    assert sum(-(-len(line) // 80) for line in end) <= 12
    assert ("95 % Wilson interval" in Path("here/summary.txt").read_text()) == bool(models)


def test_default_folder_and_log_line_are_exact(call: Call, tmp_path: Path) -> None:
    out = call("--epochs", 1).out
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"tiny-\d{8}-\d{6}", folder.name)
    assert f"Run folder:      runs/{folder.name}" in out
    row = json.loads((folder / "metrics.jsonl").read_text())
    expected = "Epoch    1: soft loss {soft_loss:.4f}, hard loss {hard_loss} ({right:.2f} % right)"
    assert expected.format(**row, right=100 * row["accuracy"]) in out.splitlines()


def test_run_is_reported_in_json_lines(call: Call) -> None:
    code, out, errors = call("--json", "--out", "here")
    assert (code, errors) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert set(kinds) == {"begin", "epoch", "checkpoint", "end"}
    assert events[0]["config"]["seed"] == 23
    assert events[0]["engine"]["engine"] == "reference"
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 5, 10, 12]
    assert all(event["hard_acc"] == round(100 * event["accuracy"], 4) for event in epochs)
    assert [events[-1][name] for name in ("path", "epoch", "interrupted")] == ["here", 12, None]


def test_options_reach_the_configuration(call: Call) -> None:
    call("--epochs", 3, "--seed", 5, "--batch", 7, "--eval-interval", 2, "--out", "here")
    config = checkpoint.load(Path("here")).config
    assert config == tiny_config(epochs=3, batch=7, eval_interval=2).with_(seed=5)


@pytest.mark.parametrize(("models", "seeds"), [((), ""), (("--population", 2, "--seed", 30), "seeds 30 to 31")])
def test_resume_continues_the_run(call: Call, models: tuple[object, ...], seeds: str) -> None:
    call(*models, "--out", "whole")
    call(*models, "--epochs", 5, "--out", "halves")
    code, out, errors = call("--resume", "halves", "--epochs", 12, engine=None)
    assert (code, errors) == (0, "")
    assert "Engine reference: NumPy" in out
    assert "; the run was on it before" in out
    assert seeds in out
    assert "Continuing after epoch 5 of 12" in out
    assert_same_run(Path("whole"), Path("halves"))


def test_population_is_reported_in_json(call: Call) -> None:
    code, out, errors = call("--population", 3, "--json", "--out", "here")
    assert (code, errors) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert (events[0]["event"], events[0]["population"]) == ("begin", 3)
    rows = [json.loads(line) for line in Path("here/metrics.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 5, 10, 12]
    for event in epochs:
        members = [dict(member) for member in event["members"]]
        assert [member.pop("hard_acc") for member in members] == [round(100 * each["accuracy"], 4) for each in members]
        assert {member.pop("hard_acc_epoch") for member in members} == {event["epoch"]}
        assert members == [row for row in rows if row["epoch"] == event["epoch"]]
        losses = sorted(member["soft_loss"] for member in members)
        assert [event["soft_loss_best"], event["soft_loss_median"]] == losses[:2]
        assert event["solved"] == sum(member["hard_loss"] == 0 for member in members)
    assert [member["seed"] for member in events[-1]["members"]] == [23, 24, 25]
    assert events[-1]["best_seed"] in (23, 24, 25)


@pytest.mark.parametrize(
    ("arguments", "stop"), [([], 0), (["--stop-when-solved"], 1), (["--stop-when-solved", "2"], 2)]
)
def test_stop_when_solved_counts_models(arguments: list[str], stop: int, call: Call, monkeypatch) -> None:
    asked: list[int] = []
    train = Session.train

    def listen(self: Session, stop: object) -> None:
        asked.append(self.stop_when_solved)
        train(self, stop)

    monkeypatch.setattr(Session, "train", listen)
    assert call(*arguments, "--population", 2, "--epochs", 1, "--out", "here").code == 0
    assert asked == [stop]


@pytest.mark.parametrize(("arguments", "code", "text"), [
    ("--epochs 0", 2, "epochs must be an integer between 1 and 2147483648, got 0."),
    ("--epochs -5", 2, "epochs must be an integer between 1 and 2147483648, got -5."),
    ("--batch 0", 2, "batch must be an integer between 1 and 2147483648, got 0."),
    ("--eval-interval 0", 2, "eval_interval must be an integer between 1 and 2147483648, got 0."),
    ("--log-interval 0", 2, "log_interval must be an integer of at least 1, got 0."),
    ("--seed -1", 2, "seed must be an integer between 0 and 4294967295, got -1."),
    ("--population 0", 2, "--population must be an integer between 1 and 2147483648, got 0."),
    ("--population -4", 2, "--population must be an integer between 1 and 2147483648, got -4."),
    ("--stop-when-solved 3 --population 2", 2,
     "stop_when_solved is a number of models: expected at most 2, the population, got 3."),
    ("--gpu", 2, "--gpu means --engine gpu, got --engine reference too: give only one of them."),
    ("--engine cuda", 2, "--engine must be auto, cpu, reference, gpu, gpu:INDEX or gpu:NAME, got 'cuda'."),
    ("--require-hardware", 2, "The reference engine runs on the CPU: omit --require-hardware, or use gpu or auto."),
    ("--resume nowhere", 2, "No run folder or checkpoint file at nowhere."),
    ("--resume occupied", 2, "The folder occupied does not contain checkpoint.safetensors: expected a run folder."),
    ("--resume x --seed 3 --small", 2, "--resume continues a run as it was configured: omit --seed, --small."),
    ("--resume x --population 3", 2, "--resume continues a run as it was configured: omit --population."),
    ("--init-from nowhere", 2, "No run folder or checkpoint file at nowhere."),
    ("--init-from file", 1, "file is not a difflogic checkpoint, or its header is damaged. Restore the file from a "
                            "backup, or start a new run."),
    ("--out occupied", 1, "The folder occupied is not empty: continue its run with --resume occupied, or choose "
                          "another --out."),
    ("--out file", 1, "Expected a folder, but file is a file: choose another --out."),
    ("--out file/deeper", 1, "Cannot create the run folder file/deeper: Not a directory."),
])  # fmt: skip
def test_bad_input_is_refused(arguments: str, code: int, text: str, call: Call, tmp_path: Path) -> None:
    (tmp_path / "occupied" / "mine").mkdir(parents=True)
    (tmp_path / "file").write_text("text")
    before = sorted(tmp_path.rglob("*"))
    assert call(*arguments.split()) == (code, "", f"Error: {text}\n")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("number", "code"),
    sampled([(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], {(signal.SIGINT, 130)}),
)
def test_signals_save_the_run(number: signal.Signals, code: int, call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ["train-checkerboard", "--small", "--restarts", 0, "--engine", "reference", "--epochs", 99999]
    arguments += ["--log-interval", 1, "--out", folder]
    with processes.start("difflogic.cli.main", *arguments) as process:
        while not process.stdout.readline().startswith("Epoch    2"):
            pass
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, complaints(errors)) == (code, [])
    state = checkpoint.load(folder).state
    assert out.endswith(
        f"Interrupted by {number.name} after epoch {state.epoch} of 99999; the checkpoint is saved. "
        f"Continue with: difflogic train --resume {folder}\n"
    )
    resumed = call("--resume", folder, "--epochs", state.epoch + 1)
    assert resumed.code == 0, resumed.errors
    assert f"Continuing after epoch {state.epoch} of {state.epoch + 1}" in resumed.out


def beginning(info: EngineInfo) -> Beginning:
    return Beginning(tiny_config(), info, "auto found it", Path("run"), 0, 12)


def test_adapter_backend_and_driver_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    software = beginning(EngineInfo("gpu", "llvmpipe", "CPU", "Vulkan", "Mesa 25", software=True))
    TrainingReporter(sinks.Lines()).began(software)
    captured = capsys.readouterr()
    assert "Engine gpu: llvmpipe (CPU, Vulkan, Mesa 25); auto found it\n" in captured.out
    assert captured.err == "Warning: llvmpipe is a software adapter: a GPU that the CPU emulates, correct but slow.\n"
    TrainingReporter(sinks.JsonLines()).began(software)
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == ["begin", "notice"]
    TrainingReporter(sinks.Lines()).began(beginning(EngineInfo("gpu", "Quick 9000", "DiscreteGPU", "Vulkan", "1.0")))
    assert capsys.readouterr().err == "", "hardware needs no warning"


def test_bar_replaces_lines(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sinks, "choose", lambda as_json, unit: sinks.Bar(unit))
    code, out, _ = call("--out", "here", "--log-interval", 1)
    assert code == 0
    assert "soft loss" not in out
    assert "Run folder:      here" in out
