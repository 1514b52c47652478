"""`difflogic gallery`: pages that lead somewhere, of all runs that can be shown."""

import json
import re
import shutil
from pathlib import Path

import pytest

from difflogic.actions.evaluate import evaluate
from difflogic.cli.main import main
from difflogic.devices.open import open_engine
from difflogic.model.netlist_json import load
from difflogic.train.trainer import Trainer
from tests.cli.conftest import Said
from tests.train.tiny import tiny_config

LINK = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was evaluated, and a population of two, one level deeper, with a name that is used already."""
    folder = tmp_path_factory.mktemp("trained") / "runs"
    engine = open_engine("reference")
    Trainer(tiny_config().with_(train={"epochs": 3}), engine).run(out=folder / "a b")
    Trainer(tiny_config().with_(task={"start": "seed"}), engine).run(out=folder / "group/a_b", population=2)
    evaluate(folder / "a b", engine, quick=True).keep()
    return folder


@pytest.fixture(scope="module")
def pages(trained: Path) -> Path:
    out = trained.parent / "pages"
    assert main(["gallery", str(trained), "--out", str(out)]) == 0
    return out


def test_every_link_leads_to_a_file_of_the_gallery(pages: Path) -> None:
    reached, waiting = set(), [pages / "index.html"]
    while waiting:
        page = waiting.pop()
        assert page.is_file(), page
        reached.add(page)
        if page.suffix != ".html":
            continue
        links = [link for link in LINK.findall(page.read_text()) if not link.startswith("data:")]
        assert not [link for link in links if ":" in link or link.startswith("/")]
        waiting += [path for link in links if (path := (page.parent / link).resolve()) not in reached]
    assert reached == {path for path in pages.rglob("*") if path.is_file()}, "nothing is there that no page shows"


def test_gallery_shows_the_facts_of_its_runs(pages: Path, trained: Path) -> None:
    index = (pages / "index.html").read_text()
    assert [name for name in LINK.findall(index) if name.endswith(".html")] == ["a_b/index.html", "a_b_2/index.html"]
    assert re.findall("<h2>(.+)</h2>", index) == ["a b", "a_b"]
    assert len(re.findall(r"<p class=\"soft\">\d+ gates, trained in [\d.]+ s</p>", index)) == 2
    page = (pages / "a_b/index.html").read_text()
    kept = json.loads((trained / "a b/evaluation.json").read_text())
    for measure in kept["measures"]:
        assert f"<td>{measure['title']}</td>" in page
    assert "Not evaluated yet" not in page
    assert "Proved equal: " in page
    assert "Not evaluated yet" in (pages / "a_b_2/index.html").read_text()
    circuit = load(pages / "a_b_2/files/a_b_2_as_trained.json")
    assert circuit.scenario is not None
    assert circuit.scenario.start == "seed"
    assert '"start": "seed"' in (pages / "a_b_2/live.html").read_text()


def test_outdated_evaluation_is_not_shown(trained: Path, tmp_path: Path, said: Said) -> None:
    shutil.copytree(trained / "a b", tmp_path / "run")
    kept = tmp_path / "run/evaluation.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"epoch": 2}))
    said("gallery", tmp_path / "run", "--out", tmp_path / "out")
    assert "Not evaluated yet" in (tmp_path / "out/run/index.html").read_text()
    kept.write_text('{"format": ')
    errors = said("gallery", tmp_path / "run", "--out", tmp_path / "again", code=1).err
    assert "evaluation.json is not an evaluation: remove it, or run" in errors


def test_broken_run_is_named_and_left_out(trained: Path, tmp_path: Path, said: Said) -> None:
    shutil.copytree(trained, tmp_path / "runs")
    (tmp_path / "runs/a b/checkpoint.safetensors").write_bytes(b"nothing")
    out = str(tmp_path / "out")
    printed = said("gallery", tmp_path / "runs", "--out", out, code=1)
    (error,) = [line for line in printed.err.splitlines() if ": left out. " in line]
    assert re.match(r".*/runs/a b: left out\. .* is not a difflogic checkpoint", error)
    assert "1 of 2 runs" in printed.out
    assert main(["gallery", str(tmp_path / "runs/a b"), "--out", out, "--force"]) == 1


def test_linked_file_is_not_published(trained: Path, tmp_path: Path, said: Said) -> None:
    run = shutil.copytree(trained / "a b", tmp_path / "run")
    (tmp_path / "secret").write_text("a password")
    (run / "metrics.csv").unlink()
    (run / "metrics.csv").symlink_to("../secret")
    for command in (["gallery", run], ["export", run, "--format", "c"], ["render", run]):
        errors = said(*command, "--out", tmp_path / "out.gif", code=1).err
        assert "metrics.csv leads out of" in errors
    assert not (tmp_path / "out.gif").exists()


def test_wrong_usage_is_refused(pages: Path, tmp_path: Path, said: Said) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for arguments, sentence in (
        ([tmp_path / "empty", "--out", tmp_path / "out"], "No runs in "),
        ([tmp_path / "empty", "--out", tmp_path / "file"], "Expected a folder, but "),
        ([tmp_path / "empty", "--out", pages], "is not empty: use --force to replace its pages"),
        ([], "Missing argument 'RUN...'"),
        ([tmp_path / "absent", "--out", tmp_path / "out"], "absent does not exist: expected a folder that contains"),
    ):
        assert sentence in said("gallery", *arguments, code=2).err
    assert not (tmp_path / "out").exists()
