"""Sweeps: what they choose, what they leave, and that nothing which happens on the way changes either."""

import csv
import json
import os
import re
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from difflogic.cli import main as cli
from difflogic.core.interval import wilson_interval
from difflogic.devices.open import open_engine
from difflogic.errors import RunFolderError, UsageError
from difflogic.serve import sweep as of_sweeps
from difflogic.sweeps import course, page
from difflogic.sweeps.course import Sweep, Trial
from difflogic.sweeps.spec import Spec
from difflogic.sweeps.trial import Outcome
from difflogic.train.trainer import Trainer
from tests.own_tasks import PLAIN, install
from tests.policies import agents
from tests.programs import needs
from tests.sampled import sampled
from tests.serve.chromium import chromium
from tests.serve.test_page import barriers
from tests.sweeps.here import Here, described, swept, untimed
from tests.train import processes
from tests.train.tiny import assert_same_run, tiny_config

RATES, CLIPPED = {"optimizer.lr": "0.01:0.5:log"}, {"optimizer.clip_by": ["element", "norm"]}
SHORT, LONG = {"train.epochs": 2}, {"train.epochs": 9, "train.eval_interval": 3}
SWEEPS: dict[str, dict[str, Any]] = {
    "grid": {"over": {"optimizer.lr": [0.05, 0.2], "seed": "0..2"}, "set": SHORT},
    "random": {"over": RATES | {"seed": "0..2"}, "method": "random", "trials": 6, "set": SHORT},
    # Its first ten are drawn blindly.
    "optuna": {"over": RATES | CLIPPED, "method": "optuna", "trials": 13, "ahead": 2, "set": SHORT},
    "halving": {"over": RATES, "method": "halving", "trials": 7, "ahead": 3, "set": LONG},
}


@pytest.fixture(params=sampled(SWEEPS, {"random"}))
def sweep(request: pytest.FixtureRequest) -> Spec:
    return described(**SWEEPS[request.param])


def test_what_happens_on_the_way_changes_nothing(sweep: Spec, tmp_path: Path) -> None:
    """Stopped again and again, half a line lost, results in any order, more trials later: the table is the same."""
    whole, undisturbed = swept(tmp_path / "whole", sweep)
    assert len(whole.trials) == sweep.most
    assert whole.interrupted is None
    assert len({repr(each.values) for each in whole.trials}) == sweep.most
    folder, trained = tmp_path / "cut", list[Any]()
    few, given = sweep.with_(trials=4), True
    while True:
        here = Here(last_first=True, most=5)
        done, some = swept(folder, few if given else None, None if given else sweep.most, here)
        trained += some.trained
        if not given and done.interrupted is None:
            break
        with (folder / course.LEDGER).open("a") as file:
            file.write('{"trial": 0, "un')
        given = False
    assert untimed(done) == untimed(whole)
    assert sorted(trained, key=str) == sorted(undisturbed.trained, key=str)
    for each in whole.trials:
        assert_same_run(whole.path / each.folder, done.path / each.folder)


def test_a_trial_is_the_run_that_it_would_be_alone(tmp_path: Path) -> None:
    done, _ = swept(tmp_path / "sweep", described({"optimizer.lr": [0.05], "seed": "1..2"}))
    for each in done.trials:
        config = tiny_config().with_(seed=each.values["seed"], optimizer={"lr": 0.05})
        alone = Trainer(config, open_engine("reference")).run(out=tmp_path / f"alone-{each.number}")
        assert_same_run(alone.path, done.path / each.folder)
        assert each.outcome.wrong == alone.wrong
    best = min(done.trials, key=lambda each: each.value)
    assert_same_run(done.path / best.folder, done.path / "best")


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_tables(tmp_path: Path) -> None:
    over = {"task.steps": [3, 1], "seed": "0..1"}
    fields = {"task.damage_side": 2, "task.damage_steps": [2]}
    done, here = swept(tmp_path / "sweep", described(over, set=fields, metric="tts", population=2))
    assert here.trained == [(0, None), (1, None), (2, None), (3, None)]
    rows = read(done.path / "trials.csv")
    assert [(row["task.steps"], row["seed"]) for row in rows] == [("3", "0"), ("3", "1"), ("1", "0"), ("1", "1")]
    assert [row["status"] for row in rows] == ["complete"] * 2 + ["failed"] * 2
    assert all("damage" in row["error"] and row["tts"] == "" for row in rows[2:])
    first, second = read(done.path / "settings.csv")
    solved = sum(int(row["solved"]) for row in rows[:2])
    assert (first["models"], first["solved"], first["trials"]) == ("4", str(solved), "2")
    assert (float(first["rate_low"]), float(first["rate_high"])) == wilson_interval(solved, 4)
    assert (second["failed"], second["models"], second["rate"]) == ("2", "0", "")
    document = json.loads((done.path / "trials.json").read_text())
    assert [row["trial"] for row in document["trials"]] == [0, 1, 2, 3]
    again, here = swept(done.path, None)
    assert here.trained == []
    assert untimed(again) == untimed(done)


def test_agents(tmp_path: Path) -> None:
    spec = Spec.of(config=agents.config(), over={"logic.learning_rate": [0.05, 1e-6]}, method="grid")
    assert spec.metric == "return"
    done, _ = swept(tmp_path / "sweep", spec)
    good, bad = done.trials
    assert done.best == good
    assert good.value > bad.value
    assert (good.outcome.solved, good.outcome.models) == (1, 1)
    # No trial draws its curves, but they can be had of each.
    assert not list(done.path.glob("trials/*/*.png"))
    trial = ["render", str(done.path / good.folder), "--what", "loss", "-o"]
    assert cli.main([*trial, str(tmp_path / "curves.png")]) == 0


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name != "posix", reason="a process is killed by a signal")
def test_a_kill_at_any_moment(tmp_path: Path) -> None:
    whole, _ = swept(tmp_path / "whole", spec := described({"seed": "0..3"}))
    file, folder = tmp_path / "mine.toml", tmp_path / "cut"
    file.write_text(spec.to_toml())
    where = ("--devices", "reference", "--workers", "2")
    with processes.start("difflogic", "sweep", file, "-o", folder, *where) as child:
        while not any((folder / "queue" / "jobs").glob("*/run/checkpoint.safetensors")):
            assert child.poll() is None, child.communicate()
            time.sleep(0.01)
        child.kill()
    assert len((folder / course.LEDGER).read_text().splitlines()) < len(whole.trials)
    assert cli.main(["sweep", "--resume", str(folder), *where]) == 0
    assert not (folder / "queue").exists()
    table = json.loads((folder / "trials.json").read_text())["trials"]
    assert [{name: row[name] for name in row if name != "seconds"} for row in table] == untimed(whole)
    for each in whole.trials:
        assert_same_run(whole.path / each.folder, folder / each.folder)


TINY = "sweep checkerboard-small --epochs 1"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--over train.lr=0.1,0.2", "Unknown field 'train.lr' (did you mean optimizer.lr?)"),
        ("--over optimizer=1,2", "optimizer is a section: sweep one of its fields, such as optimizer.lr."),
        ("--over optimizer.lr=0.2:0.1", "Expected a range LOW:HIGH with LOW below HIGH for optimizer.lr, got 0.2:0.1."),
        ("--over optimizer.lr=0:1:log --trials 3", "Expected a range of numbers above 0 for optimizer.lr"),
        ("--over seed=5..3", "Expected values for seed, a list or LOW..HIGH with LOW not above HIGH, got '5..3'."),
        ("--over seed=1,1", "Expected different values for seed, got 1,1."),
        ("--over model.kernels=4,x", "model.kernels must be an integer"),
        ("--over optimizer.lr=-1,2", "optimizer.lr must be a number between 0 and 1e+30, got -1."),
        ("--over optimizer.lr", "--over requires FIELD=VALUES, such as optimizer.lr=0.02:0.2:log or seed=0..31"),
        ("", "--over must be 1 to 20 fields with their values"),
        ("--over optimizer.lr=0.1:0.2", "--method random requires the number of trials: give --trials."),
        (
            "--over optimizer.lr=0.1:0.2 --method grid",
            "Expected a list of values of optimizer.lr for --method grid, got the range 0.1:0.2",
        ),
        ("--over seed=0..3 --method optuna --trials 3", "--method optuna requires an axis besides seed"),
        (
            "--over seed=0..3 --metric return",
            "Expected a metric of automata, one of tts, hard_loss, gates, got return.",
        ),
        ("--over seed=0..3 --devices cuda", "Unknown engine 'cuda'"),
        (
            "--over seed=0..3 --workers rays",
            "--workers must be a number of processes, ray or ray:HOST:PORT, got 'rays'.",
        ),
        (
            "--over seed=0..3 --resume {tmp}",
            "--resume continues a sweep as it was configured: omit PRESET, --epochs, --over",
        ),
    ],
)
def test_what_is_refused(words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweep"
    given = [word.format(tmp=tmp_path) for word in words.split()]
    assert cli.main([*TINY.split(), *given, "-o", str(folder)][: None if "--resume" not in given else -2]) == 2
    assert sentence in capsys.readouterr().err
    assert not folder.exists()


def test_folders_that_are_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done, _ = swept(tmp_path / "sweep", described({"seed": "0..1"}))
    for words, code, sentence in (
        ("checkerboard-small --over seed=0..1 -o {}", 1, "is not empty: continue its run with --resume"),
        ("--resume {} --trials 1", 2, "--trials must be at least 2, the sweep's current number, got 1."),
        ("--resume {}/best", 2, "best does not contain a sweep: expected a folder with sweep.toml."),
        ("checkerboard-small --over seed=0..1 --devices gpu:77 -o {}/new", 1, "No GPU adapter matches '77'"),
    ):
        assert cli.main(["sweep", *words.format(done.path).split()]) == code
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"sampler_seed": "a"}, "sampler_seed must be an integer between 0 and 4294967295, got 'a'."),
        ({"population": "x"}, "population must be an integer between 1 and 2147483648, got 'x'."),
        ({"within": 5}, "within must be text, got 5."),
        ({"config": None, "preset": ["lizard"]}, "preset must be text, got ['lizard']."),
        ({"config": tiny_config().with_(pool={"size": 6, "starts": "0" * 64})}, "(pool.starts), whose file a sweep"),
    ],
)
def test_entries_that_cannot_be(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        described({"seed": "0..1"}, **how)
    assert sentence in str(raised.value)


def test_a_task_of_ones_own_is_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "plain", {"fill": PLAIN}, fill="fill:Fill")
    spec = described({"seed": "0..1"}, config=None, preset="plain:fill", set={"train.epochs": 1})
    done, _ = swept(tmp_path / "sweep", spec)
    assert [each.status for each in done.trials] == ["complete"] * 2


def test_workers_are_as_many_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS and Windows
    assert of_sweeps._places(["cpu"], 3) == ["cpu"] * 3
    with pytest.raises(UsageError, match="workers must be at least 1, got -1"):
        of_sweeps._places(["cpu"], -1)


def test_what_cannot_be_kept_ends_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, keep = OSError("No space left on device"), course._Ledger.keep
    monkeypatch.setattr(course._Ledger, "keep", Mock(side_effect=full))
    spec = described({"seed": "0..1"})
    with pytest.raises(OSError, match="No space left"):
        swept(tmp_path / "sweep", spec)
    monkeypatch.setattr(course._Ledger, "keep", keep)
    assert len(swept(tmp_path / "sweep", None)[0].trials) == 2
    ledger = tmp_path / "sweep" / course.LEDGER
    assert len(ledger.read_text().splitlines()) == 2
    ledger.write_text('{"trial": 0, "until": null, "outcome": {"other": 1}, "values": {}}\n')
    with pytest.raises(RunFolderError, match="written by another version"):
        swept(tmp_path / "sweep", None)


def test_without_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    words = [*TINY.split(), "--over", "optimizer.lr=0.1:0.2", "--trials", "2", "-o", str(tmp_path / "sweep")]
    assert cli.main(words) == 1
    assert "requires optuna, part of the extra `sweep`: install it with pip" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


PHONE = 390


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The page of four trials: two with a value, one without, one that failed."""
    over = {"optimizer.lr": "0.01:1:log", "optimizer.clip_by": ["element", "norm"]}
    spec = described(over, method="random", trials=9)
    trials = [
        Trial(number, {"optimizer.lr": lr, "optimizer.clip_by": by}, status, value, Outcome("complete", error=error))
        for number, (lr, by, status, value, error) in enumerate(
            [
                (0.02, "element", "complete", 40.0, ""),
                (0.5, "norm", "complete", 7.0, ""),
                (0.1, "norm", "complete", None, ""),
                (0.2, "norm", "failed", None, "<b>no</b> room"),
            ]
        )
    ]
    file = tmp_path / "index.html"
    file.write_text(page.html(Sweep(tmp_path, spec, trials)))
    return file


def test_what_it_holds(written: Path) -> None:
    text = written.read_text()
    assert not re.search(r"https?:|//[a-z]", re.sub(r"<script>.*</script>", "", text, flags=re.DOTALL))
    rows = re.findall(r'<tr[^>]*data-trial="(\d+)"', text)
    assert rows == ["1", "0", "2", "3"]
    assert len(re.findall("<polyline", text)) == 3
    assert "&lt;b&gt;no&lt;/b&gt; room" in text


def test_it_can_be_read_sorted_and_pointed_at(written: Path) -> None:
    needs("chromium")
    if os.environ.get("CI") is None:
        pytest.importorskip("axe_core_python")
    with chromium() as browser:
        for dark in (False, True):
            shown = browser.page(dark=dark)
            shown.goto(written.as_uri())
            assert barriers(shown) == []
        order = "[...document.querySelectorAll('tbody tr')].map((row) => row.dataset.trial).join()"
        shown.click("thead th:nth-child(2) button")
        assert shown.js(order) == "0,2,3,1"
        shown.click("thead th:nth-child(2) button")
        assert shown.js(order) == "1,3,2,0"
        shown.js("document.querySelector('tbody a').focus()")
        assert shown.js("document.querySelector('polyline.shown').id") == "line-1"
        phone = browser.page(width=PHONE, height=800)
        phone.goto(written.as_uri())
        assert phone.js("document.documentElement.scrollWidth") <= PHONE
