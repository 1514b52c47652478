"""Uploads: images, bodies, and jobs that ask for too much."""

import io
import json
import struct
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from difflogic.config import presets
from difflogic.errors import DataError
from difflogic.serve.api import pictures
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.store.jobs import JobSpec
from tests.sampled import exhaustive
from tests.serve.live import error, serving, submit
from tests.serve.security.conftest import CAPS


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    pixels = np.full((height, width), 255, dtype=np.uint8)
    pixels[-1] = 0
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is so large, with next to nothing in it."""
    data = bytearray(png(1, 1))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))  # of the header
    return bytes(data)


def upload(client: httpx.Client, picture: bytes, **request: object) -> httpx.Response:
    form = {"job": json.dumps({"preset": "lizard", **request})}
    return client.post("/jobs", data=form, files={"target": ("t.png", picture, "image/png")})


def test_a_picture_becomes_the_target(client: httpx.Client) -> None:
    answer = upload(client, png(9, 7))
    assert answer.status_code == 201, answer.text
    task = answer.json()["config"]["task"]
    assert (task["width"], task["height"], task["picture"][0]) == (9, 7, "1" * 9)
    assert upload(client, png(200, 100), size="20x20").json()["config"]["task"]["width"] == 20
    pattern = upload(client, b"x = 0, y = 0\nbobo$2bo$3o!").json()["config"]["task"]
    assert pattern["picture"] == [".1.1", "..1.", "111."]


@pytest.mark.parametrize("sides", [(257, 256), (30_000, 30_000), (2**31 - 1, 2**31 - 1)])
def test_pictures_of_too_many_pixels_are_refused_unopened(client: httpx.Client, sides: tuple[int, int]) -> None:
    assert "pixels" in error(upload(client, bomb(*sides), size="20x20"), 422, "invalid_config")


@pytest.mark.parametrize("does", ["while True: pass", "import os; os.abort()", "raise MemoryError"])
def test_pictures_that_take_too_much_are_given_up(client: httpx.Client, monkeypatch, does: str) -> None:
    monkeypatch.setattr(pictures, "COMMAND", (sys.executable, "-c", does))
    monkeypatch.setattr(pictures, "WALL_S", 1.0)
    assert "time or memory" in error(upload(client, png(5, 5)), 422, "invalid_config")


def test_the_process_of_a_picture_has_limits(tmp_path: Path) -> None:
    """The limit on memory is so low here that the smallest image takes too much."""
    (tmp_path / "picture").write_bytes(png(5, 5))
    with pytest.raises(DataError, match="time or memory"):
        pictures.make_plain(tmp_path / "picture", pixels=-(pictures.MEMORY >> 5) + 1)
    pictures.make_plain(tmp_path / "picture", pixels=25)


@pytest.mark.parametrize(
    "data", [*exhaustive((b"",), (b"GIF89a",), (b"%!PS-Adobe",), (bytes(1000),)), b"<svg/>", png(5, 5)[:45]]
)
def test_invalid_image_is_refused(client: httpx.Client, data: bytes) -> None:
    message = error(upload(client, data), 422, "invalid_config")
    assert "/" not in message  # nothing of the server's folders


def test_bodies_are_bounded_whether_they_say_so_or_not(client: httpx.Client) -> None:
    large = json.dumps({"preset": "x" * CAPS.body})
    headers = {"Content-Type": "application/json"}
    error(upload(client, bytes(CAPS.upload + 1)), 413, "too_large")
    error(client.post("/session", content=large, headers=headers), 413, "too_large")
    for method, path in (("POST", "/jobs"), ("PATCH", f"/jobs/{submit(client)['id']}")):
        pieces = (b"x" * 10_000 for _ in range(50))
        for content in (large, pieces):
            error(client.request(method, path, content=content, headers=headers), 413, "too_large")


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b"[" * 50_000, b'{"set": {"optimizer.lr": NaN}}', b'{"name": "\\ud800"}', b"\xff"),
        b'{"size": ' + b"9" * 5000 + b"}",
    ],
)
def test_invalid_json_is_refused(client: httpx.Client, body: bytes) -> None:
    error(client.post("/jobs", content=body, headers={"Content-Type": "application/json"}), 400, "not_json")


def test_other_kinds_of_bodies_are_refused(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/x-python-pickle"}
    error(client.post("/jobs", content=b"x", headers=headers), 415, "unsupported_media_type")
    job = '{"preset": "lizard"}'
    error(client.post("/jobs", files={"job": (None, job), "more": (None, "1")}), 422, "invalid_request")
    many = [("target", ("a.png", png(5, 5))), ("target", ("b.png", png(5, 5)))]
    error(client.post("/jobs", data={"job": job}, files=many), 422, "invalid_request")


@pytest.mark.parametrize(("request_", "code"), [
    ({"preset": "checkerboard", "set": {"train.epochs": 5001}}, "too_much_epochs"),
    ({"preset": "checkerboard", "population": 9}, "too_much_population"),
    *exhaustive(({"preset": "checkerboard", "set": {"task.height": 5000, "task.width": 5000}}, "too_much_memory")),
    ({"preset": "checkerboard", "set": {"train.batch": 10**9}}, "too_much_memory"),
    ({"preset": "checkerboard", "set": {"train.probes": 10**9}}, "too_much_memory"),
    ({"preset": "lizard", "set": {"pool.size": 2**28}}, "too_much_memory"),
    ({"preset": "checkerboard", "set": {"task.steps": 2000, "train.epochs": 5000}}, "too_much_time"),
    ({"preset": "checkerboard", "population": 2, "stop_when_solved": 3}, "invalid_request"),
    ({"preset": "checkerboard", "set": {"optimizer.lr": "high"}}, "invalid_config"),
    ({"preset": "checkerboard", "set": {"a..b": 1}}, "invalid_config"),
    ({"preset": "checkerboard", "set": {"optimizer": 1, "optimizer.lr": 1}}, "invalid_request"),
    ({"preset": "checkerboard", "config": {}}, "invalid_request"),
    ({"preset": "checkerboard", "size": "0x5"}, "invalid_request"),
    ({"preset": "checkerboard", "priority": True}, "invalid_request"),
    ({}, "invalid_config"),
])  # fmt: skip
def test_a_job_cannot_ask_for_more_than_the_caps(client: httpx.Client, request_: dict[str, object], code: str) -> None:
    message = error(client.post("/jobs", json=request_), 422, code)
    assert len(message) < 1000
    error(client.post("/jobs/preview", json=request_), 422, code)


def test_a_picture_in_an_endless_grid_is_refused(client: httpx.Client) -> None:
    error(upload(client, png(5, 5), set={"task.height": 10**9, "task.width": 10**9}), 422, "invalid_config")


def test_the_queue_of_an_owner_is_bounded(tmp_path: Path) -> None:
    with serving(tmp_path, ServeSettings(caps=replace(CAPS, jobs=2))) as small, small.client() as client:
        first = submit(client)["id"]
        submit(client)
        error(client.post("/jobs", json={"preset": "checkerboard"}), 409, "queue_full")
        error(client.post(f"/jobs/{first}/clone"), 409, "queue_full")
        key = {"Idempotency-Key": "before-it-was-full"}
        spec = JobSpec("train", "checkerboard", presets.checkerboard().to_dict())
        small.store.submit("ann", spec, key["Idempotency-Key"])
        again = client.post("/jobs", json={"preset": "checkerboard", "recipe": "paper"}, headers=key)
        assert again.status_code == 200
        client.post(f"/jobs/{again.json()['id']}/cancel")
        client.post(f"/jobs/{first}/cancel")
        assert client.post("/jobs", json={"preset": "checkerboard"}).status_code == 201
