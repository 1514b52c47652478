"""Requests to a server, and the form of its errors."""

import httpx

from difflogic.serve.api.settings import Caps

CAPS = Caps(epochs=5000, population=8, hours=1.0, memory=200_000_000, upload=300_000, body=100_000, pixels=256 * 256)


def submit(client: httpx.Client, **request: object) -> str:
    return str(client.post("/jobs", json={"preset": "checkerboard", **request}).json()["id"])


def error(answer: httpx.Response, status: int, code: str) -> str:
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
