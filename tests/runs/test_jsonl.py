"""Files that grow, thinned: what is told is what is in them, however they were read before."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from difflogic.serve import sampled
from difflogic.serve.sampled import NOTHING, Sample, Samples
from difflogic.train.journal import JSONL, Journal
from tests.serve.test_events import row


def epochs_of(lines: list[bytes]) -> list[int]:
    return [each["epoch"] for line in lines for each in json.loads(b"[" + line + b"]")]


def journal(path: Path, count: int, members: int = 1, first: int = 1) -> None:
    Journal(path, range(members), [[row(epoch) for epoch in range(first, count + 1)] for _ in range(members)]).close()


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 57, 1000])
def test_few_lines_evenly_chosen(tmp_path, members, count):
    journal(tmp_path, count, members)
    lines = Sample(tmp_path / JSONL, 50, members).lines()
    epochs = epochs_of(lines)[::members]
    assert epochs == sorted(set(epochs))
    assert epochs_of(lines) == [epoch for epoch in epochs for _ in range(members)]
    assert len(lines) <= 51
    if count < 50:
        assert epochs == list(range(1, count + 1))
    if count == 1000:
        rows = [json.loads(b"[" + line + b"]")[0] for line in lines]
        assert (epochs[0], epochs[-1]) == (1, count)
        assert sum(each["hard_loss"] is not None for each in rows) >= 12
        plain = [each["epoch"] for each in rows if each["hard_loss"] is None]
        assert max(later - sooner for sooner, later in itertools.pairwise(epochs)) <= 80
        assert len(plain) >= 8


def test_what_grows_is_as_if_it_had_been_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sampled, "BLOCK", 333)
    journal(tmp_path, 700)
    whole = (tmp_path / JSONL).read_bytes()
    growing = tmp_path / "growing.jsonl"
    growing.touch()
    sample = Sample(growing, 40, 1)
    for until in (0, 1, 150, 151, 5000, 60000, 60001, len(whole)):
        with growing.open("ab") as file:
            file.write(whole[growing.stat().st_size : until])
        ended = whole[:until].count(b"\n")
        found = epochs_of(sample.lines())
        assert (found[-1] if found else 0) == ended
        assert found == epochs_of(Sample(growing, 40, 1).lines())


def test_only_what_is_new_is_read(tmp_path, monkeypatch):
    journal(tmp_path, 100)
    sample = Sample(tmp_path / JSONL, 40, 1)
    sample.lines()
    checked: list[bytes] = []
    real = sampled.is_whole
    monkeypatch.setattr(sampled, "is_whole", lambda line: checked.append(line) or real(line))
    with (tmp_path / JSONL).open("a") as file:
        file.write(row(101).json_line() + row(102).json_line())
    assert epochs_of(sample.lines())[-1] == 102
    assert len(checked) == 2


def test_a_file_that_is_written_anew(tmp_path):
    """A try that follows a crash cuts the rows that came after its checkpoint."""
    journal(tmp_path, 100)
    sample = Sample(tmp_path / JSONL, 400, 1)
    assert epochs_of(sample.lines()) == list(range(1, 101))
    journal(tmp_path, 60)
    assert epochs_of(sample.lines()) == list(range(1, 61))
    (tmp_path / JSONL).unlink()
    assert sample.lines() == []


def test_a_damaged_line_is_the_end(tmp_path):
    journal(tmp_path, 10)
    path = tmp_path / JSONL
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    sample = Sample(path, 40, 1)
    for damage in (b"\0" * 50 + b"\n", lines[6][:20] + b"\0" * 50 + lines[6][-9:], b"nonsense\n", b'{"\xff"}\n'):
        path.write_bytes(b"".join([*lines[:6], damage, *lines[7:]]))
        assert epochs_of(sample.lines()) == [1, 2, 3, 4, 5, 6]
    path.write_bytes(whole)
    assert epochs_of(sample.lines()) == list(range(1, 11))


def test_samples_are_bounded(tmp_path):
    samples = Samples()
    for number in range(3 * sampled.FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        journal(folder, 2)
        assert len(json.loads(samples.of(folder / JSONL, 10))) == 2
    assert len(samples._known) == sampled.FILES
    assert samples.of(tmp_path / "absent", 10) == NOTHING
