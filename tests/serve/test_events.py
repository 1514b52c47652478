"""Events: none lost, none doubled, for any number of listeners and of broken connections."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Iterator

import httpx
import pytest

from difflogic.engine.api import EpochMetrics, Evaluation
from difflogic.errors import ServiceError
from difflogic.runs import jsonl
from difflogic.runs.journal import Journal, Row
from difflogic.serve.api import broadcast
from difflogic.serve.api.broadcast import ChangeFeed
from difflogic.serve.api.routes import events as streams
from difflogic.serve.api.routes.events import Position
from difflogic.serve.api.settings import ConnectionLimits
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.client import Client, ServerEvent, parsed
from difflogic.serve.store.jobs import JobRecord, JobSpec
from tests.serve.live import ANN, BEN, Live, error, serving
from tests.serve.service import PATIENCE_S, spec_of, wait
from tests.train.tiny import tiny_config


class Training:
    """A worker by hand: it writes rows as a run does, and sends heartbeats."""

    def __init__(self, store, owner: str = "ann", population: int = 1) -> None:
        self.store = store
        spec = JobSpec("train", "by hand", tiny_config(epochs=1000).to_dict(), request={"population": population})
        self.job: JobRecord = store.submit(owner, spec)[0]
        claimed = store.claim("w", "cpu", {"auto"}, 1000)
        assert claimed is not None
        assert claimed[0].id == self.job.id
        self.lease = claimed[1]
        self.run = store.job_folder(self.job.id).run
        self.run.mkdir(parents=True)
        self.seeds = list(range(23, 23 + population))
        self.journal = Journal(self.run, self.seeds, [[] for _ in self.seeds])
        self.epoch = 0

    def train(self, epochs: int) -> None:
        self.journal.append([[row(self.epoch + 1 + number) for number in range(epochs)] for _ in self.seeds])
        self.epoch += epochs
        self.store.heartbeat(self.job.id, self.lease, 1000, progress=self.epoch, phase="training")

    def crash(self, epoch: int) -> None:
        """Back to a checkpoint: what came after it is cut, and written once more."""
        self.journal.close()
        self.journal = Journal(self.run, self.seeds, [[row(number + 1) for number in range(epoch)] for _ in self.seeds])
        self.epoch = epoch

    def frame(self, epoch: int) -> None:
        path = self.store.job_folder(self.job.id).frame
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
    """Return the events up to one of the name `until`, or the first `events` of them."""
    found = []
    with live.client() as client, client.stream("GET", path, headers={"Last-Event-ID": last} if last else {}) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in parsed(answer.iter_lines()):
            found.append(event)
            if event[0] == until or len(found) == events:
                return found
    raise AssertionError(found)


def streams_of(live: Live) -> int:
    found = re.search(r"^difflogic_event_streams (.*)$", httpx.get(live.address + "/metrics").text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


def epochs_of(events: list[tuple[str, object, str]]) -> list[int]:
    return [each["epoch"] for name, data, _ in events if name == "rows" for each in data]


def test_job_that_is_over_is_streamed_completely(live, training):
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
    position = first[-1][2]
    assert position == f"7.{live.store.job(training.job.id).version}"
    training.train(5)
    training.end()
    rest = listen(live, path, last=position)
    assert epochs_of(first) + epochs_of(rest) == list(range(1, 13))
    again = listen(live, path, last=rest[-1][2])
    assert [name for name, _, _ in again] == ["end"]
    assert epochs_of(listen(live, f"{path}?after=10")) == [11, 12]


@pytest.mark.parametrize("last", ["nonsense", "-1.5", "9" * 41])
def test_malformed_position_is_refused(live, training, last):
    with live.client() as client:
        refused = client.get(f"/jobs/{training.job.id}/events", headers={"Last-Event-ID": last})
    error(refused, 422, "invalid_request")


@pytest.mark.parametrize("last", ["1", "1.2.3"])
def test_position_of_no_event_begins_with_the_first_row(live, training, last):
    training.train(3)
    training.end()
    assert epochs_of(listen(live, f"/jobs/{training.job.id}/events", last=last)) == [1, 2, 3]


def test_many_listen_to_one_feed(live, training, monkeypatch):
    """Rows come to all, in their order, while the run goes on, crashes, and comes back; they are read once."""
    reads: list[int] = []
    real = jsonl.after
    monkeypatch.setattr(jsonl, "after", lambda *arguments: reads.append(1) or real(*arguments))
    monkeypatch.setattr(broadcast, "POLL_S", 0.05)
    path = f"/jobs/{training.job.id}/events"
    heard: list[list[tuple[str, object, str]]] = []
    threads = [threading.Thread(target=lambda: heard.append(listen(live, path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    feeds = live.context.feed._job_feeds
    wait(lambda: training.job.id in feeds and feeds[training.job.id].listeners == 8)
    for step in range(6):
        training.train(10)
        wait(lambda: feeds[training.job.id].epoch >= training.epoch)
        if step == 3:
            training.crash(25)
    training.end()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [epochs_of(events) for events in heard] == [list(range(1, training.epoch + 1))] * 8
    assert len(reads) < 30  # not once for each listener and change
    wait(lambda: not live.context.feed._job_feeds)


def test_population_is_streamed_in_complete_epochs(live):
    training = Training(live.store, population=3)
    training.train(4)
    with (training.run / "metrics.jsonl").open("a") as file:  # a worker that is writing just now
        file.write(row(5).json_line(23) + row(5).json_line(24) + row(5).json_line(25)[:20])
    events = listen(live, f"/jobs/{training.job.id}/events", events=2)
    found = [(each["epoch"], each["seed"]) for each in events[1][1]]
    assert found == [(epoch, seed) for epoch in (1, 2, 3, 4) for seed in (23, 24, 25)]
    training.journal.close()


def test_listeners_get_the_newest_frame(live, training):
    assert not live.store.heartbeat(training.job.id, training.lease, 1000).watched
    training.frame(1)
    path = f"/jobs/{training.job.id}"
    with live.client() as client, client.stream("GET", f"{path}/events") as answer:
        events = parsed(answer.iter_lines())
        assert [next(events)[0] for _ in range(2)] == ["job", "frame"]
        assert live.store.heartbeat(training.job.id, training.lease, 1000).watched
        training.frame(2)
        assert next(events)[:2] == ("frame", {"epoch": 2})

    async def drawn_between_two_polls() -> str:
        feed = ChangeFeed(live.store, Telemetry(live.store))
        await feed.start()
        async with feed.follow(training.job) as job_feed:
            for epoch in (3, 4, 5):
                training.frame(epoch)
            await feed._poll()
            return job_feed.frame

    assert json.loads(asyncio.run(drawn_between_two_polls())) == {"epoch": 5}


def test_a_listener_that_lags_gets_all_rows(tmp_path):
    with serving(tmp_path) as live:
        training = Training(live.store)
        feed = ChangeFeed(live.store, Telemetry(live.store))

        async def lag() -> list[int]:
            found: list[int] = []
            position = Position()
            await feed.start()
            async with feed.follow(training.job):  # another listener keeps the feed
                stream = streams.events_of_job(feed, training.job, position)
                assert await anext(stream) == streams.BEGIN
                for _ in range(9):
                    training.train(10)
                    await feed._poll()
                while position.epoch < 90:
                    text = await anext(stream)
                    found += epochs_of(list(parsed(iter(text.splitlines()))))
                await stream.aclose()
            return found

        assert asyncio.run(lag()) == list(range(1, 91))
        training.journal.close()


def test_a_deleted_job_ends_its_streams(live):
    job = live.store.submit("ann", spec_of(tiny_config()))[0]
    live.store.ask(job.id, "pause")
    with live.client() as client, client.stream("GET", f"/jobs/{job.id}/events") as answer:
        events = parsed(answer.iter_lines())
        assert next(events)[0] == "job"
        live.store.delete(job.id)
        assert next(events)[:2] == ("end", {"status": "deleted"})


def told(store, job: JobRecord, position: Position) -> list[tuple[str, object, str]]:
    """Return the events for a listener to a job from `position` on; a stream that does not end is an error."""

    async def hear() -> list[str]:
        feed = ChangeFeed(store, Telemetry(store))
        await feed.start()
        async with asyncio.timeout(PATIENCE_S):
            return [text async for text in streams.events_of_job(feed, job, position)]

    return list(parsed(iter("".join(asyncio.run(hear())).splitlines())))


@pytest.mark.parametrize("ending", ["done", "deleted"])
def test_the_last_change_may_come_before_the_listener_is_known(live, training, ending):
    """A job that ends after the request read it, and before its feed is there."""
    training.train(3)
    running = live.store.job(training.job.id)
    training.train(4)
    training.frame(7)
    training.end()
    if ending == "deleted":
        live.store.delete(running.id)
    events = told(live.store, running, Position())
    assert events[-1][:2] == ("end", {"status": ending})
    if ending == "done":
        assert [name for name, _, _ in events] == ["job", "rows", "frame", "end"]
        assert events[0][1]["status"] == "done"
        assert epochs_of(events) == list(range(1, 8))


def test_an_old_change_does_not_undo_a_newer_one(live, training):
    """The feed read a change, and before it passes it on a listener comes that reads the next."""
    older = live.store.job(training.job.id)
    training.end()

    async def pass_on() -> str:
        feed = ChangeFeed(live.store, Telemetry(live.store))
        async with feed.follow(older) as job_feed:
            await feed._publish([older], [])
            return job_feed.job.status

    assert asyncio.run(pass_on()) == "done"


def test_every_attempt_is_streamed_from_its_first_row(live):
    """In the end the best one's, whichever that was."""
    store = live.store
    job, _ = store.submit("ann", JobSpec("train", "again", tiny_config(epochs=100).to_dict(), request={"restarts": 2}))
    claimed, lease = store.claim("w", "cpu", {"auto"}, 1000)

    def attempt(number: int, epochs: int) -> None:
        store.heartbeat(job.id, lease, 1000, attempt=number, progress=0, saved_progress=0, goal=100)
        place = store.job_folder(store.job(job.id))
        folder = place.run
        folder.mkdir(parents=True)
        place.frame.parent.mkdir()
        place.frame.write_text(json.dumps({"attempt": number}))
        Journal(folder, [number], [[row(epoch) for epoch in range(1, epochs + 1)]]).close()
        store.heartbeat(job.id, lease, 1000, progress=epochs, saved_progress=epochs)

    async def until(stream: AsyncGenerator[str], last: str) -> list[tuple[str, object, str]]:
        text = ""
        while f"event: {last}" not in text:
            text += await anext(stream)
        return list(parsed(iter(text.splitlines())))

    async def follow() -> list[list[tuple[str, object, str]]]:
        feed = ChangeFeed(store, Telemetry(store))
        await feed.start()
        attempt(1, 30)
        stream = streams.events_of_job(feed, claimed, Position())
        async with asyncio.timeout(PATIENCE_S):
            heard = [await until(stream, "frame")]
            attempt(2, 20)
            await feed._poll()
            heard.append(await until(stream, "frame"))
            store.finish(job.id, lease, "done", attempt=1, progress=30, saved_progress=30)
            await feed._poll()
            heard.append(await until(stream, "end"))
            position = Position.of(f"30.{store.job(job.id).version - 1}.2", 0)
            return [*heard, await until(streams.events_of_job(feed, claimed, position), "end")]

    first, second, best, again = asyncio.run(follow())
    assert [epochs_of(each) for each in (first, second, best)] == [list(range(1, n + 1)) for n in (30, 20, 30)]
    assert [each[0][1]["attempt"] for each in (first, second, best)] == [1, 2, 1]
    assert second[-1][2] == f"20.{second[0][1]['version']}.2"
    assert epochs_of(again) == list(range(1, 31)), "what was seen was of another attempt"
    assert [name for name, _, _ in best] == ["job", "rows", "frame", "end"]
    frames = [data for each in (first, second, best) for name, data, _ in each if name == "frame"]
    assert frames == [{"attempt": number} for number in (1, 2, 1)]


def test_end_follows_the_rows_of_the_best_attempt(live, monkeypatch):
    """A listener that looks while the feed reads the attempt that the job has become in the end."""
    store = live.store
    job, _ = store.submit("ann", JobSpec("train", "again", tiny_config(epochs=100).to_dict(), request={"restarts": 1}))
    _, lease = store.claim("w", "cpu", {"auto"}, 1000)
    for number in (1, 2):
        store.heartbeat(job.id, lease, 1000, attempt=number, progress=30, goal=100)
        folder = store.job_folder(store.job(job.id)).run
        folder.mkdir(parents=True)
        Journal(folder, [number], [[row(epoch) for epoch in range(1, 31)]]).close()

    async def hear() -> str:
        feed, looked, go_on = ChangeFeed(store, Telemetry(store)), asyncio.Event(), threading.Event()
        await feed.start()
        loop, real, heard = asyncio.get_running_loop(), store.job_folder, []

        def slow(of):
            if isinstance(of, JobRecord) and of.is_over and not looked.is_set():
                loop.call_soon_threadsafe(looked.set)
                assert go_on.wait(10)
            return real(of)

        async def listen() -> None:
            async for text in streams.events_of_job(feed, store.job(job.id), Position()):
                heard.append(text)

        async with asyncio.timeout(PATIENCE_S), feed.follow(store.job(job.id)) as job_feed:
            job_feed.frame = "{}"
            store.finish(job.id, lease, "done", attempt=1, progress=30)
            monkeypatch.setattr(store, "job_folder", slow)
            polling = asyncio.create_task(feed._poll())
            await looked.wait()
            listening = asyncio.create_task(listen())
            while "event: job" not in "".join(heard):
                await asyncio.sleep(0)
            go_on.set()
            await polling
            await listening
        return "".join(heard)

    events = list(parsed(iter(asyncio.run(hear()).splitlines())))
    assert events[-1][:2] == ("end", {"status": "done"})
    after = [number for number, (name, data, _) in enumerate(events) if name == "job" and data["attempt"] == 1]
    assert epochs_of(events[after[0] :]) == list(range(1, 31))


def test_events_of_all_jobs_begin_with_the_request(live):
    async def hear() -> str:
        feed = ChangeFeed(live.store, Telemetry(live.store))
        await feed.start()
        stream = streams.events_of_owner(feed, live.store, "ann", feed.version)
        live.store.submit("ann", spec_of(tiny_config()))
        await feed._poll()
        assert (await anext(stream)).startswith(streams.BEGIN)
        async with asyncio.timeout(PATIENCE_S):
            text = await anext(stream)
        await stream.aclose()
        return text

    assert asyncio.run(hear()).startswith("event: job")


def test_all_jobs_of_an_owner(live):
    with live.client() as client, client.stream("GET", "/events") as answer:
        lines = answer.iter_lines()
        while not next(lines).startswith("id:"):
            pass
        ours = live.store.submit("ann", JobSpec("train", "ours", tiny_config().to_dict()))[0]
        live.store.submit("ben", JobSpec("train", "theirs", tiny_config().to_dict()))
        live.store.edit(ours.id, priority=3)
        live.store.ask(ours.id, "cancel")
        events = parsed(lines)
        while True:
            name, data, position = next(events)
            assert (name, data["owner"]) == ("job", "ann")
            if data["status"] == "cancelled":
                break
    live.store.delete(ours.id)
    live.store.submit("ann", JobSpec("train", "next", tiny_config().to_dict()))
    later = listen(live, "/events", last=position, events=2)
    assert [(name, data["id"] == ours.id) for name, data, _ in later] == [("deleted", True), ("job", False)]
    assert int(later[0][2]) < int(later[1][2])


def test_what_was_before_the_server_is_told_too(live):
    """A listener that comes back after a restart: its position is older than anything in memory."""
    seen = live.store.version()
    first = live.store.submit("ann", JobSpec("train", "one", tiny_config().to_dict()))[0]
    live.store.submit("ben", JobSpec("train", "two", tiny_config().to_dict()))
    live.store.ask(first.id, "cancel")
    events = listen(live, "/events", last=str(seen), events=1)
    assert (events[0][1]["id"], events[0][1]["status"]) == (first.id, "cancelled")


def test_the_client_goes_on_when_the_server_is_back(tmp_path):
    folder = tmp_path / "store"
    with serving(folder) as live:
        training = Training(live.store)
        port = int(live.address.rpartition(":")[2])
        training.train(10)
        heard: list[ServerEvent] = []
        lost: list[str] = []

        def follow() -> None:
            with Client(live.address, ANN) as client:
                heard.extend(client.events(training.job.id, 0, lost.append))

        follower = threading.Thread(target=follow)
        follower.start()
        wait(lambda: training.job.id in live.context.feed._job_feeds)
    training.train(10)
    wait(lambda: lost)
    with serving(folder, port=port):
        training.train(10)
        training.end()
        follower.join(PATIENCE_S)
        assert not follower.is_alive()
    assert [each["epoch"] for event in heard if event.name == "rows" for each in event.data] == list(range(1, 31))
    assert heard[-1] == ServerEvent("end", {"status": "done"})
    assert len(lost) == 1


def test_a_client_without_a_right_gives_up(live, training):
    with Client(live.address, BEN) as client, pytest.raises(ServiceError, match="Unknown job"):
        next(client.events(training.job.id))


def test_streams_end_with_the_server(tmp_path):
    with serving(tmp_path) as live:
        job = live.store.submit("ann", spec_of(tiny_config()))[0]
        answers = []

        def hear(path: str) -> None:
            with live.client() as client, client.stream("GET", path) as answer:
                answers.append(list(parsed(answer.iter_lines())))

        threads = [threading.Thread(target=hear, args=(path,)) for path in ("/events", f"/jobs/{job.id}/events")]
        for thread in threads:
            thread.start()
        wait(lambda: streams_of(live) == 2)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(answers) == 2
    assert all("end" not in [name for name, _, _ in events] for events in answers)  # the job goes on


def test_the_pulse_goes_on_after_a_failure(live, training, monkeypatch, caplog):
    def fail(*_, **__) -> None:
        monkeypatch.undo()
        raise ZeroDivisionError

    monkeypatch.setattr(live.store, "changes", fail)
    training.train(2)
    training.end()
    assert epochs_of(listen(live, f"/jobs/{training.job.id}/events")) == [1, 2]
    wait(lambda: "ZeroDivisionError" in caplog.text)


def test_listener_that_leaves_is_removed(live):
    job = live.store.submit("ann", spec_of(tiny_config()))[0]
    with live.client() as client, client.stream("GET", f"/jobs/{job.id}/events") as answer:
        next(answer.iter_lines())
    wait(lambda: not live.context.feed._job_feeds)
    wait(lambda: streams_of(live) == 0)
    assert live.context.feed.listeners == 0


def test_many_listeners_are_polled_less_often(live):
    feed, few, usual = live.context.feed, broadcast.FEW_LISTENERS, broadcast.POLL_S
    for listeners, wait_s in ((0, usual), (1, usual), (few, usual), (2 * few, 2 * usual), (5 * few, 5 * usual),
                              (10**6, broadcast.MAX_POLL_S)):  # fmt: skip
        feed.streams["ann"] = listeners
        assert feed.poll_s == pytest.approx(wait_s), listeners
    feed.streams.clear()


def test_owner_has_limited_event_streams(live, monkeypatch):
    monkeypatch.setitem(live.context.feed.streams, "ann", ConnectionLimits.streams - 1)
    with live.client() as ann, live.client(BEN) as ben:
        with ann.stream("GET", "/events") as first, ben.stream("GET", "/events") as other:
            assert (first.status_code, other.status_code) == (200, 200)
            error(ann.get("/events"), 429, "too_many_streams")
        wait(lambda: streams_of(live) == 0)  # the one that was refused is not counted
        with ann.stream("GET", "/events") as again:
            assert again.status_code == 200
