"""Samples and recordings as jobs: a child process converts their file, and each try of the job has them."""

import io
import json
import zipfile
from collections.abc import Callable
from functools import partial

import httpx
import numpy as np
import pytest
from PIL import Image

from difflogic.config.policy import any_config
from difflogic.config.request import TrainRequest
from difflogic.core import rules
from difflogic.runs import attempts
from difflogic.serve.api.pictures import MOST_CELLS
from difflogic.serve.worker.supervisor import Supervisor
from tests.serve.live import Live, shared
from tests.serve.service import ended

pytestmark = pytest.mark.usefixtures("compiled")

live = shared()


def frames(count: int, side: int = 8) -> np.ndarray:
    """Return successive states of the game of life from noise."""
    made = [np.random.default_rng(0).integers(0, 2, (1, side, side), dtype=np.uint8)]
    while len(made) < count:
        made.append(rules.apply(rules.table("B3/S23"), made[-1], periodic=True))
    return np.concatenate(made)


def gif(film: np.ndarray) -> bytes:
    first, *others = (Image.fromarray(255 * each) for each in film)
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=others)
    return file.getvalue()


def saved(save: Callable[..., None], *arrays: np.ndarray, **named: np.ndarray) -> bytes:
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


npy, npz = partial(saved, np.save), partial(saved, np.savez_compressed)


def sent(live: Live, data: bytes, where: str = "/jobs", **job: object) -> httpx.Response:
    with live.client() as client:
        return client.post(where, data={"job": json.dumps(job)}, files={"data": ("anything", data)})


FEW = {"set": {"train.epochs": 2}, "restarts": 0}


@pytest.mark.parametrize("make", [gif, npy, lambda film: npz(x=film[:-1], y=film[1:])], ids=["gif", "npy", "npz"])
def test_a_film_or_samples_become_a_job_with_the_same_samples(live: Live, make: Callable[[np.ndarray], bytes]) -> None:
    answer = sent(live, make(frames(6)), **FEW)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["config"]["task"]["target"] == "data"
    assert (made["config"]["data"]["samples"], made["options"]) == (5, {})
    assert len({each.config["data"]["sha256"] for each in live.store.jobs("ann")}) == 1


@pytest.mark.exhaustive
def test_samples_that_cannot_be_trained_are_refused(live: Live) -> None:
    full = np.zeros((1, 1 + MOST_CELLS // 64**2, 64, 64), dtype=np.uint8)
    bomb, large = io.BytesIO(), {"descr": "|u1", "fortran_order": False, "shape": (1 << 12, 1 << 10, 1 << 10)}
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, large)
    for data, words in (
        (b"a letter", "must be samples (.npz), a recording (.gif or .npy), or a pattern with its rule."),
        (gif(frames(1)), "has one frame: expected at least 2"),
        (npz(x=frames(2)), "has no y: expected x and y, or frames"),
        (npz(frames=full), "cells in"),
        (npz(x=np.random.default_rng(0).integers(0, 2, (64, 64, 64)), y=frames(64, 64)), "packed bytes, got"),
        (bomb.getvalue(), "expected 4294967296 bytes of values after the header, got 0"),
    ):
        answer = sent(live, data, "/jobs/preview")
        assert (answer.status_code, words in answer.json()["error"]["message"]) == (422, True), answer.text
    with live.client() as client:
        config = sent(live, gif(frames(3)), "/jobs/preview").json()["config"]
        alone = client.post("/jobs", json={"config": config}).json()["error"]["message"]
    assert "upload the file on the page of a server" in alone
    for preset, words in ((None, "Nothing to train"), ("game-of-life", "whose file a sweep does not receive")):
        answer = sent(live, gif(frames(3)), preset=preset, sweep={"over": {"seed": "0..1"}})
        assert (answer.status_code, words in answer.json()["error"]["message"]) == (422, True), answer.text


def test_they_are_trained_copied_and_given_back(live: Live) -> None:
    job = sent(live, gif(frames(6)), **FEW).json()["id"]
    copy = live.store.job(job).spec()
    again, _ = live.store.submit("ann", copy)
    lost = sent(live, gif(frames(6)), **FEW | {"restarts": 1}).json()["id"]
    begun = attempts.Attempt(1, 2, 23, 2, "it is the first")
    whole = live.store.job_folder(lost).whole  # of a worker that was killed before an attempt had the samples
    whole.mkdir()
    asked = TrainRequest(config=any_config(live.store.job(lost).config), restarts=1)
    attempts.Record(asked, (begun,)).write(whole)
    with Supervisor(live.store.folder, ["cpu"]):
        assert [ended(live.store, each).status for each in (job, again.id, lost)] == ["done"] * 3
    with live.client() as client, np.load(io.BytesIO(client.get(f"/jobs/{job}/files/data.npz").content)) as given:
        assert np.array_equal(given["x"][..., 0], frames(6)[:-1])
        assert client.post(f"/jobs/{job}/harden", json={"epochs": 2}).status_code == 201
