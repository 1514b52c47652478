"""The interface: what it lists, changes and tells, beside who may (security) and events (test_events)."""

import json
from collections.abc import Iterator

import httpx
import pytest

from difflogic.config import presets, recipes
from difflogic.config.agent_presets import PRESETS as AGENTS
from difflogic.config.harden import hardening
from difflogic.config.schema import Config
from tests.serve.live import BEN, Live, error, serving, shared, submit
from tests.serve.test_events import Training

live = shared()


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    for job in live.store.jobs(limit=1000):
        if job.status in ("queued", "paused"):
            live.store.ask(job.id, "cancel")
        live.store.delete(job.id)
    with live.client() as made:
        yield made


def test_submission_stores_the_request(client):
    job = submit(client, name="mine", recipe="paper", set={"optimizer.lr": 0.5, "seed": 7}, engine="cpu", population=3,
                 stop_when_solved=2, priority=-3)  # fmt: skip
    assert job["config"] == presets.checkerboard().with_(optimizer={"lr": 0.5}, seed=7).to_dict()
    fields = ("name", "status", "engine", "priority", "goal", "kind", "owner")
    assert [job[name] for name in fields] == ["mine", "queued", "cpu", -3, 500, "train", "ann"]
    assert job["request"] == {"population": 3, "stop_when_solved": 2}
    assert client.get(f"/jobs/{job['id']}").json() == job


def test_a_configuration_of_ones_own(client):
    config = presets.lizard().with_(name="own", train={"epochs": 7}).to_dict()
    job = submit(client, preset=None, config=config, rule=None)
    assert (job["name"], job["goal"], job["config"]) == ("own", 7, config)
    answer = client.post("/jobs", json={"config": {**config, "colour": "red"}})
    assert error(answer, 422, "invalid_request").startswith("Unknown field colour")


def test_a_recipe_and_fields_over_it(client):
    request = {"recipe": "robust", "set": {"optimizer.lr": 0.5, "train.epochs": 1000}}
    job = submit(client, **request)
    wanted = recipes.applied("robust", presets.checkerboard().with_(train={"epochs": 1000}))
    assert job["config"] == wanted.with_(optimizer={"lr": 0.5}).to_dict()
    changed = client.post("/jobs/preview", json={"preset": "checkerboard", **request}).json()["changed"]
    assert changed["hardening.share"] == 0.8
    assert not {"optimizer.lr", "train.epochs", "task.steps"} & changed.keys()
    offered = {each["name"]: each["recipes"] for each in client.get("/presets").json()["presets"]}
    assert offered["checkerboard"] == offered["heart-steady"] == ["robust", "paper"]


def test_a_rule_as_a_table(client):
    digits = "".join(str(number % 3 & 1) for number in range(512))

    def send(table: bytes, **request: object) -> httpx.Response:
        form = {"job": json.dumps({"preset": "game-of-life", **request})}
        return client.post("/jobs", data=form, files={"rule_table": ("rule.txt", table)})

    job = send(f"{digits[:256]}\n{digits[256:]}".encode()).json()
    assert job["config"]["task"]["rule"] == f"{int(digits, 2):0128x}"
    told = error(send(b"no table"), 422, "invalid_config")
    assert told.startswith("The file rule_table is not a rule table: expected 512 digits")
    told = error(send(digits.encode(), rule="B3/S23"), 422, "invalid_config")
    assert told == "There can be only one target: give `rule` or `rule_table` alone."


def test_restarts_end_with_the_first_solved(client):
    job = submit(client, restarts=3)
    assert (job["request"], job["attempt"]) == ({"restarts": 3, "stop_when_solved": 1}, 0)
    assert client.post(f"/jobs/{job['id']}/clone").json()["request"] == job["request"]
    assert submit(client, restarts=1, population=2, stop_when_solved=2)["request"]["stop_when_solved"] == 2
    for wrong, code, words in (
        ({"restarts": 9, "recipe": "paper"}, "invalid_config", "must be at most 4"),
        ({"restarts": 1, "init_from": job["id"]}, "invalid_request", "Omit one"),
    ):
        answer = client.post("/jobs/preview", json={"preset": "checkerboard", **wrong})
        assert words in error(answer, 422, code)


def test_start_grids_of_a_file_are_refused(client):
    """The job would fail hours later, when a worker took it."""
    kept = {"pool.starts": "ab", "pool.size": 4096}
    answer = client.post("/jobs", json={"preset": "checkerboard", "set": kept})
    assert "(pool.starts), whose file a server does not receive" in error(answer, 422, "invalid_config")


def test_a_recipe_brings_its_restarts(client):
    for given, restarts in (({}, 21), ({"restarts": 0}, 0), ({"recipe": "paper"}, None), ({"population": 2}, 0)):
        request = {"preset": "checkerboard", "recipe": "robust", **given}
        seen = client.post("/jobs/preview", json=request).json()
        assert (seen["request"].get("restarts"), seen["notices"]) == (restarts, []), given
        assert submit(client, **request)["request"] == seen["request"]


def test_until_solved_ends_within_the_limits_of_the_server(client):
    job = submit(client, recipe="robust", within="60s")
    assert job["request"] == {"until_solved": True, "within": "60s", "stop_when_solved": 1}
    assert client.post(f"/jobs/{job['id']}/clone").json()["request"] == job["request"]
    assert client.get("/jobs").json()["jobs"][-1]["request"]["until_solved"] is True
    assert submit(client, until_solved=True)["request"]["within"] == "48h or 1000000 epochs"
    until = {"until_solved": True}
    for code, wrong, words in (
        ("too_much_time", until | {"within": "49h"}, "Expected at most 48h on this server, got 49h"),
        ("too_much_epochs", until | {"within": "2000000 epochs"}, "Expected at most 1000000 epochs on this server"),
        ("invalid_request", until | {"within": "soon"}, "Expected a time or a number of epochs, such as 60s"),
        ("invalid_config", until | {"within": "1 epoch", "recipe": "robust"}, "too few to test an attempt"),
        ("invalid_request", {"within": "60s", "restarts": 2}, "`within` and `restarts` cannot be used together"),
        ("invalid_request", until | {"restarts": 2}, "one restarts without a limit"),
        ("invalid_request", until | {"init_from": job["id"]}, "keeps the wiring of its run. Omit one."),
    ):
        answer = client.post("/jobs/preview", json={"preset": "checkerboard", **wrong})
        assert words in error(answer, 422, code)


def test_unreachable_target_is_noticed_in_the_preview(client):
    """The notice names the number of steps that an image grown from one cell needs."""
    request = {"preset": "lizard", "set": {"task.steps": 3}}
    seen = client.post("/jobs/preview", json=request).json()
    assert "In 3 steps a signal travels from the one cell to 7x7" in seen["notices"][0]
    assert "task.steps should be at least 9, with which an epoch takes 3 times as long." in seen["notices"][0]
    assert client.post("/jobs/preview", json={"preset": "lizard"}).json()["notices"] == []


def test_a_training_that_begins_with_another_ones_circuit(client, live):
    first = submit(client)
    request = {"preset": "checkerboard", "init_from": first["id"]}
    error(client.post("/jobs", json=request), 409, "no_circuit")
    claimed, lease = live.store.claim("w", "cpu", {"auto"}, 60)
    live.store.finish(claimed.id, lease, "done", saved_progress=5)
    second = submit(client, **request)
    assert second["source"] == first["id"]
    assert client.post(f"/jobs/{second['id']}/clone").json()["source"] == first["id"]
    error(client.post("/jobs", json=request | {"preset": "lizard"}), 409, "other_shape")
    with live.client(BEN) as other:
        error(other.post("/jobs", json=request), 404, "no_job")


def test_a_circuit_is_hardened(client, live):
    first = submit(client, population=2, recipe="robust")
    harden = f"/jobs/{first['id']}/harden"
    error(client.post(harden), 409, "no_circuit")
    claimed, lease = live.store.claim("w", "cpu", {"auto"}, 60)
    live.store.finish(claimed.id, lease, "done", saved_progress=5)
    made = client.post(harden, json={"epochs": 40}).json()
    assert made["config"] == hardening(Config.from_dict(first["config"]), epochs=40).to_dict()
    found = [made[name] for name in ("kind", "source", "request", "options")]
    assert found == ["train", first["id"], {"stop_when_solved": 1}, {"decide": True}]
    assert client.post(harden, json={"search": True}).json()["options"] == {"decide": False}
    error(client.post(harden, json={"epochs": 2_000_000}), 422, "too_much_epochs")


def test_a_preview_keeps_nothing(client):
    seen = client.post("/jobs/preview", json={"preset": "checkerboard", "rule": "B36/S23", "start": "random"}).json()
    assert seen["target"] is None
    assert seen["config"]["task"]["rule"] == "B36/S23"
    assert seen["changed"]["task.steps"] == 1
    assert seen["changed"]["model.periodic"] is True
    seen = client.post("/jobs/preview", json={"preset": "colored-g", "recipe": "paper"}).json()
    assert (seen["gates"], seen["goal"], seen["changed"]) == (presets.colored_g().model.gates, 3000, {})
    target = seen["target"]
    assert (target["width"], target["height"], len(target["rgb"]), len(target["rgb"][0])) == (16, 16, 16, 16)
    assert {value for row in target["rgb"] for cell in row for value in cell} == {0, 255}
    assert client.get("/jobs").json() == {"jobs": [], "next": None}


def test_lists_are_filtered_and_come_in_pages(client, live):
    names = [submit(client, name=f"number {number}")["name"] for number in range(7)]
    cancelled = client.get("/jobs?q=NUMBER+3").json()["jobs"][0]
    client.post(f"/jobs/{cancelled['id']}/cancel")
    found, page = [], {"next": 1 << 40}
    while page["next"] is not None:
        page = client.get(f"/jobs?limit=3&before={page['next']}").json()
        found += [job["name"] for job in page["jobs"]]
    assert found == names[::-1]
    assert [job["name"] for job in client.get("/jobs?status=cancelled").json()["jobs"]] == ["number 3"]
    assert len(client.get("/jobs?status=queued&kind=train").json()["jobs"]) == 6
    assert client.get("/jobs?kind=export").json()["jobs"] == client.get("/jobs?q=%25").json()["jobs"] == []
    assert [job["id"] for job in client.get(f"/jobs?q={cancelled['id'][3:9]}").json()["jobs"]] == [cancelled["id"]]
    for wrong in ("limit=0", "limit=201", "status=lost", "before=-1", "kind=x"):
        assert client.get(f"/jobs?{wrong}").status_code == 422


def test_tags_are_limited_and_copied_to_derived_jobs(client, live):
    job = submit(client, tags=["one", "two", "one"])
    assert job["tags"] == ["one", "two"]
    assert client.patch(f"/jobs/{job['id']}", json={"tags": ["two", "for the paper"]}).json()["tags"][0] == "two"
    assert client.post(f"/jobs/{job['id']}/clone").json()["tags"] == ["two", "for the paper"]
    assert len(client.get("/jobs", params={"tag": "for the paper"}).json()["jobs"]) == 2
    assert client.get("/tags").json()["tags"] == [{"tag": "for the paper", "jobs": 2}, {"tag": "two", "jobs": 2}]
    for wrong in ([""], [" a"], ["a,b"], ["a\n"], ["x" * 41], list("abcdefghijk"), "a", [1], ["a\u202eb"], ["\u3164"]):
        assert client.patch(f"/jobs/{job['id']}", json={"tags": wrong}).status_code == 422
    for wrong in ("", " ", "a\u202eb", "\u200b", "\u3164"):
        assert client.patch(f"/jobs/{job['id']}", json={"name": wrong}).status_code == 422
    with live.client(BEN) as ben:
        assert ben.get("/tags").json()["tags"] == ben.get("/jobs?tag=two").json()["jobs"] == []


def test_steering(client):
    job = submit(client)["id"]

    def state(action: str, code: int = 200) -> str:
        answer = client.post(f"/jobs/{job}/{action}")
        assert answer.status_code == code, answer.text
        return str(answer.json()["status"] if code == 200 else answer.json()["error"]["code"])

    assert state("resume", 409) == "conflict"
    assert state("pause") == "paused"
    assert state("resume") == "queued"
    assert state("cancel") == "cancelled"
    assert state("cancel", 409) == "conflict"
    assert state("retry") == "queued"
    assert client.patch(f"/jobs/{job}", json={"name": "other", "priority": 4}).json()["name"] == "other"
    assert client.patch(f"/jobs/{job}", json={"priority": 5}).json()["name"] == "other"
    assert client.patch(f"/jobs/{job}", json={"priority": 11}).status_code == 422
    assert client.post("/jobs", json={"preset": "checkerboard", "priority": -11}).status_code == 422
    clone = client.post(f"/jobs/{job}/clone")
    assert clone.status_code == 201
    same = ("name", "config", "engine", "request", "priority", "kind")
    assert [clone.json()[name] for name in same] == [client.get(f"/jobs/{job}").json()[name] for name in same]
    assert clone.headers["location"].endswith(clone.json()["id"])
    assert client.delete(f"/jobs/{job}").status_code == 204
    assert client.get(f"/jobs/{job}").status_code == 404


def test_metrics_by_epoch_and_over_each_other(live, tmp_path):
    with serving(tmp_path) as running, running.client() as client:
        training = Training(running.store)
        training.train(2500)
        job = training.job.id
        error(client.delete(f"/jobs/{job}"), 409, "conflict")
        first = client.get(f"/jobs/{job}/metrics?limit=2000").json()
        assert ([row["epoch"] for row in first["rows"]], first["next"]) == (list(range(1, 2001)), 2000)
        rest = client.get(f"/jobs/{job}/metrics?limit=2000&after=2000").json()
        assert ([row["epoch"] for row in rest["rows"]], rest["next"]) == (list(range(2001, 2501)), None)
        training.end()
        other = client.post(f"/jobs/{job}/clone").json()["id"]
        compared = client.get(f"/compare?ids={job},{other}").json()["jobs"]
        assert compared[other] == []
        epochs = [row["epoch"] for row in compared[job]]
        assert 500 < len(epochs) <= 1001
        assert (epochs[0], epochs[-1]) == (1, 2500)


def test_a_worker_is_seen_and_what_it_does_only_by_the_owner(tmp_path):
    with serving(tmp_path) as running:
        with running.client() as client:
            error(client.get("/ready"), 503, "no_worker")
            running.store.register_worker("w", "cpu", "a CPU", 1, ["auto"])
            assert client.get("/ready").json() == {"status": "ready", "workers": 1}
            training = Training(running.store)
            training.train(3)
            [device] = client.get("/devices").json()["devices"]
            assert (device["device"], device["job"]) == ("cpu", training.job.id)
        with running.client(BEN) as other:
            assert [each["job"] for each in other.get("/devices").json()["devices"]] == [None]
        training.end()


def test_presets_health_and_session_are_reported(client):
    names = [each["name"] for each in client.get("/presets").json()["presets"]]
    assert names[: len(presets.PRESETS)] == list(presets.PRESETS)
    assert {"cartpole"} <= set(names[len(presets.PRESETS) :]) <= set(AGENTS)
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/session").json() == {"owner": "ann", "csrf": None, "roles": ["priority"]}


def test_head_is_get_without_a_body(client, live):
    job = submit(client)["id"]
    run = live.store.job_folder(job).run
    run.mkdir(parents=True)
    (run / "metrics.csv").write_bytes(bytes(1 << 20))
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/files/metrics.csv", "/presets", "/health", "/jobs/none", "/no"):
        got, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        for name in ("content-type", "content-length", "content-security-policy", "content-disposition"):
            assert head.headers.get(name) == got.headers.get(name), (path, name)
    for given, status in (("bytes=9999999-", 416), ("bytes=x-y", 400)):
        refused = client.get(f"/jobs/{job}/files/metrics.csv", headers={"Range": given})
        assert (refused.status_code, list(refused.json())) == (status, ["error"])
        assert refused.headers.get("content-range") == ("bytes */1048576" if status == 416 else None)
    for path in (f"/jobs/{job}/events", "/events", f"/jobs/{job}/archive"):  # without an end, or a length
        assert client.head(path).status_code == 200
    assert live.context.feed.listeners == 0
    assert client.head(f"/jobs/{job}/cancel").status_code == 405
    assert httpx.head(live.address).status_code == 200
    assert httpx.head(f"{live.address}/api/v1/jobs").status_code == 401


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_methods_that_are_none(client, method):
    answer = client.request(method, "/presets")
    error(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET"
