"""Webhooks: the end of a job is posted as JSON to addresses that the operator gave or allowed, and to no others.

    POST /hook
    X-Difflogic-Delivery: 57                      the same in every try
    X-Difflogic-Signature: sha256=4f0c...         HMAC-SHA256 of the body, by the secret of whoever gave the address
    {"event": "job.ended", "job": {"id": "...", "status": "done", "outcome": "solved", ...}}

What is to be told stands in the store (`difflogic.serve.store.alerts`), and a thread of its own tells it: no job and no
request waits for an address that is slow or dead, and what was not told before a restart is told after it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from difflogic.errors import StoreError
from difflogic.serve.api.settings import WebhookSettings, parsed_url
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.log import LOGGER, log_event
from difflogic.serve.store import alerts
from difflogic.serve.store.alerts import Alert
from difflogic.serve.store.store import Store

SECRET = "webhook-secret"  # noqa: S105  a file's name
"""Name of the file in the store that keeps a generated secret."""
POLL_S = 1.0
TIMEOUT_S = 10.0
"""Seconds that an address may take for each of: the connection, to read the body, to answer."""
PATIENCE_S = 2.0
"""Seconds that the end of the server waits for what is being told; it is told again after the next start."""
GONE = 410
"""The status of an address that wants to hear no more of it."""
DELIVERY, SIGNATURE = "X-Difflogic-Delivery", "X-Difflogic-Signature"


class Webhooks:
    """The thread that tells the ends of a store's jobs."""

    def __init__(self, store: Store, settings: WebhookSettings, telemetry: Telemetry) -> None:
        self._store, self._settings, self._telemetry = store, settings, telemetry
        self._over = threading.Event()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Inside, ends of jobs are told."""
        thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join(PATIENCE_S)

    def _run(self) -> None:
        # Nothing of the environment is used: neither passwords for hosts nor a proxy. A redirection is not followed: it
        # may lead to an address that nobody allowed.
        file = os.environ.get("SSL_CERT_FILE")
        with httpx.Client(
            timeout=TIMEOUT_S,
            trust_env=False,
            follow_redirects=False,
            verify=ssl.create_default_context(cafile=file) if file else True,
        ) as client:
            while not self._over.wait(POLL_S):
                try:
                    self._turn(client)
                except StoreError as error:  # the next look may find the store well
                    log_event("webhooks", logging.ERROR, why=str(error))
                except Exception:  # noqa: BLE001  it is told, and the next alert may do better
                    LOGGER.exception("webhooks")
        self._store.close()

    def _turn(self, client: httpx.Client) -> None:
        """Tell what is due, until nothing is."""
        while not self._over.is_set():
            with self._store.database.reading() as connection:
                found = alerts.due(connection, self._store.clock(), limit=1)
            if not found:
                return
            self._settle(found[0], self._told(client, found[0]))

    def _told(self, client: httpx.Client, alert: Alert) -> str | None:
        """Tell one end: None where that is done, or not wanted; else why it was not."""
        text = self._settings.url if alert.url is None else alert.url
        url = None if text is None else parsed_url(text)
        # A host may have been allowed when the job was submitted, and be allowed no more.
        if url is None or (alert.url is not None and not self._settings.allows(url)):
            return None
        secret = self._settings.secret if alert.url is None else self._settings.secret_of(alert.owner)
        body = alert.body.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "difflogic",
            DELIVERY: str(alert.id),
            SIGNATURE: f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}",
        }
        try:
            # The answer is not read: it may be endless.
            with client.stream("POST", url, content=body, headers=headers) as answer:
                status = answer.status_code
        except (httpx.HTTPError, OSError) as error:
            why = str(error).strip() or type(error).__name__
        else:
            why = "" if 200 <= status < 300 else f"it answered {status}"
            if status == GONE:
                log_event("webhook", logging.WARNING, host=url.host, job=alert.job, why="it asked for no more messages")
                return None
        self._telemetry.webhooks.labels("failed" if why else "told").inc()
        # The host and not the address, of which the path is often a secret.
        log_event("webhook", logging.WARNING if why else logging.INFO, host=url.host, job=alert.job, why=why or None)
        return why or None

    def _settle(self, alert: Alert, why: str | None) -> None:
        with self._store.database.writing() as connection:
            if why is None:
                alerts.forget(connection, alert)
            elif not alerts.failed(connection, alert, self._store.clock()):
                log_event("webhook given up", logging.ERROR, job=alert.job, why=why)
