"""Who may do what, and what nobody may: a test for each promise."""

from __future__ import annotations

import ast
import contextlib
import hmac
import http.client
import io
import json
import logging
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection

import httpx
import numpy as np
import pytest
from PIL import Image

import difflogic
from difflogic.cli import main as cli
from difflogic.config import presets
from difflogic.devices import cost
from difflogic.errors import DataError, ServiceError, UsageError
from difflogic.serve import log
from difflogic.serve.api import auth, middleware, pictures, settings, tokens
from difflogic.serve.api.auth import COOKIE, CSRF_HEADER, Failures
from difflogic.serve.api.server import listen
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.client import unpack
from difflogic.serve.store.jobs import JobSpec
from tests.serve.live import ANN, API, BEN, Live, serving
from tests.serve.service import PATIENCE_S

CAPS = Caps(epochs=5000, population=8, hours=1.0, memory=200_000_000, upload=300_000, body=100_000, pixels=256 * 256)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(tmp_path_factory.mktemp("store"), ServeSettings(caps=CAPS, guess_s=0)) as running:
        yield running


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with live.client() as made:
        yield made


@pytest.fixture(autouse=True)
def forgiven(live: Live) -> None:
    """Wrong tokens of one test are not another's."""
    live.context.authenticator._failures = Failures()


def submit(client: httpx.Client, **request: object) -> str:
    return str(client.post("/jobs", json={"preset": "checkerboard", **request}).json()["id"])


def error(answer: httpx.Response, status: int, code: str) -> str:
    """Its sentence; the body has nothing else."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert body["error"]["code"] == code
    message = str(body["error"]["message"])
    assert message.endswith(".")
    assert "\n" not in message
    return message


# tokens -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {ANN}", "Bearer", f"Bearer {ANN}x", "", "Bearer é"])
def test_without_a_token_nothing_is_told(live: Live, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode()}
    answer = httpx.get(live.address + API + "/jobs", headers=headers)
    error(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_every_address_but_the_signs_of_life_needs_a_token(live: Live) -> None:
    document = httpx.get(live.address + "/openapi.json").json()
    free = {"/api/v1/health", "/api/v1/ready", "/metrics"}
    for path, operations in document["paths"].items():
        for method in operations:
            if path in free or (path, method) in (("/api/v1/session", "post"), ("/api/v1/session/link", "post")):
                continue
            url = live.address + path.replace("{job}", "a" * 16).replace("{name}", "x")
            answer = httpx.request(method, url, params={"ids": "a" * 16} if "compare" in path else {})
            assert answer.status_code == 401, (method, path)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def counted(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(tokens.hmac, "compare_digest", counted)
    known = Tokens({f"owner{number}": f"a-token-of-{number}-letters" for number in range(5)})
    for token, owner in (("a-token-of-0-letters", "owner0"), ("a-token-of-4-letters", "owner4"), ("", None)):
        compared.clear()
        assert known.owner(token) == owner
        assert len(compared) == 5  # every one, whichever fits...
        assert {len(each) for pair in compared for each in pair} == {32}  # ...and whatever their lengths


def test_two_tokens_do_not_see_each_others_jobs(live: Live, client: httpx.Client) -> None:
    job = submit(client)
    with live.client(BEN) as other:
        assert other.get("/jobs").json()["jobs"] == []
        for path in ("", "/metrics", "/log", "/frame", "/gates", "/files", "/files/summary.txt", "/archive", "/events"):
            error(other.get(f"/jobs/{job}{path}"), 404, "no_job")
        for action in ("cancel", "pause", "resume", "retry", "clone", "simplify", "evaluate"):
            error(other.post(f"/jobs/{job}/{action}"), 404, "no_job")
        error(other.post(f"/jobs/{job}/export", json={"formats": ["c"]}), 404, "no_job")
        error(other.patch(f"/jobs/{job}", json={"priority": 9}), 404, "no_job")
        error(other.delete(f"/jobs/{job}"), 404, "no_job")
        error(other.get("/compare", params={"ids": job}), 404, "no_job")
        mine = submit(other)
        assert [each["id"] for each in other.get("/jobs").json()["jobs"]] == [mine]
    assert client.get(f"/jobs/{job}").json()["priority"] == 0
    assert mine not in [each["id"] for each in client.get("/jobs").json()["jobs"]]


def test_idempotency_keys_are_the_owners(live: Live, client: httpx.Client) -> None:
    key = {"Idempotency-Key": "the-same-key"}
    first = client.post("/jobs", json={"preset": "checkerboard"}, headers=key)
    again = client.post("/jobs", json={"preset": "checkerboard"}, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    assert first.headers["location"] == f"{API}/jobs/{first.json()['id']}"
    error(client.post("/jobs", json={"preset": "lizard"}, headers=key), 409, "conflict")
    with live.client(BEN) as other:
        assert other.post("/jobs", json={"preset": "lizard"}, headers=key).status_code == 201


@pytest.fixture
def waits(live: Live, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that tokens would have waited."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(live.context.authenticator, "_wait", wait)
    return waited


def ask(live: Live, token: str, *forwarded: str) -> int:
    headers = [("Authorization", f"Bearer {token}"), *(("X-Forwarded-For", each) for each in forwarded)]
    return httpx.get(live.address + API + "/jobs", headers=headers).status_code


def test_guesses_wait_and_right_tokens_are_never_refused(live: Live, waits: list[float]) -> None:
    for _ in range(3 * auth.MOST_FAILURES):
        assert ask(live, "an-old-token-of-a-forgotten-script") == 401
    assert ask(live, ANN) == 200
    for number in range(auth.MOST_FAILURES - 1):
        assert ask(live, f"guessed-token-number-{number}") == 401
    assert waits == []
    assert ask(live, "guessed-token-that-is-one-too-many") == 401
    assert waits == [live.context.settings.guess_s]
    assert ask(live, ANN) == 200
    assert len(waits) == 1, "it was right from here before"
    assert [ask(live, BEN), ask(live, BEN)] == [200, 200]
    assert len(waits) == 2, "the first time it might have been a guess"
    body = {"token": "guessed-token-for-the-page"}
    error(httpx.post(live.address + API + "/session", json=body), 401, "unauthorized")
    assert len(waits) == 3


def test_who_forges_the_address_is_counted_where_he_is(live: Live, waits: list[float]) -> None:
    for number in range(2 * auth.MOST_FAILURES):
        assert ask(live, f"guessed-token-number-{number}", f"10.9.9.{number}") == 401
    assert len(waits) == auth.MOST_FAILURES


def test_behind_a_trusted_proxy_each_client_is_counted_alone(tmp_path: Path) -> None:
    with serving(tmp_path, ServeSettings(proxies=("127.0.0.0/8", "10.7.0.1/32"), guess_s=0)) as behind:
        failures = behind.context.authenticator._failures
        for number in range(auth.MOST_FAILURES):  # what the client says itself comes before what the proxies saw
            assert ask(behind, f"guessed-token-number-{number}", f"10.9.9.{number}, 10.1.1.1", "10.7.0.1") == 401
        assert failures.is_guess("10.1.1.1", ANN)
        assert not any(failures.is_guess(each, ANN) for each in ("127.0.0.1", "10.7.0.1", "10.9.9.1", "10.1.1.2"))
        assert [ask(behind, ANN, each) for each in ("10.1.1.1", "10.1.1.2", "nonsense")] == [200, 200, 200]


def test_a_name_of_another_site_is_refused(live: Live, tmp_path: Path) -> None:
    def ask(host: str, address: str = live.address) -> httpx.Response:
        return httpx.get(address + API + "/health", headers={"Host": host})

    port = live.address.rpartition(":")[2]
    for host in ("localhost", f"LOCALHOST:{port}", f"127.0.0.1:{port}", "[::1]:80", "192.168.1.7"):
        assert ask(host).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::1", "", "a@localhost.evil"):
        answer = ask(host)
        error(answer, 421, "other_host")
        assert answer.headers["x-content-type-options"] == "nosniff"
    with serving(tmp_path / "named", ServeSettings(names=("lab.example",))) as named:
        assert ask("lab.example", named.address).status_code == 200
        assert ask("evil.example", named.address).status_code == 421
    with serving(tmp_path / "others", ServeSettings(host="0.0.0.0")) as others:
        assert ask("lab", others.address).status_code == 200


def test_the_page_is_kept_by_browsers_which_ask_whether_it_changed(live: Live) -> None:
    first = httpx.get(live.address + "/static/main.js")
    assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
    again = httpx.get(live.address + "/static/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"], again.content) == (304, "no-cache", b"")
    assert httpx.get(live.address + API + "/health").headers["cache-control"] == "no-store"


def test_failures_are_forgotten_after_a_minute_and_counted_by_network(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    counted = Failures(lambda: now)
    for number in range(auth.MOST_FAILURES):
        counted.note(f"2001:db8::{number:x}", f"guess {number}", is_right=False)  # a network of 64 bits is one guesser
    assert counted.is_guess("2001:db8::ffff", "another")
    assert not counted.is_guess("2001:db8:0:1::1", "another")
    assert not counted.is_guess("10.0.0.1", "another")
    now = 59.5
    assert counted.is_guess("2001:db8::1", "another")
    now = 60.0
    assert not counted.is_guess("2001:db8::1", "another")
    monkeypatch.setattr(auth, "ADDRESSES", 5)
    for number in range(100):
        counted.note(f"10.0.0.{number}", f"guess {number}", is_right=False)
        counted.note("10.0.0.1", f"guess {number}", is_right=False)
        counted.note("10.0.0.1", f"right {number}", is_right=True)
    assert (len(counted._wrong), len(counted._right), len(counted._wrong["10.0.0.1"])) == (5, 5, auth.MOST_FAILURES)


def test_a_server_for_others_needs_a_token_of_the_operators(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("DIFFLOGIC_TOKEN", raising=False)
    assert cli.main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "DIFFLOGIC_TOKEN" in capsys.readouterr().err
    assert not (tmp_path / "token").exists()


def test_answers_are_sent_without_delay() -> None:
    """Each in two pieces: without this the second waits for the acknowledgement of the first."""
    with listen("127.0.0.1", 0) as socket, contextlib.closing(create_connection(socket.getsockname())):
        accepted, _ = socket.accept()
        with accepted:
            assert accepted.getsockopt(IPPROTO_TCP, TCP_NODELAY)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_is_known(host: str) -> None:
    assert settings.is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "localhost.example.org", ""])
def test_others_are_not_this_machine(host: str) -> None:
    assert not settings.is_loopback(host)


def test_a_generated_token_is_its_owners_alone(tmp_path: Path) -> None:
    token, made = tokens.generated_token(tmp_path)
    assert made
    assert len(token) == 43
    assert stat.S_IMODE((tmp_path / tokens.GENERATED).stat().st_mode) == 0o600
    assert tokens.generated_token(tmp_path) == (token, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no token"),
        ("ann:short", "16 to 200"),
        ("ann\nben", "name:token"),
        (f"ann:{ANN}\nann:{BEN}", "a name of its own"),
        (f"ann:{ANN}\nben:{ANN}", "same token"),
        (f"ä:{ANN}\nben:{BEN}", "letters"),
        (f"ann boss:{ANN}\nben:{BEN}", "operator or priority"),
        (f"ann {ANN}:operator\nben:{BEN}", "operator or priority"),
    ],
)
def test_files_of_tokens_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        Tokens.of_file(tmp_path / "tokens")
    assert ANN not in str(caught.value)


def test_a_file_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"# the team\n\nann: {ANN}\nben priority operator:{BEN}\n")
    known = Tokens.of_file(tmp_path / "tokens")
    assert [known.owner(each) for each in (ANN, BEN)] == ["ann", "ben"]
    assert [known.roles(each) for each in ("ann", "ben", "cas")] == [set(), {"priority", "operator"}, set()]
    (tmp_path / "tokens").write_text("\ufeff" + ANN + "\n")
    alone = Tokens.of_file(tmp_path / "tokens")
    assert (alone.owner(ANN), alone.roles(tokens.OPERATOR)) == (tokens.OPERATOR, {tokens.OPERATOR})


def test_a_file_of_tokens_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"ann:{ANN}\n")
    known = Tokens.of_file(file)
    session = known.sign("ann", "session")
    file.write_text(f"ann:{ANN}\nben operator:{BEN}\n")
    assert (known.owner(BEN), known.roles("ben")) == ("ben", {"operator"})
    assert known.sign("ann", "session") == session
    for broken in (f"ann:{BEN[:9]}\n", "", None):
        caplog.clear()
        file.unlink() if broken is None else file.write_text(broken)
        assert [known.owner(each) for each in (ANN, BEN, ANN)] == ["ann", "ben", "ann"]
        assert [record.levelname for record in caplog.records] == ["ERROR"], "said once"
        assert BEN[:9] not in str(caplog.records[0].fields)
    file.write_text(f"ben:{BEN}\n")
    assert (known.owner(ANN), known.owner(BEN), known.roles("ben")) == (None, "ben", set())
    assert known.sign("ann", "session") is None


# sessions ---------------------------------------------------------------------------------------------


@pytest.fixture
def page(live: Live) -> Iterator[httpx.Client]:
    """A browser that signed in."""
    with live.client(None) as browser:
        answer = browser.post("/session", json={"token": ANN})
        assert (answer.status_code, answer.content) == (204, b"")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert ANN not in cookie
        yield browser


def test_a_session_reads_and_writes_need_the_csrf_token(page: httpx.Client) -> None:
    session = page.get("/session").json()
    assert session["owner"] == "ann"
    request = {"preset": "checkerboard"}
    error(page.post("/jobs", json=request), 403, "csrf")
    error(page.post("/jobs", json=request, headers={CSRF_HEADER: "0" * 64}), 403, "csrf")
    error(page.post("/jobs", json=request, headers={CSRF_HEADER: "é".encode()}), 403, "csrf")
    made = page.post("/jobs", json=request, headers={CSRF_HEADER: session["csrf"]})
    assert made.status_code == 201
    error(page.delete(f"/jobs/{made.json()['id']}"), 403, "csrf")


def test_behind_tls_the_cookie_is_for_tls_alone(live: Live) -> None:
    answer = httpx.post(
        live.address + API + "/session", json={"token": ANN}, headers={"X-Forwarded-Proto": "https"}
    )  # fmt: skip
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_session_that_ended_is_over(page: httpx.Client) -> None:
    cookie = page.cookies[COOKIE]
    csrf = page.get("/session").json()["csrf"]
    assert page.delete("/session", headers={CSRF_HEADER: csrf}).status_code == 204
    page.cookies.clear()
    error(page.get("/jobs", headers={"Cookie": f"{COOKIE}={cookie}"}), 401, "unauthorized")


@pytest.mark.parametrize("cookie", ["", "ann", "ann.", "ann.forged", "nobody.forged", "." * 300, "ann.\xe9"])
def test_forged_cookies_are_nobodys(live: Live, cookie: str) -> None:
    headers = {"Cookie": f"{COOKIE}={cookie}".encode("latin-1")}
    error(httpx.get(live.address + API + "/jobs", headers=headers), 401, "unauthorized")


def test_the_store_has_no_cookie_and_a_changed_token_ends_its_sessions(live: Live, page: httpx.Client) -> None:
    cookie = page.cookies[COOKIE]
    known = Tokens({"ann": ANN})
    signature = known.sign("ann", f"session:{cookie}")
    assert signature is not None
    assert live.store.session_owner(signature) == "ann"
    assert cookie.encode() not in b"".join(path.read_bytes() for path in live.store.folder.glob("store.sqlite3*"))
    assert Tokens({"ann": BEN}).sign("ann", f"session:{cookie}") != signature
    assert Tokens({"ben": BEN}).sign("ann", f"session:{cookie}") is None


# headers, logs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [API + "/health", API + "/jobs", "/docs", "/openapi.json", "/nowhere", "/static/../app.py"]
)
def test_every_answer_has_the_headers(live: Live, path: str) -> None:
    answer = httpx.get(live.address + path)
    for name, value in middleware.HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    policy = dict(each.strip().split(" ", 1) for each in middleware.POLICY.split(";"))
    assert policy["default-src"] == "'none'"
    assert "unsafe" not in middleware.POLICY
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"


def test_the_docs_need_no_script_and_no_network(live: Live) -> None:
    page = httpx.get(live.address + "/docs").text
    assert "<script" not in page
    assert "style=" not in page
    assert "://" not in page
    assert "/api/v1/jobs/{job}/events" in page


def test_no_secret_is_in_the_log(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    log.set_up(stream)
    try:
        with live.client(None) as browser:
            browser.post("/session", json={"token": ANN})
            cookie = browser.cookies[COOKIE]
            csrf = browser.get("/session").json()["csrf"]
            browser.get("/jobs", params={"q": ANN})
            browser.get("/jobs", headers={"Authorization": "Bearer a-wrong-but-secret-token"})
            browser.post("/session", json={"token": ANN * 20})
            browser.post("/jobs", json={"preset": "nowhere"}, headers={CSRF_HEADER: csrf})
    finally:
        log.LOGGER.handlers.clear()
        log.LOGGER.setLevel(logging.NOTSET)
        logging.getLogger("uvicorn").handlers.clear()
    written = stream.getvalue()
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["path"] for line in lines if line["event"] == "request"].count(API + "/session") == 3
    for secret in (ANN, cookie, cookie.partition(".")[2], csrf, "a-wrong-but-secret-token"):
        assert secret not in written


def test_metrics_are_for_this_machine_or_a_token(live: Live, tmp_path: Path) -> None:
    answer = httpx.get(live.address + "/metrics")
    assert answer.status_code == 200
    assert 'difflogic_jobs{status="queued"}' in answer.text
    assert ANN not in answer.text
    forwarded = httpx.get(live.address + "/metrics", headers={"X-Forwarded-For": "10.1.1.1"})
    error(forwarded, 401, "unauthorized")
    with serving(tmp_path, ServeSettings(host="0.0.0.0")) as other:
        error(httpx.get(other.address + "/metrics"), 401, "unauthorized")
        with other.client() as known:
            assert known.get(other.address + "/metrics").status_code == 200


# what comes in ----------------------------------------------------------------------------------------


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((height, width), 255, dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is so large, with next to nothing in it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1 << 20))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def upload(client: httpx.Client, picture: bytes, **request: object) -> httpx.Response:
    form = {"job": json.dumps({"preset": "lizard", **request})}
    return client.post("/jobs", data=form, files={"target": ("t.png", picture, "image/png")})


def test_a_picture_becomes_the_target(client: httpx.Client) -> None:
    answer = upload(client, png(9, 7))
    assert answer.status_code == 201, answer.text
    task = answer.json()["config"]["task"]
    assert (task["width"], task["height"], task["picture"][0]) == (9, 7, "1" * 9)
    assert upload(client, png(200, 100), size="20x20").json()["config"]["task"]["width"] == 20


@pytest.mark.parametrize("sides", [(257, 256), (30_000, 30_000), (2**31 - 1, 2**31 - 1)])
def test_pictures_of_too_many_pixels_are_refused_unopened(client: httpx.Client, sides: tuple[int, int]) -> None:
    assert "pixels" in error(upload(client, bomb(*sides), size="20x20"), 422, "too_many_pixels")


def test_pictures_of_many_chunks_are_refused_unopened(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "COMMAND", ("/nowhere",))
    plain = png(5, 5)
    empty = struct.pack(">I", 0) + b"teXt" + struct.pack(">I", zlib.crc32(b"teXt"))
    many = plain[:33] + empty * (pictures.MAX_CHUNKS + 1) + plain[33:]
    assert "chunks" in error(upload(client, many), 422, "invalid_config")


@pytest.mark.parametrize("does", ["while True: pass", "import os; os.abort()", "raise MemoryError"])
def test_pictures_that_take_too_much_are_given_up(client: httpx.Client, monkeypatch, does: str) -> None:
    monkeypatch.setattr(pictures, "COMMAND", (sys.executable, "-c", does))
    monkeypatch.setattr(pictures, "WALL_S", 1.0)
    assert "time or memory" in error(upload(client, png(5, 5)), 422, "invalid_config")


def test_the_process_of_a_picture_has_limits(tmp_path: Path) -> None:
    """Of memory: here so little that the smallest picture takes too much."""
    (tmp_path / "picture").write_bytes(png(5, 5))
    with pytest.raises(DataError, match="time or memory"):
        pictures.make_plain(tmp_path / "picture", pixels=-(pictures.MEMORY >> 5) + 1)
    pictures.make_plain(tmp_path / "picture", pixels=25)


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"<svg/>", png(5, 5)[:45], b"%!PS-Adobe", bytes(1000)])
def test_what_is_no_picture_is_refused(client: httpx.Client, data: bytes) -> None:
    message = error(upload(client, data), 422, "invalid_config")
    assert "/" not in message  # nothing of the server's folders


def test_bodies_are_bounded_whether_they_say_so_or_not(client: httpx.Client) -> None:
    large = json.dumps({"preset": "x" * CAPS.body})
    headers = {"Content-Type": "application/json"}
    error(client.post("/jobs", content=large, headers=headers), 413, "too_large")
    pieces = (b"x" * 10_000 for _ in range(50))
    error(client.post("/jobs", content=pieces, headers=headers), 413, "too_large")
    error(upload(client, bytes(CAPS.upload + 1)), 413, "too_large")
    job = submit(client)
    error(client.patch(f"/jobs/{job}", content=large, headers=headers), 413, "too_large")
    pieces = (b"x" * 10_000 for _ in range(50))
    error(client.patch(f"/jobs/{job}", content=pieces, headers=headers), 413, "too_large")
    error(client.post("/session", content=large, headers=headers), 413, "too_large")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 50_000,
        b'{"set": {"optimizer.lr": NaN}}',
        b'{"name": "\\ud800"}',
        b"\xff",
        b'{"size": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_json_is_refused(client: httpx.Client, body: bytes) -> None:
    error(client.post("/jobs", content=body, headers={"Content-Type": "application/json"}), 400, "not_json")


def test_other_kinds_of_bodies_are_refused(client: httpx.Client) -> None:
    error(client.post("/jobs", content=b"x", headers={"Content-Type": "application/x-python-pickle"}), 415,
          "unsupported_media_type")  # fmt: skip
    form = {"job": '{"preset": "lizard"}', "more": "1"}
    error(client.post("/jobs", files={name: (None, value) for name, value in form.items()}), 422, "invalid_request")
    many = [("target", ("a.png", png(5, 5))), ("target", ("b.png", png(5, 5)))]
    answer = client.post("/jobs", data={"job": form["job"]}, files=many)
    error(answer, 422, "invalid_request")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"preset": "checkerboard", "set": {"train.epochs": 5001}}, "too_much_epochs"),
        ({"preset": "checkerboard", "population": 9}, "too_much_population"),
        ({"preset": "checkerboard", "set": {"task.height": 5000, "task.width": 5000}}, "too_much_memory"),
        ({"preset": "checkerboard", "set": {"train.batch": 10**9}}, "too_much_memory"),
        ({"preset": "checkerboard", "set": {"train.probes": 10**9}}, "too_much_memory"),
        ({"preset": "lizard", "set": {"pool.size": 2**28}}, "too_much_memory"),
        ({"preset": "checkerboard", "set": {"task.steps": 2000, "train.epochs": 5000}}, "too_much_time"),
        ({"preset": "checkerboard", "population": 2, "stop_when_solved": 3}, "invalid_request"),
        ({"preset": "checkerboard", "set": {"optimizer.lr": "high"}}, "invalid_config"),
        ({"preset": "checkerboard", "set": {"a..b": 1}}, "invalid_config"),
        ({"preset": "checkerboard", "set": {"optimizer": 1, "optimizer.lr": 1}}, "invalid_config"),
        ({"preset": "checkerboard", "config": {}}, "invalid_config"),
        ({"preset": "checkerboard", "size": "0x5"}, "invalid_config"),
        ({"preset": "checkerboard", "priority": True}, "invalid_request"),
        ({}, "invalid_config"),
    ],
)  # fmt: skip
def test_a_job_cannot_ask_for_more_than_the_caps(client: httpx.Client, request_: dict[str, object], code: str) -> None:
    message = error(client.post("/jobs", json=request_), 422, code)
    assert len(message) < 1000
    error(client.post("/jobs/preview", json=request_), 422, code)


def test_a_picture_in_an_endless_grid_is_refused(client: httpx.Client) -> None:
    answer = upload(client, png(5, 5), set={"task.height": 10**9, "task.width": 10**9})
    error(answer, 422, "invalid_config")


def test_the_queue_of_an_owner_is_bounded(tmp_path: Path) -> None:
    with serving(tmp_path, ServeSettings(caps=replace(CAPS, jobs=2))) as small, small.client() as client:
        first = submit(client)
        submit(client)
        error(client.post("/jobs", json={"preset": "checkerboard"}), 409, "queue_full")
        error(client.post(f"/jobs/{first}/clone"), 409, "queue_full")
        key = {"Idempotency-Key": "before-it-was-full"}
        small.store.submit("ann", drawn("checkerboard"), key["Idempotency-Key"])
        again = client.post("/jobs", json={"preset": "checkerboard"}, headers=key)
        assert again.status_code == 200
        client.post(f"/jobs/{again.json()['id']}/cancel")
        client.post(f"/jobs/{first}/cancel")
        assert client.post("/jobs", json={"preset": "checkerboard"}).status_code == 201


def drawn(preset: str) -> JobSpec:
    config = presets.get(preset)
    return JobSpec("train", config.name, config.to_dict())


@pytest.mark.parametrize("name", ["checkerboard", "checkerboard-async", "game-of-life", "lizard", "heart-persistent"])
def test_predicted_memory_is_what_the_cpu_engine_takes(name: str) -> None:
    """Its buffers, to a factor: the prediction is a bound, and not a wild one."""
    from difflogic.cpu.workspace import SoftWorkspace
    from difflogic.engine.shape import Hyper, Shape
    from difflogic.model.circuit import Circuit
    from difflogic.train import start

    config = presets.get(name)
    circuit = Circuit.initial(config.model, config.seed)
    shape = Shape.training(circuit, config)
    job = start.fresh(config, None).members[0].job
    workspace = SoftWorkspace(circuit, shape, cost.THREADS, Hyper.of(config), config.train.asynchronous, job)
    taken = sum(each.nbytes for each in workspace.buffers if isinstance(each, np.ndarray))
    predicted = cost.cost_of(config, 1).memory
    assert taken <= predicted <= 12 * taken


# what goes out ----------------------------------------------------------------------------------------


@pytest.fixture
def kept(live: Live, client: httpx.Client) -> str:
    """A job with files, some of them not to be had."""
    job = submit(client)
    run = live.store.job_folder(job).run
    run.mkdir(parents=True)
    (run / "summary.txt").write_text("all is well\n")
    (run / ".lock").write_text("")
    (run / "circuit.json.tmp").write_text("half")
    (run / "inside").mkdir()
    (run / "link.txt").symlink_to(live.store.folder / "store.sqlite3")
    return job


@pytest.mark.parametrize(
    "name",
    [
        ".lock", "circuit.json.tmp", "inside", "link.txt", "absent.txt", "..", "../run/summary.txt", "%00",
        "..%2f..%2fstore.sqlite3", "%2e%2e/%2e%2e/store.sqlite3", "..%5c..%5cstore.sqlite3", "%2fetc%2fpasswd",
        "summary.txt%00.png", "/etc/passwd",
    ],
)  # fmt: skip
def test_no_other_file_is_reached(live: Live, kept: str, name: str) -> None:
    status, body = raw(live, f"{API}/jobs/{kept}/files/{name}")
    assert status in (404, 422), body
    assert json.loads(body)["error"]["code"]


def raw(live: Live, path: str) -> tuple[int, bytes]:
    """A path exactly as it is written: other clients make dots disappear."""
    connection = http.client.HTTPConnection(live.address.removeprefix("http://"), timeout=PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {ANN}"})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize("job", ["..", "../..", "A" * 16, "a" * 15, "a" * 17, "%2e%2e", "aaaaaaaaaaaaaaa/", "1" * 16])
def test_what_is_no_id_leads_nowhere(live: Live, job: str) -> None:
    assert raw(live, f"{API}/jobs/{job}/log")[0] in (404, 422)


def test_files_are_had_as_what_they_are(client: httpx.Client, kept: str, live: Live) -> None:
    (live.store.job_folder(kept).run / "page.html").write_text("<script>alert(1)</script>")
    listed = client.get(f"/jobs/{kept}/files").json()["files"]
    assert [each["name"] for each in listed] == ["page.html", "summary.txt"]
    text = client.get(f"/jobs/{kept}/files/summary.txt")
    assert (text.text, text.headers["content-type"]) == ("all is well\n", "text/plain; charset=utf-8")
    page = client.get(f"/jobs/{kept}/files/page.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith("attachment")
    (live.store.job_folder(kept).run / "circuit.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    drawing = client.get(f"/jobs/{kept}/files/circuit.svg")  # it opens, but runs and fetches nothing
    assert drawing.headers["content-disposition"].startswith("inline")
    assert drawing.headers["content-type"] == "image/svg+xml"
    policy = drawing.headers["content-security-policy"]
    assert {"sandbox", "default-src 'none'"} <= set(policy.split("; "))
    assert "script" not in policy
    (live.store.job_folder(kept).run / "circuit.svg").unlink()
    with zipfile.ZipFile(io.BytesIO(client.get(f"/jobs/{kept}/archive").content)) as archive:
        assert archive.namelist() == [f"{kept}/page.html", f"{kept}/summary.txt"]
        assert archive.testzip() is None


def archived(*members: tuple[str, bytes], link: str = "", compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, data)
    return buffer


JOB = "a" * 16


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    file = archived((f"{JOB}/b.txt", b"b"), (f"{JOB}/a.txt", b"a"))
    assert unpack(file, JOB, tmp_path / "new" / "run") == ["a.txt", "b.txt"]
    assert (tmp_path / "new/run/a.txt").read_bytes() == b"a"
    with pytest.raises(UsageError, match="not an empty folder"):
        unpack(file, JOB, tmp_path / "new" / "run")


def test_an_archive_follows_a_link_to_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")
    unpack(archived((f"{JOB}/a.txt", b"a")), JOB, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far/a.txt").read_bytes() == b"a"


@pytest.mark.parametrize(
    "file",
    [
        archived((f"{JOB}/../../evil", b"x")),
        archived((f"{JOB}/ok.txt", b"x"), (f"../{JOB}/evil", b"x")),
        archived(("/etc/evil", b"x")),
        archived((f"{JOB}/inside/evil", b"x")),
        archived((f"{JOB}/.hidden", b"x")),
        archived((f"{JOB}\\evil", b"x")),
        archived((f"{'b' * 16}/evil", b"x")),
        archived((f"{JOB}/link", b"/etc/passwd"), link=f"{JOB}/link"),
        archived((f"{JOB}/", b"")),
        archived((f"{JOB}/bomb", bytes(1 << 20)), compression=zipfile.ZIP_DEFLATED),
        io.BytesIO(b"no zip"),
    ],
)
def test_members_of_an_archive_are_checked_before_anything_is_written(tmp_path: Path, file: io.BytesIO) -> None:
    with pytest.raises(ServiceError, match="nothing was unpacked"):
        unpack(file, JOB, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_with_two_files_of_one_name_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        file = archived((f"{JOB}/a.txt", b"a"), (f"{JOB}/a.txt", b"b"))
    with pytest.raises(ServiceError, match="two files"):
        unpack(file, JOB, tmp_path / "run")


# the whole --------------------------------------------------------------------------------------------


def test_a_failure_inside_is_told_without_its_words(live: Live, client: httpx.Client, monkeypatch, caplog) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a detail of the inside")

    monkeypatch.setattr(live.store, "texts", fail)
    message = error(client.get("/jobs"), 500, "internal")
    assert "detail" not in message
    assert "a detail of the inside" in caplog.text


def test_nothing_is_unpickled_or_evaluated() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib"}
    for file in Path(difflogic.__file__).parent.glob("serve/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not forbidden & {alias.name.split(".")[0] for alias in node.names}, file
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in forbidden, file
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), file


def test_a_follow_up_needs_a_circuit(live: Live, client: httpx.Client) -> None:
    job = submit(client)
    for kind in ("simplify", "evaluate"):
        error(client.post(f"/jobs/{job}/{kind}"), 409, "no_circuit")
    error(client.post(f"/jobs/{job}/export", json={"formats": ["c"]}), 409, "no_circuit")
    error(client.post(f"/jobs/{job}/export", json={"formats": ["exe"]}), 422, "invalid_request")
    follow, _ = live.store.submit("ann", JobSpec("evaluate", "e", source=job))
    error(client.post(f"/jobs/{follow.id}/simplify"), 409, "no_circuit")
