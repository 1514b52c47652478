"""Connections: clients that send little, late or nothing keep no other out; proxies, HTTPS and prefixes."""

import contextlib
import io
import json
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest

from difflogic.errors import UsageError
from difflogic.serve import log
from difflogic.serve.api import server
from difflogic.serve.api.auth import COOKIE
from difflogic.serve.api.settings import ConnectionLimits, ServeSettings
from difflogic.serve.client import Client
from tests.sampled import sampled
from tests.serve.live import ANN, API, Live, serving
from tests.serve.service import PATIENCE_S, wait

HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n"
HEALTH = HALF + b"\r\n"
HALF_BODY = HALF.replace(b"GET /api/v1/health", b"POST /api/v1/session") + (
    b"Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n{"
)
PEM = Path(__file__).parents[1] / "data" / "localhost.pem"
SHORT, LONG = 0.2, 1000.0
"""Seconds that something may take which never comes, and that nothing takes."""


@contextlib.contextmanager
def limited(folder: Path, **limits: float) -> Iterator[Live]:
    given = {"request_s": LONG, "write_s": LONG} | limits
    with serving(folder, ServeSettings(connections=ConnectionLimits(**given))) as live:  # type: ignore[arg-type]
        yield live


def connect(live: Live, sends: bytes = b"") -> socket.socket:
    port = httpx.URL(live.address).port
    assert port is not None
    made = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    made.sendall(sends)
    return made


def status(connection: socket.socket) -> int | None:
    """The status of the answer that comes next; None where the server ends the connection."""
    answer = HTTPResponse(connection)
    try:
        answer.begin()
    except ConnectionError:
        return None
    answer.read()
    return answer.status


def late(live: Live) -> float:
    return live.context.telemetry.registry.get_sample_value("difflogic_connections_ended_total") or 0.0


@contextlib.contextmanager
def dripping(connection: socket.socket) -> Iterator[None]:
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(SHORT / 10):
                connection.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "sent", sampled([b"", HALF, HEALTH, HEALTH + HALF, HALF_BODY, HEALTH + HALF_BODY], {HALF, HEALTH + HALF_BODY})
)
@pytest.mark.parametrize("drips", [False, True])
def test_a_request_that_does_not_come_is_not_waited_for(tmp_path: Path, sent: bytes, drips: bool) -> None:
    with limited(tmp_path, request_s=SHORT) as live, connect(live, sent) as half:
        with dripping(half) if drips else contextlib.nullcontext():
            if HEALTH in sent:
                assert status(half) == 200
            assert status(half) is None
        assert late(live) == 1
        wait(lambda: live.context.telemetry.registry.get_sample_value("difflogic_connections") == 0)


def test_a_body_that_comes_fast_enough_is_waited_for(tmp_path: Path) -> None:
    with limited(tmp_path, request_s=SHORT, rate=100) as live, connect(live, HALF_BODY) as slow:
        slow.sendall(b" " * 100)
        slow.settimeout(3 * SHORT)
        with pytest.raises(TimeoutError):
            slow.recv(1)
        slow.settimeout(PATIENCE_S)
        assert status(slow) is None


def test_a_stream_of_events_outlives_every_limit(tmp_path: Path) -> None:
    with (
        limited(tmp_path, request_s=SHORT, write_s=SHORT) as live,
        live.client() as client,
        client.stream("GET", "/events") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        for _ in range(3):  # each is ended after SHORT
            with connect(live) as other:
                assert status(other) is None
        job = httpx.post(f"{live.address}{API}/jobs", json={"preset": "checkerboard"}, headers=client.headers).json()
        assert any(line.startswith("data: ") and job["id"] in line for line in lines)


def test_connection_without_reader_is_closed(tmp_path: Path) -> None:
    with limited(tmp_path, write_s=SHORT) as live, live.client() as client:
        job = client.post("/jobs", json={"preset": "checkerboard"}).json()["id"]
        run = live.store.job_folder(job).run
        run.mkdir(parents=True)
        (run / "summary.txt").write_bytes(bytes(30 << 20))  # more than the system's own memory of a connection
        ask = f"GET {API}/jobs/{job}/files/summary.txt HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANN}\r\n"
        with connect(live, f"{ask}\r\n".encode()):
            wait(lambda: late(live) == 1)


@pytest.mark.parametrize("sent", sampled([b"", HALF, HALF_BODY], {HALF_BODY}))
def test_a_flood_of_half_requests_makes_room_itself(tmp_path: Path, sent: bytes) -> None:
    with limited(tmp_path, all=30, request_s=30) as live, contextlib.ExitStack() as held:
        for _ in range(60):
            with contextlib.suppress(ConnectionError):
                held.enter_context(connect(live, sent))
        wait(lambda: late(live) >= 30)
        # One of them may still be taken for the flood's own, while the last of that are being ended.
        wait(lambda: status_of(live) == 200)


def status_of(live: Live) -> int | None:
    with connect(live, HEALTH) as other:
        return status(other)


def test_trusted_proxy_names_the_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "difflogic.serve")
    for proxies, told in ((("127.0.0.0/8",), "10.1.1.1"), ((), "127.0.0.1")):
        with serving(tmp_path, ServeSettings(proxies=proxies)) as live:
            assert httpx.get(live.address, headers={"X-Forwarded-For": "10.1.1.1"}).status_code == 200
        assert caplog.records[-1].fields["client"] == told


def test_a_flood_does_not_fill_the_log() -> None:
    now, stream = 0.0, io.StringIO()
    handler = log.BoundedHandler(stream, lambda: now)
    logger = logging.Logger("flood")
    logger.addHandler(handler)

    def lines() -> list[dict[str, object]]:
        written = [json.loads(line) for line in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
        return written

    for number in range(5000):
        logger.info("request", extra={"fields": {"status": 401, "path": f"/{number}"}})
        logger.warning("socket.accept() is out of resources\nfd=%d", number)
    logger.info("request", extra={"fields": {"status": 200}})
    written = lines()
    assert len(written) == 2 * log.MOST_LINES + 1
    assert written[-1]["status"] == 200
    now = log.WINDOW_S
    logger.info("request", extra={"fields": {"status": 401}})
    left_out = 5000 - log.MOST_LINES
    assert [(line["event"], line.get("of"), line.get("status"), line.get("lines")) for line in lines()] == [
        ("lines left out", "request", 401, left_out),
        ("lines left out", "socket.accept() is out of resources", None, left_out),
        ("request", None, 401, None),
    ]
    for _ in range(log.MOST_LINES):
        logger.info("request", extra={"fields": {"status": 401}})
    lines()
    handler.close()
    assert [line["lines"] for line in lines()] == [1], "the last are said at the end"


def test_https_with_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = ssl.create_default_context(cafile=PEM)
    settings = ServeSettings(tls=(PEM, PEM), connections=ConnectionLimits(request_s=2.0))
    with serving(tmp_path, settings) as live:
        assert live.address.startswith("https://")
        with httpx.Client(base_url=live.address, verify=trust) as browser:
            answer = browser.post(f"{API}/session", json={"token": ANN})
            assert "Secure" in answer.headers["set-cookie"].split("; ")
            assert browser.get(f"{API}/session").json()["owner"] == "ann"
        monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
        with Client(live.address, ANN) as client:
            assert list(client.jobs()) == []
        monkeypatch.setenv("SSL_CERT_FILE", __file__)
        with pytest.raises(UsageError, match="SSL_CERT_FILE"):
            Client(live.address, ANN)
        with connect(live, b"\x16\x03\x01") as half:  # of a handshake
            assert httpx.get(f"{live.address}{API}/health", verify=trust).status_code == 200
            assert half.recv(1) == b""


def test_files_that_are_no_certificate_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    server.check_tls(PEM, PEM)
    for certificate, key, words in (
        (tmp_path / "no.pem", PEM, "Expected a TLS certificate and its key"),
        (PEM, tmp_path / "no.pem", "Expected a TLS certificate and its key"),
        (PEM, tmp_path / "absent.pem", "Cannot read .*absent.pem"),
    ):
        with pytest.raises(UsageError, match=words):
            server.check_tls(certificate, key)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trusted-proxy", "lab.example"], "'lab.example' is not an IP address or network"),
        (["--root-path", "difflogic"], "'difflogic' is reserved, or not a path"),
        (["--root-path", "/a/../b"], "is reserved, or not a path"),
        (["--root-path", "/api"], "is reserved, or not a path"),
        (["--max-jobs", "0"], "0 is not in the range"),
        (["--tls-cert", str(PEM)], "--tls-cert and --tls-key must be used together"),
        (["--tls-cert", str(PEM), "--tls-key", "/nowhere"], "Cannot read /nowhere"),
        (["--tls-cert", __file__, "--tls-key", str(PEM)], "Expected a TLS certificate and its key"),
    ],
)
def test_options_that_cannot_be_used_end_the_command_before_it_begins(tmp_path: Path, said, options, words) -> None:
    errors = said("serve", tmp_path / "jobs", *options, code=2).err
    assert words in " ".join(errors.replace("│", " ").split())
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("seen", ["/difflogic", ""])
def test_all_routes_work_behind_a_prefix(tmp_path: Path, seen: str) -> None:
    with serving(tmp_path, ServeSettings(root_path="/difflogic")) as live:
        server_url = httpx.URL(live.address).copy_with(path=seen or "/")
        with httpx.Client(base_url=server_url, headers={"Authorization": f"Bearer {ANN}"}) as client:
            page = client.get("/")
            assert page.status_code == 200
            assert '"/' not in page.text.replace('"/>', ""), "its files are named by where it is"
            for path in ("/static/main.js", "/docs", "/metrics", f"{API}/health"):
                assert client.get(path).status_code == 200, path
            made = client.post(f"{API}/jobs", json={"preset": "checkerboard"})
            assert made.headers["location"] == f"/difflogic{API}/jobs/{made.json()['id']}"
            assert client.get("/openapi.json").json()["servers"] == [{"url": "/difflogic"}]
            cookie = client.post(f"{API}/session", json={"token": ANN}).headers["set-cookie"]
            assert cookie.startswith(COOKIE)
            assert "Path=/difflogic" in cookie.split("; ")
            with client.stream("GET", f"{API}/jobs/{made.json()['id']}/events") as stream:
                assert next(stream.iter_lines()) == "retry: 1000"
            assert client.get("/difflogicx").status_code == 404
        bare = httpx.get(live.address)
        assert (bare.status_code, bare.headers["location"]) == (308, "/difflogic/")
