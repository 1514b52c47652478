"""The checksums leave out times and nothing else, and the comparison notices what differs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from benchmarks import truth


def parts(folder: Path, name: str, content: str) -> dict[str, str]:
    (folder / name).write_text(content)
    return dict(truth.parts_of(folder / name, name))


@pytest.mark.parametrize(
    ("name", "one", "same", "other"),
    [
        ("metrics.csv", "epoch,loss,elapsed_s\n1,2.5,3\n", "epoch,loss,elapsed_s\n1,2.5,4\n", "epoch,loss\n1,2.6\n"),
        ("metrics.jsonl", '{"loss": 1, "at_s": 1}\n{}\n', '{"loss": 1, "at_s": 2}\n{}\n', '{"loss": 2}\n{}\n'),
        ("a.json", '{"gates": [{"seconds": 1, "n": 2}]}', '{"gates": [{"n": 2}]}', '{"gates": [{"n": 3}]}'),
        ("a.jsonl", '{"event": "progress", "step": 1}\n{"a": 1}', '{"a": 1}', '{"a": 2}'),
        ("summary.txt", "Solved\nTime: 1 s\n", "Solved\nTime: 2 s\n", "Not solved\n"),
        ("a.v", "// difflogic 0.1.0\n", "// difflogic 0.2.0.dev1\n", "// difflogic 0.1.0, more\n"),
    ],
)
def test_times_are_left_out(name: str, one: str, same: str, other: str, tmp_path: Path) -> None:
    assert parts(tmp_path, name, one) == parts(tmp_path, name, same) != parts(tmp_path, name, other)


def test_every_bit_of_a_checkpoint_counts(tmp_path: Path) -> None:
    arrays = {"logits": np.zeros(3, np.float32), "mu": np.ones(2, np.float32), "elapsed_s": np.ones(1)}
    save_file(arrays, tmp_path / "a.safetensors")
    arrays["logits"][1] = np.nextafter(np.float32(0), np.float32(1))
    save_file(arrays | {"elapsed_s": np.zeros(1)}, tmp_path / "b.safetensors")
    one, other = (dict(truth.parts_of(tmp_path / f"{name}.safetensors", "")) for name in "ab")
    assert one.keys() == {":logits", ":mu"}
    assert [name for name in one if one[name] != other[name]] == [":logits"]


def told(found: dict[str, str], **on: str) -> dict[str, Any]:
    return {"format": truth.FORMAT, "on": {"exact": "", "cpu": "here"} | on, "found": found}


@pytest.mark.parametrize(
    ("now", "code", "words"),
    [
        (told({"exact/a": "1", "cpu/b": "2"}), 0, "2 values compared (exact, cpu): none differ."),
        (told({"exact/a": "1", "cpu/b": "3"}), 1, "cpu/b: before 2, now 3"),
        (told({"exact/a": "1"}), 1, "cpu/b: before 2, now absent"),
        (
            told({"exact/a": "1", "cpu/b": "3"}, cpu="elsewhere"),
            0,
            "cpu: not compared: before on here, now on elsewhere.",
        ),
    ],
)
def test_comparison(now: dict[str, Any], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert truth.compared(told({"exact/a": "1", "cpu/b": "2"}), now) == code
    assert words in capsys.readouterr().out


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"format": "difflogic-bench"}))
    with pytest.raises(SystemExit, match=r"a\.json is no file of benchmarks\.truth\."):
        truth.read(tmp_path / "a.json")
