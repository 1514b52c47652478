"""A server in a thread of this process, on a port of its own, as clients meet it, and the form of its errors."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from difflogic.serve.api.app import create_app
from difflogic.serve.api.context import Context
from difflogic.serve.api.server import Server, listen
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.store.store import Store
from tests.serve.service import PATIENCE_S

ANN, BEN = "ann's-own-secret-token", "ben's-own-secret-token"
TOKENS = {"ann": ANN, "ben": BEN}
API = "/api/v1"


@dataclass
class Live:
    """A server that runs."""

    address: str
    store: Store
    context: Context

    def client(self, token: str | None = ANN, **options: object) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.address + API, headers=headers, timeout=PATIENCE_S, **options)  # type: ignore[arg-type]


@contextmanager
def serving(
    folder: Path, settings: ServeSettings | None = None, port: int = 0, tokens: Mapping[str, str] | Tokens = TOKENS
) -> Iterator[Live]:
    store = Store.open(folder)
    settings = settings or ServeSettings()
    app = create_app(store, tokens if isinstance(tokens, Tokens) else Tokens(tokens, {"ann": ["priority"]}), settings)
    ready = threading.Event()
    server = Server(app, ready.set)
    with listen("127.0.0.1", port) as socket:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        assert ready.wait(PATIENCE_S)
        try:
            address = replace(settings, host="127.0.0.1").address(socket.getsockname()[1])
            yield Live(address, store, app.state.context)
        finally:
            server.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
            store.close()


def shared(settings: ServeSettings | None = None, **options: Any) -> Callable[..., Iterator[Live]]:
    """Return the fixture `live` of a module whose tests share a server."""

    @pytest.fixture(scope="module")
    def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
        with serving(tmp_path_factory.mktemp("store"), settings, **options) as running:
            yield running

    return live


def submit(client: httpx.Client, **request: object) -> dict[str, Any]:
    answer = client.post("/jobs", json={"preset": "checkerboard", **request})
    assert answer.status_code == 201, answer.text
    return answer.json()


def error(answer: httpx.Response, status: int, code: str) -> str:
    """Return the message of an answer that is this error."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert {name: [*fields] for name, fields in body.items()} == {"error": ["code", "message"]}
    assert body["error"]["code"] == code, answer.text
    message = str(body["error"]["message"])
    assert message.endswith(".")
    assert "\n" not in message
    return message
