"""Ends of jobs reach the addresses that the operator gave or allowed, signed, and no others; nothing waits for them."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from difflogic.serve.api import webhooks
from difflogic.serve.api.settings import ServeSettings, WebhookSettings
from difflogic.serve.store import alerts
from difflogic.serve.store.store import Store
from tests.serve.live import Live, serving
from tests.serve.service import wait


class Receiver:
    """An address that hears of jobs, and answers as it is told to."""

    def __init__(self) -> None:
        self.status = 204
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.heard.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(outer.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def jobs(self) -> list[str]:
        return [json.loads(body)["job"]["id"] for _, _, body in self.heard]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhooks, "POLL_S", 0.02)
    made = Receiver()
    yield made
    made.close()


@contextmanager
def telling(folder: Path, url: str | None, *hosts: str) -> Iterator[Live]:
    settings = ServeSettings(webhooks=WebhookSettings(url, frozenset(hosts), "the-operators-secret"))
    with serving(folder, settings) as live:
        yield live


def submit(live: Live, **request: object) -> httpx.Response:
    with live.client() as ann:
        return ann.post("/jobs", json={"preset": "checkerboard", **request})


def end(store: Store, status: str = "done", **progress: object) -> str:
    store.register_worker("w", "cpu", "", 1, ["auto"])
    job, lease = store.claim("w", "cpu", ["auto"], 60) or pytest.fail("no job waits")
    store.finish(job.id, lease, status, **progress)
    return job.id


def waiting(store: Store, due: bool | None = None) -> int:
    """How many alerts are to be told; `due`: only those that are to be told now, or only the others."""
    with store.database.reading() as connection:
        query = "SELECT count(*) FROM alerts WHERE ?1 IS NULL OR (due <= ?2) = ?1"
        return int(connection.execute(query, (due, store.clock())).fetchone()[0])


def test_every_end_is_told_to_the_operator_and_to_the_jobs_own_address(tmp_path: Path, receiver: Receiver) -> None:
    with telling(tmp_path, f"http://{receiver.host}/all", receiver.host) as live:
        own = submit(live, webhook=f"http://{receiver.host}/mine?of=ann", tags=["the paper"]).json()["id"]
        end(live.store, hard_loss=0, solved=1)
        cancelled = submit(live).json()["id"]
        live.store.ask(cancelled, "cancel")  # its owner knows
        for status, progress in (("done", {"hard_loss": 3, "compared": 64}), ("failed", {"reason": "It broke."})):
            submit(live)
            end(live.store, status, **progress)
        wait(lambda: len(receiver.heard) == 4)
        with live.client() as ann:
            secret = ann.get("/webhooks").json()["secret"]
            assert ann.get("/webhooks").json()["hosts"] == [receiver.host]
        told = [json.loads(body)["job"] for path, _, body in receiver.heard if path == "/all"]
        assert [(each["status"], each["outcome"], each["reason"]) for each in told] == [
            ("done", "solved", None), ("done", "unsolved", None), ("failed", None, "It broke."),
        ]  # fmt: skip
        assert cancelled not in receiver.jobs()
        assert (told[0]["id"], told[0]["tags"], told[1]["hard_loss"]) == (own, ["the paper"], 3)
        for path, headers, body in receiver.heard:
            key = secret if path == "/mine?of=ann" else "the-operators-secret"
            signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
            assert headers[webhooks.SIGNATURE.lower()] == f"sha256={signature}"
        assert sum(path == "/mine?of=ann" for path, _, _ in receiver.heard) == 1
        wait(lambda: waiting(live.store) == 0)


def test_what_was_not_told_is_told_later_and_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    with telling(tmp_path, f"http://{receiver.host}/all") as live:
        receiver.status = 500
        submit(live)
        job = end(live.store)
        wait(lambda: receiver.heard)
        wait(lambda: live.context.telemetry.registry.get_sample_value(
            "difflogic_webhooks_total", {"result": "failed"}) == 1)  # fmt: skip
        wait(lambda: waiting(live.store, due=False) == 1)
        submit(live)
        other = end(live.store)  # the address is dead for now: it costs no second try
    assert receiver.jobs() == [job]
    number = receiver.heard[0][1][webhooks.DELIVERY.lower()]
    receiver.status = 200
    with telling(tmp_path, f"http://{receiver.host}/all") as live:
        live.store.clock = lambda now=live.store.clock: now() + alerts.WAITS_S[0]
        wait(lambda: len(receiver.heard) == 3)
        assert receiver.jobs() == [job, job, other]
        assert receiver.heard[1][1][webhooks.DELIVERY.lower()] == number
        wait(lambda: waiting(live.store) == 0)


def test_it_is_given_up_in_the_end(store: Store, spec) -> None:
    store.submit("ann", spec)
    end(store)
    tries = 0
    while waiting(store):
        with store.database.writing() as connection:
            (alert,) = alerts.due(connection, store.clock() + 1e6)
            tries += 1
            assert alerts.failed(connection, alert, store.clock()) == (tries <= len(alerts.WAITS_S))
            assert not alerts.due(connection, store.clock() + 5)
    assert tries == len(alerts.WAITS_S) + 1


def test_only_so_many_wait(store: Store, spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MOST", 3)
    for _ in range(5):
        store.submit("ann", spec)
        end(store)
    assert waiting(store) == 3


def test_no_address_is_asked_that_nobody_allowed(tmp_path: Path, receiver: Receiver) -> None:
    """Neither where a job names it, nor after a redirection, nor when it is allowed no more."""
    port = receiver.host.rpartition(":")[2]
    with telling(tmp_path, None, "hooks.example.org", receiver.host) as live:
        for url in (
            "http://169.254.169.254/latest", f"http://localhost:{port}/", "http://hooks.example.org:8080/",
            "http://hooks.example.org@127.0.0.1/", f"http://127.0.0.1:{port}@evil.example/", "file:///etc/passwd",
            "http://hooks.example.org.evil.example/", f"http://2130706433:{port}/", f"http://[::ffff:127.0.0.1]:{port}/",
            "https://hooks.example.org\\@evil.example/", "http://", f"http://127.0.0.1:{port}:80/", "http:///x",
        ):  # fmt: skip
            assert submit(live, webhook=url).status_code == 422, url
        assert submit(live, webhook="https://hooks.example.org/x").status_code == 201
        live.store.ask(live.store.jobs()[0].id, "cancel")
        receiver.status = 302
        job = submit(live, webhook=f"http://{receiver.host}/mine").json()["id"]
        with live.client() as ann:
            assert ann.patch(f"/jobs/{job}", json={"webhook": "http://evil.example/"}).status_code == 422
        end(live.store)
        wait(lambda: waiting(live.store) == 1 and receiver.heard)
        assert [path for path, _, _ in receiver.heard] == ["/mine"]
    with telling(tmp_path, None) as live:
        live.store.clock = lambda now=live.store.clock: now() + 1000
        wait(lambda: waiting(live.store) == 0)
        refused = submit(live, webhook=f"http://{receiver.host}/mine")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "webhook")
    assert len(receiver.heard) == 1


def test_an_address_that_never_answers_holds_up_nothing(tmp_path: Path, receiver, monkeypatch) -> None:
    monkeypatch.setattr(webhooks, "PATIENCE_S", 0.05)
    arrived, release = threading.Event(), threading.Event()

    def stuck(*_: object, **__: object) -> None:
        arrived.set()
        release.wait()

    monkeypatch.setattr(httpx.Client, "stream", stuck)
    with telling(tmp_path, "http://127.0.0.1:1/dead") as live:
        submit(live)
        job = end(live.store)
        assert arrived.wait(60)
        submit(live)
        other = end(live.store)
        assert [live.store.job(each).status for each in (job, other)] == ["done", "done"]
    assert waiting(Store.open(tmp_path)) == 2
    release.set()
