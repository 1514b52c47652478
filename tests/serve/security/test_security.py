"""Headers of all answers, and secrets that are never written."""

import ast
import io
import json
from pathlib import Path

import httpx
import pytest

import difflogic
from difflogic.serve import log
from difflogic.serve.api import middleware
from difflogic.serve.api.auth import COOKIE, CSRF_HEADER
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.store.jobs import JobSpec
from tests.serve.live import ANN, API, Live, error, serving, submit


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


def test_no_secret_is_in_the_log(live: Live) -> None:
    stream = io.StringIO()
    log.set_up(stream)
    with live.client(None) as browser:
        browser.post("/session", json={"token": ANN})
        cookie = browser.cookies[COOKIE]
        csrf = browser.get("/session").json()["csrf"]
        browser.get("/jobs", params={"q": ANN})
        browser.get("/jobs", headers={"Authorization": "Bearer a-wrong-but-secret-token"})
        browser.post("/session", json={"token": ANN * 20})
        browser.post("/jobs", json={"preset": "nowhere"}, headers={CSRF_HEADER: csrf})
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
    error(httpx.get(live.address + "/metrics", headers={"X-Forwarded-For": "10.1.1.1"}), 401, "unauthorized")
    with serving(tmp_path, ServeSettings(host="0.0.0.0")) as other:
        error(httpx.get(other.address + "/metrics"), 401, "unauthorized")
        with other.client() as known:
            assert known.get(other.address + "/metrics").status_code == 200


def test_internal_error_hides_its_message(live: Live, client: httpx.Client, monkeypatch, caplog) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a detail of the inside")

    monkeypatch.setattr(live.store, "jobs", fail)
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
    job = submit(client)["id"]
    for kind in ("simplify", "evaluate"):
        error(client.post(f"/jobs/{job}/{kind}"), 409, "no_circuit")
    error(client.post(f"/jobs/{job}/export", json={"formats": ["c"]}), 409, "no_circuit")
    error(client.post(f"/jobs/{job}/export", json={"formats": ["exe"]}), 422, "invalid_request")
    follow, _ = live.store.submit("ann", JobSpec("evaluate", "e", source=job))
    error(client.post(f"/jobs/{follow.id}/simplify"), 409, "no_circuit")
