"""The command line's client against a real server with a real worker, in processes of their own."""

import io
import json
import os
import platform
import re
import signal
import stat
import struct
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from benchmarks.service.servers import Served
from difflogic.cli import main as cli
from difflogic.cli.screen.following import follow
from difflogic.engine.api import EpochMetrics
from difflogic.runs import attempts
from difflogic.runs.journal import Row
from difflogic.serve import client as clients
from difflogic.serve import local
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.words import reply_of
from difflogic.serve.client import SERVER, TOKEN, Client, ServerEvent
from tests.sampled import exhaustive
from tests.serve.live import ANN, serving
from tests.serve.service import by_hand, wait
from tests.serve.test_agents import small
from tests.serve.test_restarts import flat
from tests.train.tiny import assert_same_run, tiny_config

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`difflogic serve`, with one worker."""
    with Served(tmp_path_factory.mktemp("service") / "jobs", token=ANN).running() as served:
        yield served
    assert served.process.returncode == 0


@pytest.fixture
def here(service: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of one's own, with the server in the environment."""
    monkeypatch.setenv(SERVER, service.address)
    monkeypatch.setenv(TOKEN, ANN)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(tiny_config().to_toml())
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    capsys.readouterr()
    status = cli.main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    assert status == code, out + err
    return out if code == 0 else out + err


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call(capsys, "jobs", *options, "--json").splitlines()]


def test_a_job_from_submit_to_fetch(here: Path, capsys) -> None:
    text = call(capsys, "submit", "--config", "tiny.toml", "--engine", "cpu", "--name", "first", "--watch")
    assert "tiny: 54 soft gates, 6x5 grid" in text
    assert "Epoch   12: soft loss " in text
    assert re.search(r"Not solved: \d+ wrong cells on all 4 evaluation grids \(epoch \d+\)", text)
    [job] = listed(capsys, "--search", "first")
    assert (job["status"], job["progress"], job["name"]) == ("done", 12, "first")
    assert job["id"] in call(capsys, "jobs", "--kind", "train")
    assert "epoch 12" in call(capsys, "logs", job["id"])
    call(capsys, "fetch", job["id"], "got")
    assert_same_run(here / "got", by_hand(tiny_config(), here / "alone"))
    assert "Expected an empty or new folder" in call(capsys, "fetch", job["id"], "got", code=2)
    assert "Cannot cancel the job" in call(capsys, "cancel", job["id"], code=1)
    assert call(capsys, "watch", job["id"]).count("soft loss") == 4


@pytest.mark.exhaustive
def test_commands_steer_jobs(here: Path, capsys, monkeypatch) -> None:
    job = call(capsys, "submit", "--config", "tiny.toml", "--engine", "cpu", "--name", "acted on").strip()
    call(capsys, "watch", job)
    assert "is called a board." in call(capsys, "jobs", "rename", job, "a board")
    assert "has the tag the paper." in call(capsys, "jobs", "tag", "the paper", job)
    assert job in call(capsys, "jobs", "--tag", "the paper")
    assert "has no tag the paper." in call(capsys, "jobs", "untag", "the paper", job)
    assert "No jobs match." in call(capsys, "jobs", "--tag", "the paper")
    assert "has the priority -5." in call(capsys, "jobs", "priority", job, "--", -5)
    [now] = listed(capsys, "--search", "a board")
    assert (now["id"], now["priority"]) == (job, -5)
    text = call(capsys, "jobs", "export", job, "--format", "json", "--watch")
    assert "a_board.json" in text
    assert "--format must be one or more of c, " in call(capsys, "jobs", "export", job, "--format", "cat", code=2)
    assert "proved equal." in call(capsys, "jobs", "simplify", job, "--task", "--watch")
    for more, words in (((), " requires --from-start"), (("--from-start", "--task"), " and --task cannot be used")):
        assert f"--size{words}" in call(capsys, "jobs", "simplify", job, "--size", "8x9", *more, code=2)
    assert "robustness: " in call(capsys, "jobs", "evaluate", job, "--quick", "--watch")
    text = call(capsys, "jobs", "harden", job, "--epochs", 3, "--watch")
    assert "of 3 epochs" in text or "Epoch    3:" in text
    hardened = next(each for each in listed(capsys) if each["source"] == job)
    assert (hardened["kind"], hardened["options"], hardened["goal"]) == ("train", {"decide": True}, 3)
    assert hardened["config"]["hardening"]["share"] == 1
    assert "only failed or cancelled jobs can be retried" in call(capsys, "jobs", "retry", job, code=1)
    copy = call(capsys, "submit", "--config", "tiny.toml", "--engine", "gpu:9").strip()
    other = call(capsys, "jobs", "clone", copy).strip()
    for action, words in (("pause", "is paused."), ("resume", "is queued again."), ("pause", "is paused.")):
        assert f"{other} {words}" in call(capsys, "jobs", action, other)
    assert "is cancelled." in call(capsys, "cancel", copy, other)
    assert "is queued again." in call(capsys, "jobs", "retry", other)
    call(capsys, "cancel", other)
    assert "Unknown job" in call(capsys, "jobs", "delete", copy, "a" * 16, "--yes", code=1)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert "Nothing was deleted" in call(capsys, "jobs", "delete", copy, code=2)
    assert f"{other} is deleted." in call(capsys, "jobs", "delete", copy, other, "--yes")
    assert copy not in call(capsys, "jobs")


def test_a_job_that_no_worker_takes_says_so(here: Path, capsys) -> None:
    words = "No worker offers the engine gpu: the workers offer auto, cpu, reference."
    job = call(capsys, "submit", "--config", "tiny.toml", "--gpu").strip()
    assert f"{job} is waiting: {words}" in call(capsys, "jobs")

    def cancel_once_watched() -> None:
        wait(lambda: "difflogic_event_streams 1.0" in httpx.get(os.environ[SERVER] + "/metrics").text, "the watcher")
        with Client.from_environment() as client:
            client.steer(job, "cancel")

    leaving = threading.Thread(target=cancel_once_watched)
    leaving.start()
    text = call(capsys, "watch", job, code=1)
    leaving.join()
    assert text.count(words) == 1
    assert f"{job} is cancelled" in text
    assert words not in call(capsys, "jobs")


def test_population_is_reported_as_one_job(here: Path, capsys) -> None:
    text = call(capsys, "submit", "--config", "tiny.toml", "--engine", "cpu", "--population", 2, "--watch")
    assert "seeds 23 to 24" in text
    assert "in the median, solved 0 of 2" in text
    assert "0 of 2" in call(capsys, "jobs", "--limit", 1)


def test_a_job_is_cancelled(here: Path, capsys) -> None:
    job = call(capsys, "submit", "--config", "tiny.toml", "--engine", "cpu", "--epochs", 1_000_000).strip()
    running = ["jobs", "--status", "running", "--json"]
    wait(lambda: job in call(capsys, *running), "the job to run")
    assert "will stop after it has saved a checkpoint" in call(capsys, "cancel", job)
    text = call(capsys, "watch", job, "--json", code=1)
    events = [json.loads(line) for line in text.splitlines()]
    assert [each["event"] for each in events][-1] == "end"
    assert events[-1]["end"] == {"status": "cancelled"}
    assert f"{job} is cancelled" in call(capsys, "watch", job, code=1)


def test_ctrl_c_detaches_and_the_job_goes_on(service: Served, here: Path, capsys, monkeypatch) -> None:
    real = Client.events

    def interrupted(self: Client, *arguments: object):
        yield next(real(self, *arguments))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Client, "events", interrupted)
    text = call(capsys, "submit", "--config", "tiny.toml", "--engine", "cpu", "--watch", code=130)
    assert "Detached: the job continues" in text
    job = text.split()[-1]
    monkeypatch.setattr(Client, "events", real)
    with Client(service.address, ANN) as client:
        wait(lambda: client.job(job)["status"] == "done", "the job to end")


def test_server_prints_link_and_commands_find_its_token(tmp_path: Path, capsys, monkeypatch) -> None:
    served = Served(tmp_path / "jobs", token="")
    monkeypatch.setenv(SERVER, served.address)
    monkeypatch.delenv(TOKEN, raising=False)
    file = tmp_path / "own.log"
    served.start("--log", str(file))
    job = call(capsys, "submit", "checkerboard").strip()
    assert job in call(capsys, "jobs")
    token = (served.folder / "token").read_text().strip()
    assert served.screen.read_text() == f"Serving {served.folder} at {served.address}/#token={token}\n"
    assert (stat.S_IMODE(file.stat().st_mode), served.log.read_text()) == (0o600, "")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert f"{clients.API}/jobs" in [line.get("path") for line in lines]
    assert token not in file.read_text() + local.SERVERS.path.read_text()
    served.end(signal.SIGKILL)  # any other program may have its port now
    assert "set DIFFLOGIC_TOKEN" in call(capsys, "jobs", code=2)


def test_commands_find_servers_of_the_user(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(SERVER, raising=False)
    monkeypatch.setenv(TOKEN, ANN)
    monkeypatch.setattr(clients, "WAITS_S", (0.0, 0.0, 0.0))
    with serving(tmp_path / "store") as live:
        port = int(live.address.rpartition(":")[2])
        with local.findable(ServeSettings(host="0.0.0.0"), port, None):
            assert "There are no jobs yet." in call(capsys, "jobs")
            local.SERVERS.write("1", {"address": "http://127.0.0.1:1", "host": platform.node()})  # killed: no lock
            assert "There are no jobs yet." in call(capsys, "jobs")
            with local.findable(ServeSettings(), 2, None):
                text = call(capsys, "jobs", code=2)
                assert f"Several servers are running, http://127.0.0.1:2, {live.address}: set" in text
            local.SERVERS.path.chmod(0o666)
            assert local.running_server() is None, "anybody may have written it"
        assert local.running_server() is None


@pytest.mark.parametrize(
    ("server", "token", "words"),
    [
        ("", "", "set DIFFLOGIC_TOKEN"),
        ("", "has\nlines", "visible ASCII"),
        *((server, ANN, "must be an address") for server in ("lab:8765", "ftp://lab", "http://lab/path?query")),
        (f"http://ann:{ANN}@lab", ANN, "must not contain a user name or password"),
    ],
)
def test_an_environment_that_will_not_do(capsys, monkeypatch, tmp_path, server: str, token: str, words: str) -> None:
    monkeypatch.setenv(TOKEN, token)
    monkeypatch.setenv(SERVER, server)
    if not server:
        monkeypatch.delenv(SERVER)
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))  # without the servers that run here
    text = call(capsys, "jobs", code=2)
    assert words in text
    assert ANN not in text


def test_refusals_of_the_server_are_shown(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(clients, "WAITS_S", (0.0, 0.0, 0.0))
    with serving(tmp_path, ServeSettings()) as live:
        monkeypatch.setenv(SERVER, live.address)
        monkeypatch.setenv(TOKEN, "a-token-of-somebody-else")
        assert "Unknown token: use one of the server's tokens." in call(capsys, "jobs", code=1)
        monkeypatch.setenv(TOKEN, ANN)
        assert "There are no jobs yet." in call(capsys, "jobs")
        text = call(capsys, "submit", "lizard", "--epochs", 2_000_000, code=1)
        assert "Expected at most 1000000 epochs on this server" in text
        assert "Nothing to train" in call(capsys, "submit", code=2)
        assert "did you mean lizard?" in call(capsys, "submit", "lizzard", code=2)
        kept = ("--set", "pool.starts=ab", "--set", "pool.size=4096")
        assert "(pool.starts), whose file a server does not" in call(capsys, "submit", "checkerboard", *kept, code=2)
        assert "Unknown job" in call(capsys, "watch", "a" * 16, code=1)
        for wrong in ("../jobs", "a", "A" * 16):
            assert "Expected a job id, got" in call(capsys, "logs", wrong, code=2)
        job = call(capsys, "submit", "lizard", "--priority", 5).strip()
        assert "is cancelled." in call(capsys, "cancel", job)
        call(capsys, "fetch", job, tmp_path / "empty")
        assert list((tmp_path / "empty").iterdir()) == []
    assert "Cannot reach the server" in call(capsys, "jobs", code=1)


def test_a_submission_whose_answer_is_lost_is_one_job(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(clients, "WAITS_S", (0.0, 0.0, 0.0))
    with serving(tmp_path) as live, Client(live.address, ANN) as client:
        real, tries = client._http.request, []

        def lossy(*arguments: object, **options: object) -> httpx.Response:
            answer = real(*arguments, **options)  # type: ignore[arg-type]
            tries.append(answer)
            if len(tries) < 3:
                raise httpx.ReadError("the line went dead")
            return answer

        monkeypatch.setattr(client._http, "request", lossy)
        job = client.submit({"preset": "lizard"})
        assert [answer.status_code for answer in tries] == [201, 200, 200]
        assert [each.id for each in live.store.jobs()] == [job["id"]]


def test_lists_go_on_over_pages(tmp_path: Path) -> None:
    with serving(tmp_path) as live, Client(live.address, ANN) as client:
        for number in range(5):
            client.submit({"preset": "lizard", "name": f"job {number}"})
        assert [job["name"] for job in client.jobs(limit=2)] == [f"job {number}" for number in range(4, -1, -1)]


ID, REAL = "a" * 16, httpx.Client


def zipped(version: int = 20, flags: int = 0, compression: int = 0) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{ID}/x", "x")
    return made.getvalue().replace(struct.pack("<3H", 20, 0, 0), struct.pack("<3H", version, flags, compression))


FOREIGN = [(200, b"<html>Sign in</html>", "text/html"), (200, b"", ""), (302, b"", ""), (502, b"<html>", "text/html"),
           (400, b'{"error": {"message": [1]}}', "application/json"), (200, zipped(flags=1), "application/zip"),
           (200, zipped(version=99), "application/zip"), (200, zipped(compression=99), "application/zip"),
           (200, zipped()[:-9], "application/zip")]  # fmt: skip
FOREIGN += [(200, text, "application/json") for text in (b"[1,2,3]", b"null", b"{}", b"\xff", b"[" * 9999, b'{"id":1}',
                                                         b'{"jobs":[{}],"next":null}', b'{"text":1}')]  # fmt: skip
ACTIONS = [["submit", "checkerboard"], ["jobs"], ["watch", ID], ["logs", ID], ["cancel", ID], ["fetch", ID, "got"],
           ["jobs", "clone", ID], ["jobs", "delete", "--yes", ID], ["jobs", "tag", "new", ID]]  # fmt: skip


def answer_all(monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx.Request], httpx.Response]) -> None:
    monkeypatch.setattr(httpx, "Client", partial(REAL, transport=httpx.MockTransport(answer)))


@pytest.mark.parametrize("action", [*exhaustive(*((each,) for each in ACTIONS[1:])), ACTIONS[0]], ids=" ".join)
def test_foreign_server_is_one_sentence(action: list[str], capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(clients, "WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.setenv(TOKEN, ANN)
    monkeypatch.chdir(tmp_path)
    for status, content, kind in FOREIGN:
        answer_all(monkeypatch, lambda _: httpx.Response(status, content=content, headers={"content-type": kind}))  # noqa: B023
        text = call(capsys, *action, code=1)
        assert text.startswith("Error: The "), (text, content[:30])
        assert text.count("\n") == 1


def test_foreign_page_is_no_file_stream_or_deletion(monkeypatch) -> None:
    answer_all(monkeypatch, lambda _: httpx.Response(200, html="<html>"))
    client = Client("http://lab", ANN)
    for ask in (client.delete, lambda job: client.text(job, "summary.txt"), lambda job: list(client.events(job))):
        with pytest.raises(clients.ServiceError, match="is not from a difflogic server"):
            ask(ID)


@pytest.mark.parametrize("data", ["{", "[1]", '[{"epoch": 1}]', '[{"steps": 1, "mean_return": 1.0, "score": null}]',
                                  '[{"epoch": 1, "soft_loss": 1.0, "odd": 2}]'])  # fmt: skip
def test_foreign_events_are_one_sentence(data: str, store, spec, capsys, monkeypatch) -> None:
    job = json.dumps(reply_of(store.submit("ann", spec)[0]))

    def answer(request: httpx.Request) -> httpx.Response:
        events = {"content-type": "text/event-stream"} if "events" in request.url.path else {}
        return httpx.Response(200, text=f"event: rows\ndata: {data}\n\n" if events else job, headers=events)

    monkeypatch.setenv(TOKEN, ANN)
    answer_all(monkeypatch, answer)
    assert call(capsys, "watch", ID, code=1).startswith("Error: The ")


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch) -> None:
    using_it = ("difflogic.serve.client", "difflogic.cli.screen.following")
    for name in [each for each in sys.modules if each.startswith(using_it)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    text = call(capsys, "jobs", code=1)
    advice = 'install it with pip install ".[serve]" in the source folder of difflogic.'
    assert text == f"Error: `difflogic jobs` requires httpx, part of the extra `serve`: {advice}\n"


def test_attempts_are_shown(here: Path, capsys) -> None:
    (here / "flat.toml").write_text(flat(1000).to_toml())
    text = call(capsys, "submit", "--config", "flat.toml", "--engine", "cpu", "--name", "again", "--restarts", "1",
                "--watch")  # fmt: skip
    # Whichever attempts were over before the watching began: of each it is said what came of it.
    ends = ["Attempt 1: given up at epoch 200 with 14 wrong cells, seed 23: its soft loss hardly fell",
            "Attempt 2: complete at epoch 800 with 14 wrong cells"]  # fmt: skip
    assert all(words in text for words in ends)
    assert text.count("Not solved: ") == 1
    assert [text.count(words) for words in ends] == [1, 1]
    table = call(capsys, "jobs", "--search", "again")
    assert "attempt 1, the best of 2, 200 of 1,000 epochs" in table
    assert "not solved" in table
    [job] = listed(capsys, "--search", "again")
    again = call(capsys, "watch", job["id"])
    assert "Attempt 1 of at most 2, seed 23." in again
    assert [again.count(words) for words in ends] == [1, 1]
    assert again.count("Epoch  200:") == 1
    assert "Epoch  800:" not in again


def test_until_it_is_solved_or_its_limit_ends_it(here: Path, capsys) -> None:
    (here / "flat.toml").write_text(flat(1000).to_toml())
    text = call(capsys, "submit", "--config", "flat.toml", "--engine", "cpu", "--until-solved", "--within",
                "500 epochs", "--watch", code=1)  # fmt: skip
    assert "\nNot solved within 500 epochs: the best circuit has 14 wrong cells of 30.\n" in text
    assert "Not solved: " not in text
    assert "Attempt 3: complete at epoch 100 with 14 wrong cells" in text


@pytest.mark.parametrize("seen", [{1, 2, 3}, {2, 3}, {1, 3}, {3}])
def test_attempts_are_reported_as_they_come(capsys, seen: set[int]) -> None:
    """Whichever states of the job the stream had: none of its attempts is missed, and the one under way is told."""
    config = flat(1000)
    made = [attempts.Attempt(1, 3, 23, 1000, "", "given up", 200, 14, "it is flat"),
            attempts.Attempt(2, 3, 24, 800, "", "given up", 300, 14, "it is flat"),
            attempts.Attempt(3, 3, 25, 500, "", "complete", 500, 14)]  # fmt: skip
    job = {"id": "a" * 16, "name": "again", "kind": "train", "lost_tries": 0, "reason": None, "waits_for": None,
           "config": config.to_dict(), "device": "cpu", "request": {"restarts": 2},
           "hard_loss": 14, "solved": 0, "compared": 480,
           "words": {"outcome": "unsolved", "state": "Not solved", "remark": "Not solved.", "results": []}}  # fmt: skip

    def state(status: str, attempt: int, epoch: int, results: list[attempts.Attempt]) -> dict[str, object]:
        given = {"status": status, "attempt": attempt, "progress": epoch, "goal": made[attempt - 1].epochs}
        return {**job, **given, "result": {"attempts": [asdict(each) for each in results]}}

    def during(number: int) -> list[ServerEvent]:
        under_way = attempts.Attempt(number, 3, 22 + number, made[number - 1].epochs, "")
        states = state("running", number, 1, [*made[: number - 1], under_way])
        row = {**Row.of(EpochMetrics(made[number - 1].epoch, 1.0), 0.1).to_dict(), "seed": 22 + number}
        return [ServerEvent("job", states), ServerEvent("rows", [row])]

    over = state("done", 1, 200, made)
    events = [event for number in sorted(seen) for event in during(number)]

    events += [ServerEvent("job", over), ServerEvent("rows", []), ServerEvent("end", {})]
    client = Mock(spec=Client, server="http://lab")
    client.job.return_value, client.text.return_value = events[0].data, "summary"
    client.events.return_value = iter(events)
    assert follow(client, "a" * 16, as_json=False) == 0
    live, recap = capsys.readouterr().out.split("summary")
    ends = ["Attempt 1: given up at epoch 200", "Attempt 2: given up at epoch 300", "Attempt 3: complete at epoch 500"]
    assert [live.count(words) for words in ends] == [1, 1, 0]
    assert [recap.count(words) for words in ends] == [0, 0, 1], "each end is printed once"
    begun = {each.number for each in made if f"Attempt {each.number} of at most 3, seed " in live}
    assert begun == seen
    assert {each.number for each in made if f"Epoch {each.epoch:4}:" in live} == seen


@pytest.mark.exhaustive
def test_agents_are_submitted_and_watched(here: Path, capsys) -> None:
    (here / "agents.toml").write_text(small().to_toml())
    text = call(capsys, "submit", "--config", "agents.toml", "--engine", "cpu", "--seed", 4, "--watch")
    assert "cartpole: CartPole-v1, 7 thresholds a number, layers of 8, 8 gates" in text
    assert text.count("mean return") == 5  # four evaluations, and the summary
    assert "Solved: mean return " in text
    [job] = listed(capsys, "--search", "cartpole")
    assert (job["status"], job["progress"], job["config"]["seed"], job["solved"]) == ("done", 2048, 4, 1)
    call(capsys, "fetch", job["id"], "got")
    assert "Agent:       logic, 7 thresholds a number, layers of 8, 8 gates" in call(capsys, "show", "got")
    text = call(capsys, "submit", "cartpole", "--epochs", 5, code=2)
    assert "--epochs is for automata, but this trains agents" in text
