"""Classifiers as jobs: their table comes as a file, is made plain by a child, and is trained by any worker."""

import gzip
import io
import json
import re

import httpx
import numpy as np
import pytest

from difflogic.config import table
from difflogic.serve.client import SERVER, TOKEN
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.live import ANN, Live, shared
from tests.serve.service import ended
from tests.serve.test_own_samples import frames, gif, npz

live = shared()
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(40, 2)).round(3)
KINDS = ["in" if x @ x < 1 else "out" for x in X]
CSV = "\n".join(["x,y,kind", *(f"{x},{y},{kind}" for (x, y), kind in zip(X, KINDS, strict=True))]).encode()
IMAGES = bytes((0, 0, 8, 3, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2)) + bytes(range(18))
LABELS = bytes((0, 0, 8, 1, 0, 0, 0, 9)) + bytes(k % 3 for k in range(9))


def sent(live: Live, where: str = "/jobs", *, files: dict[str, bytes], **job: object) -> httpx.Response:
    with live.client() as client:
        return client.post(where, data={"job": json.dumps(job)}, files=files)


@pytest.mark.parametrize(
    ("files", "label", "rows"),
    [
        *(({"data": data}, "kind", 40) for data in (CSV, gzip.compress(CSV), npz(x=X, kind=np.array(KINDS)))),
        ({"data": IMAGES, "labels": LABELS}, "label", 9),
    ],
    ids=["csv", "gz", "npz", "idx"],
)
def test_table_becomes_a_classifier(live: Live, files: dict[str, bytes], label: str, rows: int) -> None:
    answer = sent(live, "/jobs/preview", files=files, label=label)
    assert answer.status_code == 200, answer.text
    config = answer.json()["config"]
    assert (config["kind"], config["table"]["rows"], config["table"]["label"]) == ("classifier", rows, label)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("files", "job", "words"), [
    ({"data": CSV}, {"label": "color"}, "The file data.csv: there is no column 'color'"),
    ({"data": CSV + b"\n1,,in"}, {"label": "kind"}, "has no value in the column y"),
    ({"data": IMAGES}, {"label": "label"}, "put a file of labels next to it"),
    ({"data": b"\0" * 99, "labels": LABELS}, {"label": "label"}, "Cannot read the IDX file"),
    ({"labels": LABELS}, {"label": "label"}, "requires its table as the file `data`"),
    ({"data": CSV, "target": CSV}, {"label": "kind"}, "no file except `labels`"),
    ({"labels": gif(frames(1))}, {"preset": "lizard"}, "only for classifiers, which require `label`"),
    ({"data": CSV}, {"label": "kind", "until_solved": True}, "Classifiers do not support"),
    ({"data": CSV}, {"label": "kind", "sweep": {"over": {"seed": "0..1"}}}, "Classifiers do not support"),
    ({"data": gzip.compress(b"x" * (1 << 28))}, {"label": "kind"}, "data"),
    ({"data": npz(x=RANDOM.normal(size=(40_000, 8)), kind=np.arange(40_000) % 2)}, {"label": "kind"}, "fewer rows"),
    ({"data": npz(x=X, y=np.zeros(40), features=["a", "b"], classes=["c"], label="kind")}, {"label": "kind"},
     "a label has no class"),
])  # fmt: skip
def test_table_that_cannot_be_learned_is_refused(live: Live, files, job, words) -> None:
    answer = sent(live, "/jobs/preview", files=files, **job)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (422, True), answer.text
    assert "difflogic-upload" not in answer.text


def test_submitted_table_is_trained_copied_and_given_back(live: Live, tmp_path, said, monkeypatch) -> None:
    (tmp_path / "points.csv").write_bytes(CSV)
    monkeypatch.setenv(SERVER, live.address)
    monkeypatch.setenv(TOKEN, ANN)
    file = tmp_path / "points.csv"
    settings = ("--set=steps=200", "--set=logic.widths=[8, 8]")
    job = said("submit", "--data", file, "--label", "kind", "--test", file, *settings).out.strip()
    with live.client() as client:
        copy = client.post(f"/jobs/{job}/clone").json()["id"]
        config = client.get(f"/jobs/{job}").json()["config"]
        given = client.get(f"/jobs/{job}/files/data.npz").content  # no worker has begun with it
        again = sent(live, files={"data": given}, config=config)
        assert again.status_code == 201, again.text
        other = sent(live, files={"data": CSV.replace(b",in", b",it")}, config=config)
        assert "do not match the configuration" in other.text
        alone = client.post("/jobs", json={"config": config})
        assert "requires its table as the file" in alone.text
        with Supervisor(live.store.folder, ["cpu"]):
            done = [ended(live.store, each) for each in (job, copy, again.json()["id"])]
            assert [each.status for each in done] == ["done"] * 3, done[0].reason
            standing = client.get(f"/jobs/{job}").json()["words"]["standing"]
            assert re.fullmatch("Done: accuracy .* % on rows of the test set", standing)
            answer = client.post(f"/jobs/{job}/simplify")
            assert answer.status_code == 201, answer.text
            assert ended(live.store, answer.json()["id"]).result["equal"]
    assert table.decoded(io.BytesIO(given)).sha256 == config["table"]["sha256"]
    assert (config["table"]["rows"], config["table"]["test"]) == (80, 40)
