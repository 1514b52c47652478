"""Events: nothing lost, nothing doubled, whoever listens and however often the connection breaks."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from difflogic.engine import EpochMetrics, Evaluation
from difflogic.serve import pulse, rows, streams
from difflogic.serve.client import Client, Event, parsed
from difflogic.serve.jobs import Draft, Job
from difflogic.serve.pulse import Pulse
from difflogic.serve.streams import Place
from difflogic.serve.telemetry import Telemetry
from difflogic.train.journal import Journal, Row
from tests.serve.live import ANN, BEN, Live, serving
from tests.train.tiny import tiny_config


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(tmp_path / "store") as running:
        yield running


class Training:
    """A worker by hand: it writes rows as a run does, and beats."""

    def __init__(self, store, owner: str = "ann", population: int = 1) -> None:
        self.store = store
        draft = Draft("train", "by hand", tiny_config(epochs=1000).to_dict(), population=population)
        self.job: Job = store.submit(owner, draft)[0]
        claimed = store.claim("w", "cpu", {"auto"}, 1000)
        assert claimed is not None
        assert claimed[0].id == self.job.id
        self.lease = claimed[1]
        self.run = store.place(self.job.id).run
        self.run.mkdir(parents=True)
        self.seeds = list(range(23, 23 + population))
        self.journal = Journal(self.run, self.seeds, [[] for _ in self.seeds])
        self.epoch = 0

    def train(self, epochs: int) -> None:
        self.journal.append([[row(self.epoch + 1 + number) for number in range(epochs)] for _ in self.seeds])
        self.epoch += epochs
        self.store.beat(self.job.id, self.lease, 1000, epoch=self.epoch, phase="training")

    def crash(self, epoch: int) -> None:
        """Back to a checkpoint: what came after it is cut, and written once more."""
        self.journal.close()
        self.journal = Journal(self.run, self.seeds, [[row(number + 1) for number in range(epoch)] for _ in self.seeds])
        self.epoch = epoch

    def frame(self, epoch: int) -> None:
        path = self.store.place(self.job.id).frame
        path.with_suffix(".new").write_text(json.dumps({"epoch": epoch}))
        path.with_suffix(".new").replace(path)

    def end(self) -> None:
        self.journal.close()
        self.store.finish(self.job.id, self.lease, "done")


def row(epoch: int) -> Row:
    made = Row.of(EpochMetrics(epoch, 100 / epoch), 0.001 * epoch)
    return made.evaluated(Evaluation(3, 2, 120, 1), 3, 5) if epoch % 5 == 0 else made


@pytest.fixture
def training(live: Live) -> Iterator[Training]:
    made = Training(live.store)
    yield made
    made.journal.close()


def listen(live: Live, path: str, last: str = "", events: int = 0, until: str = "end") -> list[tuple[str, object, str]]:
    """Events until one of this name, or so many."""
    found = []
    with live.client() as client, client.stream("GET", path, headers={"Last-Event-ID": last} if last else {}) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in parsed(answer.iter_lines()):
            found.append(event)
            if event[0] == until or len(found) == events:
                return found
    raise AssertionError(found)


def until(holds: Callable[[], bool]) -> None:
    """Wait for it, half a minute at most."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def streams_of(live: Live) -> int:
    """How many listen."""
    found = re.search(r"^difflogic_event_streams (.*)$", httpx.get(live.address + "/metrics").text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def epochs_of(events: list[tuple[str, object, str]]) -> list[int]:
    return [each["epoch"] for name, data, _ in events if name == "rows" for each in data]


def test_a_job_that_is_over_is_told_whole(live, training):
    training.train(1200)
    training.end()
    events = listen(live, f"/jobs/{training.job.id}/events")
    assert [name for name, _, _ in events] == ["job", "rows", "rows", "rows", "end"]
    assert epochs_of(events) == list(range(1, 1201))
    assert events[0][1]["status"] == "done"
    assert events[-1][1] == {"status": "done"}
    assert [data[4]["hard_loss"] for name, data, _ in events if name == "rows"] == [3, 3, 3]


def test_a_broken_connection_is_taken_up_where_it_was(live, training):
    training.train(7)
    path = f"/jobs/{training.job.id}/events"
    first = listen(live, path, events=2)
    place = first[-1][2]
    assert place == f"7.{live.store.job(training.job.id).version}"
    training.train(5)
    training.end()
    rest = listen(live, path, last=place)
    assert epochs_of(first) + epochs_of(rest) == list(range(1, 13))
    again = listen(live, path, last=rest[-1][2])
    assert [name for name, _, _ in again] == ["end"]
    assert epochs_of(listen(live, f"{path}?after=10")) == [11, 12]


@pytest.mark.parametrize("last", ["nonsense", "1", "1.2.3", "-1.5", "9" * 41])
def test_places_that_are_none(live, training, last):
    training.train(3)
    training.end()
    with live.client() as client:
        headers = {"Last-Event-ID": last}
        with client.stream("GET", f"/jobs/{training.job.id}/events", headers=headers) as answer:
            assert answer.status_code in (200, 422)
            if answer.status_code == 200:
                assert epochs_of(list(parsed(answer.iter_lines()))) == [1, 2, 3]


def test_many_listen_to_one_tail(live, training, monkeypatch):
    """Rows come to all, in their order, while the run goes on, crashes, and comes back; they are read once."""
    reads: list[int] = []
    real = rows.after
    monkeypatch.setattr(rows, "after", lambda *arguments: reads.append(1) or real(*arguments))
    path = f"/jobs/{training.job.id}/events"
    heard: list[list[tuple[str, object, str]]] = []
    threads = [threading.Thread(target=lambda: heard.append(listen(live, path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    tails = live.here.pulse._tails
    until(lambda: training.job.id in tails and tails[training.job.id].listeners == 8)
    for step in range(6):
        training.train(10)
        time.sleep(0.15)
        if step == 3:
            training.crash(25)
    training.end()
    for thread in threads:
        thread.join(20)
    assert [epochs_of(events) for events in heard] == [list(range(1, training.epoch + 1))] * 8
    assert len(reads) < 30  # not once for each listener and change
    until(lambda: not live.here.pulse._tails)


def test_a_population_is_told_in_whole_epochs(live):
    training = Training(live.store, population=3)
    training.train(4)
    with (training.run / "metrics.jsonl").open("a") as file:  # a worker that is writing just now
        file.write(row(5).json_line(23) + row(5).json_line(24) + row(5).json_line(25)[:20])
    events = listen(live, f"/jobs/{training.job.id}/events", events=2)
    assert [(each["epoch"], each["seed"]) for each in events[1][1]] == [
        (e, s) for e in (1, 2, 3, 4) for s in (23, 24, 25)
    ]
    training.journal.close()


def test_frames_come_while_somebody_listens_and_the_newest_counts(live, training):
    assert not live.store.beat(training.job.id, training.lease, 1000).watched
    stop = threading.Event()

    def draw() -> None:
        number = 0
        while not stop.wait(0.02):
            number += 1
            training.frame(number)

    drawing = threading.Thread(target=draw)
    drawing.start()
    try:
        events = listen(live, f"/jobs/{training.job.id}/events", events=4)
    finally:
        stop.set()
        drawing.join()
    frames = [data["epoch"] for name, data, _ in events if name == "frame"]
    assert len(frames) == 3
    assert frames == sorted(set(frames))
    assert frames[1] - frames[0] > 1  # those between were dropped
    assert live.store.beat(training.job.id, training.lease, 1000).watched
    with live.client() as client:
        assert client.get(f"/jobs/{training.job.id}/frame").json()["epoch"] >= frames[-1]


def test_a_listener_that_lags_gets_what_the_tail_forgot(tmp_path, monkeypatch):
    """Its rows come from the file; it misses none, and nobody waited for it."""
    monkeypatch.setattr(pulse, "KEPT", 2)
    with serving(tmp_path) as live:
        training = Training(live.store)
        beat = Pulse(live.store, Telemetry(live.store))

        async def lag() -> list[int]:
            found: list[int] = []
            place = Place()
            await beat.start()
            async with beat.tail(training.job) as tail:  # another listener keeps the tail
                stream = streams.of_job(beat, training.job, place)
                assert await anext(stream) == streams.BEGIN
                tail.pieces = type(tail.pieces)(maxlen=2)
                for _ in range(9):
                    training.train(10)
                    await beat._look()
                assert [piece.after for piece in tail.pieces] == [70, 80]
                while place.epoch < 90:
                    text = await anext(stream)
                    found += epochs_of(list(parsed(iter(text.splitlines()))))
                await stream.aclose()
            return found

        assert asyncio.run(lag()) == list(range(1, 91))
        training.journal.close()


def test_a_deleted_job_ends_its_streams(live):
    job = live.store.submit("ann", Draft("train", "x", tiny_config().to_dict()))[0]
    live.store.ask(job.id, "pause")
    with live.client() as client, client.stream("GET", f"/jobs/{job.id}/events") as answer:
        events = parsed(answer.iter_lines())
        assert next(events)[0] == "job"
        live.store.delete(job.id)
        assert next(events)[:2] == ("end", {"status": "deleted"})


def test_all_jobs_of_an_owner(live):
    with live.client() as client, client.stream("GET", "/events") as answer:
        lines = answer.iter_lines()
        while not next(lines).startswith("id:"):
            pass
        ours = live.store.submit("ann", Draft("train", "ours", tiny_config().to_dict()))[0]
        live.store.submit("ben", Draft("train", "theirs", tiny_config().to_dict()))
        live.store.edit(ours.id, priority=3)
        live.store.ask(ours.id, "cancel")
        events = parsed(lines)
        while True:
            name, data, place = next(events)
            assert (name, data["owner"]) == ("job", "ann")
            if data["status"] == "cancelled":
                break
    live.store.delete(ours.id)
    live.store.submit("ann", Draft("train", "next", tiny_config().to_dict()))
    later = listen(live, "/events", last=place, events=2)
    assert [(name, data["id"] == ours.id) for name, data, _ in later] == [("deleted", True), ("job", False)]
    assert int(later[0][2]) < int(later[1][2])


def test_what_was_before_the_server_is_told_too(live):
    """A listener that comes back after a restart: its place is older than anything in memory."""
    seen = live.store.version()
    first = live.store.submit("ann", Draft("train", "one", tiny_config().to_dict()))[0]
    live.store.submit("ben", Draft("train", "two", tiny_config().to_dict()))
    live.store.ask(first.id, "cancel")
    live.here.pulse.known_from = live.store.version()
    live.here.pulse.changes.clear()
    events = listen(live, "/events", last=str(seen), events=1)
    assert (events[0][1]["id"], events[0][1]["status"]) == (first.id, "cancelled")


def test_the_client_goes_on_when_the_server_is_back(tmp_path):
    folder = tmp_path / "store"
    with serving(folder) as live:
        training = Training(live.store)
        port = int(live.address.rpartition(":")[2])
        training.train(10)
        heard: list[Event] = []
        lost: list[str] = []

        def follow() -> None:
            with Client(live.address, ANN) as client:
                heard.extend(client.events(training.job.id, 0, lost.append))

        follower = threading.Thread(target=follow)
        follower.start()
        until(lambda: training.job.id in live.here.pulse._tails)
    training.train(10)
    time.sleep(0.5)
    with serving(folder, port=port):
        training.train(10)
        training.end()
        follower.join(30)
        assert not follower.is_alive()
    assert [each["epoch"] for event in heard if event.name == "rows" for each in event.data] == list(range(1, 31))
    assert heard[-1] == Event("end", {"status": "done"})
    assert len(lost) == 1


def test_a_client_without_a_right_gives_up(live, training):
    from difflogic.errors import ServiceError

    with Client(live.address, BEN) as client, pytest.raises(ServiceError, match="There is no job"):
        next(client.events(training.job.id))


def test_streams_end_with_the_server(tmp_path):
    with serving(tmp_path) as live:
        job = live.store.submit("ann", Draft("train", "x", tiny_config().to_dict()))[0]
        answers = []

        def hear(path: str) -> None:
            with live.client() as client, client.stream("GET", path) as answer:
                answers.append(list(parsed(answer.iter_lines())))

        threads = [threading.Thread(target=hear, args=(path,)) for path in ("/events", f"/jobs/{job.id}/events")]
        for thread in threads:
            thread.start()
        until(lambda: streams_of(live) == 2)
    for thread in threads:
        thread.join(30)
    assert len(answers) == 2
    assert all("end" not in [name for name, _, _ in events] for events in answers)  # the job goes on


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 57, 1000])
def test_rows_by_epoch(tmp_path, members, count):
    seeds = list(range(members))
    Journal(tmp_path, seeds, [[row(epoch) for epoch in range(1, count + 1)] for _ in seeds]).close()
    assert rows.last(tmp_path) == count
    for after in {0, 1, count // 2, count - 1, count, count + 5} - {-1}:
        for limit in (1, 7, 5000):
            found = rows.after(tmp_path, after, limit, members)
            epochs = [each["epoch"] for each in json.loads(found.text)]
            assert epochs == [e for e in range(after + 1, min(count, after + limit) + 1) for _ in seeds]
            assert (found.epochs, found.until) == (len(epochs) // members, max(epochs, default=after))


def epochs_after(run: Path, epoch: int) -> list[int]:
    return [each["epoch"] for each in json.loads(rows.after(run, epoch, 50).text)]


def test_rows_of_a_file_that_ends_in_the_middle(tmp_path):
    Journal(tmp_path, [0], [[row(epoch) for epoch in range(1, 11)]]).close()
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    for cut in range(len(whole) - len(row(10).json_line()), len(whole)):
        path.write_bytes(whole[:cut])
        assert rows.last(tmp_path) == 9
        assert epochs_after(tmp_path, 8) == [9]
    assert epochs_after(tmp_path / "absent", 0) == []
    assert rows.last(tmp_path / "absent") == 0


def test_rows_up_to_a_damaged_line(tmp_path):
    Journal(tmp_path, [0], [[row(epoch) for epoch in range(1, 11)]]).close()
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"\0" * 50 + b"\n", *lines[7:]]))
    assert epochs_after(tmp_path, 3) == [4, 5, 6]
    path.write_bytes(b"".join([*lines[:6], b"\0" * 50 + b"\n"]))
    assert rows.last(tmp_path) == 6


def test_the_pulse_goes_on_after_a_failure(live, training, monkeypatch, caplog):
    def fail(_: int) -> None:
        monkeypatch.undo()
        raise ZeroDivisionError

    monkeypatch.setattr(live.store, "changes", lambda *_, **__: fail(0))
    training.train(2)
    training.end()
    assert epochs_of(listen(live, f"/jobs/{training.job.id}/events")) == [1, 2]
    until(lambda: "ZeroDivisionError" in caplog.text)


def test_who_leaves_in_the_middle_is_forgotten(live):
    job = live.store.submit("ann", Draft("train", "x", tiny_config().to_dict()))[0]
    with live.client() as client, client.stream("GET", f"/jobs/{job.id}/events") as answer:
        next(answer.iter_lines())
    until(lambda: not live.here.pulse._tails)
    until(lambda: streams_of(live) == 0)
    assert live.here.pulse.listeners == 0


def test_a_crowd_is_told_less_often(live):
    beat = live.here.pulse
    waits = []
    for beat.listeners in (0, 1, pulse.FEW, 2 * pulse.FEW, 5 * pulse.FEW, 10**6):
        waits.append(beat.look_s)
    few = pulse.LOOK_S
    assert waits == pytest.approx([few, few, few, 2 * few, 5 * few, pulse.SLOWEST_LOOK_S])
    beat.listeners = 0
