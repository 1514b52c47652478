"""Who may do what: tokens and their files."""

import contextlib
import hmac
import stat
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection
from unittest.mock import Mock

import httpx
import pytest

from difflogic.errors import UsageError
from difflogic.serve.api import settings, tokens
from difflogic.serve.api.server import listen
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.tokens import Tokens
from tests.serve.live import ANN, API, BEN, Live, error, serving, submit


@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {ANN}", "Bearer", f"Bearer {ANN}x", "", "Bearer é"])
def test_request_without_a_token_gets_nothing(live: Live, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode()}
    answer = httpx.get(live.address + API + "/jobs", headers=headers)
    error(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_every_address_but_the_signs_of_life_needs_a_token(live: Live) -> None:
    document = httpx.get(live.address + "/openapi.json").json()
    free = {"/api/v1/health", "/api/v1/ready", "/metrics"}
    for path, operations in document["paths"].items():
        for method in operations:
            if path in free or (path, method) == ("/api/v1/session", "post"):
                continue
            url = live.address + path.replace("{job}", "a" * 16).replace("{name}", "x")
            answer = httpx.request(method, url, params={"ids": "a" * 16} if "compare" in path else {})
            assert answer.status_code == 401, (method, path)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Mock(wraps=hmac.compare_digest)
    monkeypatch.setattr(tokens.hmac, "compare_digest", compare)
    known = Tokens({f"owner{number}": f"a-token-of-{number}-letters" for number in range(5)})
    for token, owner in (("a-token-of-0-letters", "owner0"), ("a-token-of-4-letters", "owner4"), ("", None)):
        compare.reset_mock()
        assert known.owner(token) == owner
        assert compare.call_count == 5  # every one, whichever fits...
        assert {len(each) for call in compare.call_args_list for each in call.args} == {32}  # ...whatever their lengths


def test_two_tokens_do_not_see_each_others_jobs(live: Live, client: httpx.Client) -> None:
    job = submit(client)["id"]
    with live.client(BEN) as other:
        assert other.get("/jobs").json()["jobs"] == []
        for path in ("", "/metrics", "/log", "/gates", "/files", "/files/summary.txt", "/archive", "/events"):
            error(other.get(f"/jobs/{job}{path}"), 404, "no_job")
        for action in ("cancel", "pause", "resume", "retry", "clone", "simplify", "evaluate"):
            error(other.post(f"/jobs/{job}/{action}"), 404, "no_job")
        error(other.post(f"/jobs/{job}/export", json={"formats": ["c"]}), 404, "no_job")
        error(other.patch(f"/jobs/{job}", json={"priority": 9}), 404, "no_job")
        error(other.delete(f"/jobs/{job}"), 404, "no_job")
        error(other.get("/compare", params={"ids": job}), 404, "no_job")
        mine = submit(other)["id"]
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


def test_browsers_revalidate_the_cached_page(live: Live) -> None:
    first = httpx.get(live.address + "/static/main.js")
    assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
    again = httpx.get(live.address + "/static/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"], again.content) == (304, "no-cache", b"")
    assert httpx.get(live.address + API + "/health").headers["cache-control"] == "no-store"


def test_a_server_for_others_needs_a_token_of_the_operators(tmp_path: Path, said, monkeypatch) -> None:
    monkeypatch.delenv("DIFFLOGIC_TOKEN", raising=False)
    assert "DIFFLOGIC_TOKEN" in said("serve", tmp_path, "--host", "0.0.0.0", code=2).err
    assert not (tmp_path / "token").exists()


def test_answers_are_sent_without_delay() -> None:
    """Each in two pieces: without this the second waits for the acknowledgement of the first."""
    with listen("127.0.0.1", 0) as socket, contextlib.closing(create_connection(socket.getsockname())):
        accepted, _ = socket.accept()
        with accepted:
            assert accepted.getsockopt(IPPROTO_TCP, TCP_NODELAY)


def test_this_machine_is_known_from_others() -> None:
    others = ("0.0.0.0", "::", "192.168.1.7", "example.org", "localhost.example.org", "")
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost", *others):
        assert settings.is_loopback(host) == (host not in others), host


def test_a_generated_token_is_its_owners_alone(tmp_path: Path) -> None:
    path = tokens.generated_token(tmp_path)
    made = path.read_bytes()
    assert len(made) == 44
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tokens.generated_token(tmp_path).read_bytes() == made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "got none"),
        ("ann:short", "16 to 200"),
        ("ann\nben", "must be NAME:TOKEN"),
        (f"ann:{ANN}\nann:{BEN}", "unique name"),
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
