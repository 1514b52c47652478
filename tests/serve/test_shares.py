"""A link opens one job to be read, and nothing else, until it is revoked or over; the store cannot tell it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from difflogic.serve.api.tokens import Tokens
from difflogic.serve.store.access import MOST_SHARES
from tests.serve.live import ANN, BEN, Live, serving
from tests.serve.service import wait


@pytest.fixture
def ann(live: Live) -> Iterator[httpx.Client]:
    with live.client() as client:
        yield client


@pytest.fixture
def job(live: Live, ann: httpx.Client) -> str:
    made = str(ann.post("/jobs", json={"preset": "checkerboard", "engine": "cpu"}).json()["id"])
    run = live.store.job_folder(made).run
    run.mkdir(parents=True)
    (run / "rollout.gif").write_bytes(b"GIF89a")
    live.store.job_folder(made).gates.write_text('{"epoch": 1, "layers": []}\n')
    return made


def share(ann: httpx.Client, job: str, **asked: object) -> dict:
    answer = ann.post(f"/jobs/{job}/shares", json=asked)
    assert answer.status_code == 201, answer.text
    return answer.json()


READABLE = ("", "/metrics", "/log", "/gates", "/files", "/files/rollout.gif", "/archive", "/events")


def statuses(client: httpx.Client, job: str) -> dict[str, int]:
    found = {}
    for path in READABLE:
        with client.stream("GET", f"/jobs/{job}{path}") as answer:
            found[path] = answer.status_code
    return found


@pytest.mark.parametrize("way", ["header", "cookie", "cookie beside a session of somebody else"])
def test_a_link_opens_its_job_and_nothing_else(live: Live, ann: httpx.Client, job: str, way: str) -> None:
    token = share(ann, job)["token"]
    other = ann.post("/jobs", json={"preset": "checkerboard"}).json()["id"]
    bens = live.store.submit("ben", live.store.job(job).spec())[0].id
    with live.client(token if way == "header" else None) as visitor:
        if way != "header":
            if "session" in way:
                visitor.post("/session", json={"token": BEN})
            assert visitor.post("/session/link", json={"token": token}).json() == {"job": job}
        assert set(statuses(visitor, job).values()) == {200}
        for foreign in (other, "a" * 16):
            assert set(statuses(visitor, foreign).values()) == ({404} if way != "cookie" else {401})
        assert visitor.get(f"/jobs/{bens}").status_code == (
            200 if "session" in way else 404 if way == "header" else 401
        )
        if "session" in way:
            return
        refused = 403 if way == "header" else 401
        for path in (
            "/jobs",
            "/events",
            "/devices",
            "/session",
            f"/jobs/{job}/shares",
            f"/compare?ids={job}",
            "/queue",
        ):
            assert visitor.get(path).status_code == refused, path
        for path in (f"/jobs/{job}/cancel", f"/jobs/{job}/clone", f"/jobs/{job}/shares", "/jobs"):
            assert visitor.post(path, json={}).status_code == refused, path
        assert visitor.patch(f"/jobs/{job}", json={"name": "mine"}).status_code == refused
        assert visitor.delete(f"/jobs/{job}").status_code == refused
        assert visitor.get("/remote/workers/x").status_code in (404, 405)


def test_what_is_revoked_is_over_and_so_are_its_streams(live: Live, ann: httpx.Client, job: str) -> None:
    kept, gone = share(ann, job, label="kept"), share(ann, job, label="gone", days=None)
    listed = ann.get(f"/jobs/{job}/shares").json()["shares"]
    assert [(each["label"], each["expires"] is None) for each in listed] == [("kept", False), ("gone", True)]
    assert "token" not in listed[0]
    with live.client(gone["token"]) as visitor, visitor.stream("GET", f"/jobs/{job}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        assert ann.delete(f"/jobs/{job}/shares/{gone['share']['id']}").status_code == 204
        for _ in lines:  # it ends
            pass
        assert visitor.get(f"/jobs/{job}").status_code == 401
    with live.client(kept["token"]) as visitor:
        assert visitor.get(f"/jobs/{job}").status_code == 200
    assert ann.delete(f"/jobs/{job}/shares/{gone['share']['id']}").json()["error"]["code"] == "no_share"
    with live.client(BEN) as ben:
        for method, path in (("GET", ""), ("POST", ""), ("DELETE", f"/{kept['share']['id']}")):
            assert ben.request(method, f"/jobs/{job}/shares{path}").status_code == 404


def test_it_ends_with_its_time_its_job_and_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"ann:{ANN}\nben:{BEN}\n")
    with serving(tmp_path / "store", tokens=Tokens.of_file(file)) as live, live.client() as ann:
        jobs = [ann.post("/jobs", json={"preset": "checkerboard"}).json()["id"] for _ in range(3)]
        tokens = [share(ann, job, days=days)["token"] for job, days in zip(jobs, (1, 2, None), strict=True)]

        def opened(token: str, job: str) -> int:
            with live.client(token) as visitor:
                return visitor.get(f"/jobs/{job}").status_code

        assert [opened(*each) for each in zip(tokens, jobs, strict=True)] == [200] * 3
        real = live.store.clock
        live.store.clock = lambda: real() + 1.5 * 24 * 3600
        assert [opened(*each) for each in zip(tokens, jobs, strict=True)] == [401, 200, 200]
        assert ann.get(f"/jobs/{jobs[0]}/shares").json()["shares"] == []
        live.store.ask(jobs[1], "cancel")
        ann.delete(f"/jobs/{jobs[1]}")
        assert opened(tokens[1], jobs[1]) == 401
        file.write_text(f"ben:{BEN}\n")
        assert opened(tokens[2], jobs[2]) == 401


def test_the_store_has_no_token_and_forgeries_are_guesses(live: Live, ann: httpx.Client, job: str, caplog) -> None:
    made = share(ann, job)
    secret = made["token"].rpartition("_")[2]
    with live.client(made["token"]) as visitor:
        visitor.get(f"/jobs/{job}")
    kept = b"".join(path.read_bytes() for path in live.store.folder.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert secret not in caplog.text
    for forged in (made["token"][:-1] + "~", made["token"] + "A", f"share_{made['share']['id']}_{'A' * 43}"):
        with live.client(forged) as visitor:
            assert visitor.get(f"/jobs/{job}").status_code == 401
    with live.client(None) as visitor:
        refused = visitor.post("/session/link", json={"token": f"share_{made['share']['id']}_{'A' * 43}"})
        assert (refused.status_code, "difflogic_share" in str(refused.headers)) == (401, False)
    for _ in range(MOST_SHARES - 1):
        share(ann, job)
    assert ann.post(f"/jobs/{job}/shares").status_code == 409


def test_a_reader_does_not_learn_where_its_end_is_told(live: Live, ann: httpx.Client, job: str) -> None:
    live.store.edit(job, webhook="https://hooks.example.org/a-secret-path")
    with live.client(share(ann, job)["token"]) as visitor:
        assert visitor.get(f"/jobs/{job}").json()["webhook"] is None
        with visitor.stream("GET", f"/jobs/{job}/events") as stream:
            lines = stream.iter_lines()
            line = next(each for each in lines if each.startswith("data: "))
            live.store.edit(job, name="another name")
            later = next(each for each in lines if "another name" in each)
    assert "a-secret-path" not in line + later
    assert "a-secret-path" in ann.get(f"/jobs/{job}").text
    wait(lambda: live.context.feed.listeners == 0)
