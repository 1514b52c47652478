"""Files that grow, thinned: what is told is what is in them, however they were read before."""

import itertools
import json
from pathlib import Path

import pytest

from difflogic.runs import jsonl
from difflogic.runs.journal import JSONL, Journal
from difflogic.runs.jsonl import NOTHING, Sample
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


def test_what_grows_is_as_if_it_had_been_read_at_once(tmp_path):
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
    real = jsonl.is_whole
    monkeypatch.setattr(jsonl, "is_whole", lambda line: checked.append(line) or real(line))
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


def test_thinned_as_a_json_list(tmp_path):
    assert jsonl.thinned(tmp_path / JSONL, 10) == NOTHING
    journal(tmp_path, 2)
    assert len(json.loads(jsonl.thinned(tmp_path / JSONL, 10))) == 2


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 57, 1000])
def test_rows_by_epoch(tmp_path, members, count):
    seeds = list(range(members))
    Journal(tmp_path, seeds, [[row(epoch) for epoch in range(1, count + 1)] for _ in seeds]).close()
    assert jsonl.last_epoch(tmp_path / JSONL) == count
    for after in {0, 1, count // 2, count - 1, count, count + 5} - {-1}:
        for limit in (1, 7, 5000):
            found = jsonl.after(tmp_path / JSONL, after, limit, members)
            epochs = [each["epoch"] for each in json.loads(found.text)]
            assert epochs == [e for e in range(after + 1, min(count, after + limit) + 1) for _ in seeds]
            assert (found.epochs, found.until) == (len(epochs) // members, max(epochs, default=after))


def epochs_after(path: Path, epoch: int) -> list[int]:
    return [each["epoch"] for each in json.loads(jsonl.after(path, epoch, 50).text)]


def test_rows_of_a_file_that_ends_in_the_middle(tmp_path):
    Journal(tmp_path, [0], [[row(epoch) for epoch in range(1, 11)]]).close()
    path = tmp_path / JSONL
    whole = path.read_bytes()
    for cut in range(len(whole) - len(row(10).json_line()), len(whole)):
        path.write_bytes(whole[:cut])
        assert jsonl.last_epoch(tmp_path / JSONL) == 9
        assert epochs_after(path, 8) == [9]
    assert epochs_after(tmp_path / "absent", 0) == []
    assert jsonl.last_epoch(tmp_path / "absent") == 0


def test_rows_up_to_a_damaged_line(tmp_path):
    Journal(tmp_path, [0], [[row(epoch) for epoch in range(1, 11)]]).close()
    path = tmp_path / JSONL
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"\0" * 50 + b"\n", *lines[7:]]))
    assert epochs_after(path, 3) == [4, 5, 6]
    path.write_bytes(b"".join([*lines[:6], b"\0" * 50 + b"\n"]))
    assert jsonl.last_epoch(tmp_path / JSONL) == 6


def test_what_follows_an_epoch_is_cut(tmp_path):
    journal(tmp_path, 10)
    lines = (tmp_path / JSONL).read_bytes().splitlines(keepends=True)
    assert jsonl.until(tmp_path / JSONL, 0) == b""
    assert jsonl.until(tmp_path / JSONL, 7) == b"".join(lines[:7])
    assert jsonl.until(tmp_path / JSONL, 99) == b"".join(lines)
    assert jsonl.until(tmp_path / "absent", 7) == b""


def test_the_spelling_of_json_does_not_matter(tmp_path):
    journal(tmp_path, 60)
    path = tmp_path / JSONL
    found = [Sample(path, 40, 1).lines(), list(jsonl.objects(path))]
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in jsonl.objects(path)))
    assert jsonl.last_epoch(path) == 60
    assert epochs_after(path, 58) == [59, 60]
    assert epochs_of(Sample(path, 40, 1).lines()) == epochs_of(found[0])
    assert list(jsonl.objects(path)) == found[1]
