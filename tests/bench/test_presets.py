"""The kept tables of the presets: runs are looked for before any is trained, and what became of them is told."""

from functools import partial
from pathlib import Path

import pytest

from benchmarks import presets as kept
from benchmarks import store
from difflogic.circuits.synthesis import resubstitution
from difflogic.config import presets
from difflogic.devices.open import open_engine
from difflogic.evaluation import suite
from difflogic.evaluation.evaluate import NAME as EVALUATION
from difflogic.evaluation.evaluate import evaluate
from difflogic.train.session import Rules
from difflogic.train.trainer import Trainer
from tests.train.tiny import tiny_config

CONFIG = tiny_config(epochs=6)


@pytest.fixture(autouse=True)
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only preset; results go elsewhere."""
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(presets.PRESETS, "tiny", presets.Preset(lambda: CONFIG, "a stand-in"))
    monkeypatch.setattr(kept, "PAPER", ("tiny",))
    monkeypatch.setitem(kept.FIRST_LOSSES, "tiny", (12.5, 13))


def finished(*folders: Path) -> tuple[Path, str]:
    said: list[str] = []
    return kept.finished(CONFIG, folders, "reference", said.append), said[0]


def test_what_is_there_is_not_trained_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    path, said = finished(first, second)
    assert (path, said) == (first / "tiny", f"tiny: trained into {first / 'tiny'}")
    stamp = (path / "checkpoint.safetensors").stat().st_mtime_ns
    path.rename(tmp_path / "renamed")
    assert finished(second, tmp_path) == (tmp_path / "renamed", f"tiny: {tmp_path / 'renamed'} is that run")
    assert (tmp_path / "renamed/checkpoint.safetensors").stat().st_mtime_ns == stamp


def test_a_run_that_was_left_is_gone_on_with(tmp_path: Path) -> None:
    other = CONFIG.with_(name="other name")
    Trainer(other, open_engine("reference")).run(out=tmp_path / "left", rules=Rules(give_up=lambda members: "enough"))
    path, said = finished(tmp_path)
    assert (path, said) == (tmp_path / "left", f"tiny: {tmp_path / 'left'} goes on after epoch 1")
    assert kept.read_checkpoint(path).epoch == 6


@pytest.mark.parametrize("change", [{"seed": 24}, {"optimizer": {"lr": 0.3}}, {"task": {"steps": 2}}], ids=str)
def test_a_run_that_was_configured_otherwise_is_another(change: dict[str, object], tmp_path: Path) -> None:
    Trainer(CONFIG.with_(**change), open_engine("reference")).run(out=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/checkpoint.safetensors").write_bytes(b"broken")
    assert kept.fitting(CONFIG, [tmp_path, tmp_path / "absent"]) is None


def test_a_line_and_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "evaluate", partial(evaluate, starts=2, quick=True))
    monkeypatch.setattr(suite, "ROBUST_STEPS", 40)
    monkeypatch.setattr(resubstitution, "WORK", 0)
    path, _ = finished(tmp_path)
    told: list[str] = []
    line = kept.measured("tiny", path, "reference", lambda step: told.append(step.name))
    assert (path / EVALUATION).is_file()
    assert "gates replaced by constants or wires" in told
    gates = line["gates"]
    assert gates["structural"] >= gates["simplified"] >= gates["task"]
    assert gates["from_start"] is None, "its start is drawn at random"
    assert line["epochs"] == 6
    store.append(kept.NAME, [line | {"epochs": 5}, line])
    assert kept.newest() == [line]
    trained = kept.training_table(kept.newest()).splitlines()[2].split(" | ")
    assert trained[0] == "| [tiny](presets/tiny.md)"
    assert trained[1].endswith("(12.500, 13)")
    assert trained[3] == str(line["last_hard_loss"])
    counted = kept.gates_table(kept.newest()).splitlines()[2].split(" | ")
    structural, simplified, once = (str(gates[key]) for key in ("structural", "simplified", "once"))
    assert counted[2:] == [structural, simplified, once, "-", "-", f"{gates['task']} |"]
    figures = kept.figures_table(line).splitlines()
    assert figures[2].endswith("| 12.500, 13 |")
    assert figures[-1] == f"| `--task` | {gates['task']} |  |"


def test_pages_get_the_tables_between_their_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(*marks: str) -> str:
        return "".join(f"before\n{kept.begin_of(mark)}old\n{store.END}\nafter\n" for mark in marks)

    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(kept, "newest", list)
    (tmp_path / "presets.md").write_text(page("training", "gates"))
    (found,) = kept.pages().values()
    assert "old" not in found
    assert found.count("before\n") == found.count("after\n") == 2
    (tmp_path / "presets.md").write_text(found)
    assert kept.pages() == {tmp_path / "presets.md": found}
    (tmp_path / "presets.md").write_text("nothing")
    with pytest.raises(AssertionError, match="no place for <!-- training"):
        kept.pages()
