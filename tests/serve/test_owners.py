"""Rights of owners: the jobs that they see, priority, quotas, and the end of sessions."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from difflogic.serve.api import usage
from difflogic.serve.api.auth import CSRF_HEADER
from difflogic.serve.api.settings import Caps, ServeSettings
from difflogic.serve.api.tokens import Tokens
from tests.serve.live import ANN, BEN, Live, error, serving
from tests.serve.service import wait

CAS = "cas's-own-secret-token"
TOKENS = f"ann:{ANN}\nben priority:{BEN}\ncas operator:{CAS}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(TOKENS)
    return path


@pytest.fixture
def live(tmp_path: Path, file: Path) -> Iterator[Live]:
    with serving(tmp_path / "store", tokens=Tokens.of_file(file)) as running:
        yield running


def submit(live: Live, token: str, idempotency: str | None = None, **request: object) -> httpx.Response:
    headers = {} if idempotency is None else {"Idempotency-Key": idempotency}
    with live.client(token) as client:
        return client.post("/jobs", json={"preset": "checkerboard", **request}, headers=headers)


def test_operator_sees_and_steers_all_jobs(live: Live) -> None:
    jobs = {token: submit(live, token).json()["id"] for token in (ANN, BEN, CAS)}

    def listed(token: str, **filters: str) -> list[str]:
        with live.client(token) as client:
            return [each["id"] for each in client.get("/jobs", params=filters).json()["jobs"]]

    assert listed(CAS) == [jobs[CAS], jobs[BEN], jobs[ANN]]
    assert listed(CAS, owner="ben") == [jobs[BEN]]
    assert listed(ANN) == listed(ANN, owner="ann") == [jobs[ANN]]
    assert listed(ANN, owner="ben") == []
    with live.client(CAS) as client, client.stream("GET", "/events") as stream:
        assert client.get("/session").json()["roles"] == ["operator"]
        assert client.post(f"/jobs/{jobs[ANN]}/cancel").json()["status"] == "cancelled"
        assert any(line.startswith("data: ") and jobs[ANN] in line for line in stream.iter_lines())
        copy = client.post(f"/jobs/{jobs[ANN]}/clone").json()
        assert copy["owner"] == "ann"  # as all that is made of her jobs
        assert client.get("/compare", params={"ids": f"{jobs[ANN]},{jobs[BEN]}"}).status_code == 200
    job, lease = live.store.claim("w", "cpu", {"auto"}, 60) or pytest.fail("none waits")
    live.store.finish(job.id, lease, "done", saved_progress=1)
    assert job.owner == "ben"
    for token, status in ((ANN, 404), (BEN, 201), (CAS, 201)):
        with live.client(token) as client:
            made = client.post(f"/jobs/{job.id}/simplify")
            assert (made.status_code, made.json().get("owner")) == (status, "ben" if status == 201 else None)
            assert client.post(f"/jobs/{jobs[CAS]}/cancel").status_code == (200 if token == CAS else 404)


def test_owner_above_the_quota_gets_no_job(tmp_path: Path, file: Path, monkeypatch) -> None:
    monkeypatch.setattr(usage, "FRESH_S", 0.0)
    monkeypatch.setattr(usage, "SHARE", 0)
    settings = ServeSettings(caps=Caps(owner_quota=100_000))
    with serving(tmp_path / "store", settings, tokens=Tokens.of_file(file)) as live:
        large = submit(live, ANN, idempotency="once").json()["id"]
        run = live.store.job_folder(large).run
        run.mkdir(parents=True)
        (run / "checkpoint.safetensors").write_bytes(bytes(200_000))
        message = error(submit(live, ANN), 507, "quota")
        assert "The jobs of ann use 0.2 MB, and the quota per owner is 0.1 MB" in message
        assert submit(live, ANN, idempotency="once").json()["id"] == large  # a repeated request gets its job
        assert submit(live, BEN).status_code == 201
        with live.client(ANN) as ann, live.client(CAS) as cas:
            assert ann.post(f"/jobs/{large}/clone").status_code == 507
            assert cas.post(f"/jobs/{large}/clone").status_code == 507  # it would be hers
            (hers,) = ann.get("/owners").json()["owners"]
            assert (hers["owner"], hers["jobs"], hers["quota"]) == ("ann", {"queued": 1}, 100_000)
            assert 200_000 < hers["bytes"] < 220_000
            assert [each["owner"] for each in cas.get("/owners").json()["owners"]] == ["ann", "ben", "cas"]
            ann.post(f"/jobs/{large}/cancel")
            assert ann.delete(f"/jobs/{large}").status_code == 204
        assert submit(live, ANN).status_code == 201


def test_priority_above_0_needs_a_role(live: Live) -> None:
    error(submit(live, ANN, priority=1), 403, "priority")
    assert submit(live, ANN, priority=-3).json()["priority"] == -3
    assert submit(live, BEN, priority=3).json()["priority"] == 3
    assert submit(live, CAS, priority=3).json()["priority"] == 3
    job = submit(live, ANN).json()["id"]
    with live.client(CAS) as operator, live.client(ANN) as ann:
        assert ann.patch(f"/jobs/{job}", json={"priority": 1}).status_code == 403
        assert operator.patch(f"/jobs/{job}", json={"priority": 5}).json()["priority"] == 5
        assert ann.patch(f"/jobs/{job}", json={"name": "hers", "priority": 5}).json()["priority"] == 5
        assert ann.patch(f"/jobs/{job}", json={"priority": 4}).status_code == 403
        assert ann.post(f"/jobs/{job}/clone").json()["priority"] == 0
        assert ann.patch(f"/jobs/{job}", json={"priority": 0}).json()["priority"] == 0


@contextmanager
def signed_in(live: Live) -> Iterator[httpx.Client]:
    with live.client(None) as browser:
        browser.post("/session", json={"token": ANN})
        yield browser


def test_signing_out_ends_the_sessions_streams_and_no_others(live: Live) -> None:
    job = submit(live, ANN).json()["id"]
    with signed_in(live) as browser, signed_in(live) as other:
        csrf = browser.get("/session").json()["csrf"]
        with (
            browser.stream("GET", "/events") as all_jobs,
            browser.stream("GET", f"/jobs/{job}/events") as one_job,
            other.stream("GET", f"/jobs/{job}/events") as stays,
        ):
            lines = [stream.iter_lines() for stream in (all_jobs, one_job, stays)]
            assert [next(each) for each in lines] == ["retry: 1000"] * 3
            assert browser.delete("/session", headers={CSRF_HEADER: csrf}).status_code == 204
            for ended in lines[:2]:
                list(ended)
            with live.client() as ann:
                ann.patch(f"/jobs/{job}", json={"name": "renamed"})
            assert any("renamed" in line for line in lines[2])


def test_a_token_that_is_withdrawn_is_over_without_a_restart(live: Live, file: Path) -> None:
    with (
        live.client(ANN) as ann,
        signed_in(live) as browser,
        ann.stream("GET", "/events") as by_token,
        browser.stream("GET", "/events") as by_cookie,
    ):
        streams = [stream.iter_lines() for stream in (by_token, by_cookie)]
        assert [next(stream) for stream in streams] == ["retry: 1000"] * 2
        file.write_text(TOKENS.replace(ANN, ANN + "-2"))
        assert submit(live, BEN).status_code == 201  # whatever happens next, no event of it reaches her
        assert not any("data:" in line for stream in streams for line in stream)
        assert [each.get("/jobs").status_code for each in (ann, browser)] == [401, 401]
        assert submit(live, ANN + "-2").status_code == 201


def test_the_counters_have_the_queue_and_the_ends(live: Live) -> None:
    def value(name: str, **labels: str) -> float:
        return live.context.telemetry.registry.get_sample_value(f"difflogic_{name}", labels) or 0.0

    assert value("queue_age_seconds") == 0.0
    assert 0 < value("disk_free_bytes") < value("disk_size_bytes")
    job = submit(live, BEN).json()["id"]
    live.store.clock = lambda: time.time() + 1000
    assert 990 < value("queue_age_seconds") < 1100
    with live.client(BEN) as ben:
        ben.post(f"/jobs/{job}/cancel")
        wait(lambda: value("jobs_ended_total", status="cancelled") == 1)
        ben.patch(f"/jobs/{job}", json={"name": "over"})  # a change, and no other end
        other = submit(live, BEN).json()["id"]
        ben.post(f"/jobs/{other}/cancel")
        wait(lambda: value("jobs_ended_total", status="cancelled") == 2)
    assert value("jobs_ended_total", status="failed") == value("queue_age_seconds") == 0.0
