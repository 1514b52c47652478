"""A server in a thread of this process, on a port of its own, as clients meet it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from difflogic.serve.api.app import create_app
from difflogic.serve.api.context import Context
from difflogic.serve.api.server import Server, listen
from difflogic.serve.api.settings import ServeSettings
from difflogic.serve.api.tokens import Tokens
from difflogic.serve.store.store import Store
from tests.serve.service import PATIENCE_S

ANN, BEN = "ann's-own-secret-token", "ben's-own-secret-token"
TOKENS = {"ann": ANN, "ben": BEN}
ROLES = {"ann": ["priority"]}
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
    app = create_app(store, tokens if isinstance(tokens, Tokens) else Tokens(tokens, ROLES), settings)
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
