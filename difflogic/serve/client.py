"""Client of a training server, for the command line.

with Client.from_environment() as client:
    job = client.submit({"preset": "checkerboard"})
    for event in client.events(job["id"]):
        print(event.name, event.data)
"""

from __future__ import annotations

import json
import os
import re
import secrets
import ssl
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from urllib.parse import urlsplit

import httpx

from difflogic.errors import ServiceError, UsageError
from difflogic.serve import local
from difflogic.serve.api.artefacts import NAME
from difflogic.serve.api.settings import is_loopback
from difflogic.serve.store.jobs import ID

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SERVER, TOKEN = "DIFFLOGIC_SERVER", "DIFFLOGIC_TOKEN"
"""Names of the environment variables with the server's address and the user's token."""
DEFAULT = "http://127.0.0.1:8765"
API = "/api/v1"
WAITS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds to wait before each new attempt to reach a server; for event streams, the last value applies repeatedly."""
SILENCE_S = 40.0
"""Seconds without data after which an event stream is considered lost; the server sends heartbeats more often."""
OVERLOADED = (429, 502, 503, 504)

JobJson = dict[str, Any]


@dataclass(frozen=True)
class ServerEvent:
    """Server-sent event with its name and JSON data."""

    name: str
    data: Any


def _trusted() -> ssl.SSLContext | bool:
    """Return an SSL context with the certificates in SSL_CERT_FILE, or True for the system's. Raises UsageError."""
    file = os.environ.get("SSL_CERT_FILE")
    try:
        return ssl.create_default_context(cafile=file) if file else True
    except OSError as error:  # ssl.SSLError is a subclass
        raise UsageError(f"SSL_CERT_FILE must be the path of readable certificates in PEM, got {file}.") from error


class Client:
    """Client of a training server. Methods raise ServiceError, with the server's message if it sends one."""

    def __init__(self, server: str, token: str) -> None:
        """Set up a client of the server at the address `server`. Raises UsageError for an invalid address."""
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise UsageError(f"{SERVER} must be an address such as {DEFAULT}, got {server!r}.")
        if parts.username or parts.password:
            raise UsageError(f"{SERVER} must not contain a user name or password: set {TOKEN} to the token.")
        self.server = server.rstrip("/")
        self._http = httpx.Client(
            base_url=self.server + API,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(30.0, connect=5.0),
            trust_env=not is_loopback(parts.hostname),  # requests to this machine bypass proxies
            verify=_trusted(),
        )

    @classmethod
    def from_environment(cls) -> Self:
        """Return a client of the server in DIFFLOGIC_SERVER or, if not set, of this user's server on this machine.

        The token is in DIFFLOGIC_TOKEN or, if not set, the server's generated token. Raises UsageError without a token.
        """
        server = os.environ.get(SERVER) or local.running_server() or DEFAULT
        token = os.environ.get(TOKEN) or local.token_of(server) or ""
        if not token:
            raise UsageError(
                f"No token for {server}, which is not a server that you started on this machine: set {TOKEN} to your "
                f"token, or {SERVER} to the address of another server."
            )
        if not token.isascii() or not token.isprintable():
            raise UsageError(f"{TOKEN} must contain only visible ASCII characters.")
        return cls(server, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    # jobs ---------------------------------------------------------------------------------------------

    def submit(self, request: dict[str, Any], data: bytes | None = None) -> JobJson:
        """Queue a job exactly once, even if a response is lost; `data` is the table of a classifier."""
        # All retries of this call send the same key, and the server answers them with the job of the first request.
        key = secrets.token_urlsafe(16)
        body: dict[str, Any] = {"json": request}
        if data is not None:
            body = {"data": {"job": json.dumps(request)}, "files": {"data": data}}
        return self._job("POST", "/jobs", headers={"Idempotency-Key": key}, **body)

    def job(self, job: str) -> JobJson:
        return self._job("GET", f"/jobs/{_id(job)}")

    def jobs(self, **filters: Any) -> Iterator[JobJson]:
        """Yield the jobs that match `filters` (query parameters of GET /jobs), the newest first."""
        before = None
        while True:
            params = {name: value for name, value in (filters | {"before": before}).items() if value is not None}
            page = self._read("jobs", self.call("GET", "/jobs", params=params).content)
            yield from page["jobs"]
            before = page["next"]
            if before is None or not page["jobs"]:
                return

    def steer(self, job: str, action: str) -> JobJson:
        """Apply an `action` to a job: cancel, pause, resume or retry."""
        return self._job("POST", f"/jobs/{_id(job)}/{action}")

    def edit(self, job: str, **changes: Any) -> JobJson:
        """Change the `name`, `priority` or `tags` of a job."""
        return self._job("PATCH", f"/jobs/{_id(job)}", json=changes)

    def make(self, job: str, action: str, body: dict[str, Any]) -> JobJson:
        """Queue a job that `action`, such as `clone` or `prove`, creates from `job`; `body` contains its options."""
        # There are no retries: if the response is lost, a second request would create a second job.
        return self._job("POST", f"/jobs/{_id(job)}/{action}", json=body or None, tries=1)

    def delete(self, job: str) -> None:
        """Delete a job that is not running, with its files."""
        if self.call("DELETE", f"/jobs/{_id(job)}", tries=1).status_code != 204:
            raise self._foreign()

    def log(self, job: str, tail: int) -> str:
        """Return the last `tail` bytes of a job's log."""
        answer = self.call("GET", f"/jobs/{_id(job)}/log", params={"tail": tail})
        return str(self._read("log", answer.content)["text"])

    def text(self, job: str, name: str) -> str | None:
        """Return the contents of a job's text file `name`, or None if it is missing."""
        with self._connection_errors():
            answer = self._http.get(f"/jobs/{_id(job)}/files/{name}")
        if answer.status_code == 404:
            return None
        self._check(answer, "text/plain")
        return answer.text

    def archive(self, job: str, file: BinaryIO) -> None:
        """Write a zip with a job's files to `file`."""
        with self._connection_errors(), self._http.stream("GET", f"/jobs/{_id(job)}/archive") as answer:
            self._check(answer, "application/zip")
            for block in answer.iter_bytes():
                file.write(block)

    # events -------------------------------------------------------------------------------------------

    def events(self, job: str, after: int = 0, lost: Callable[[str], None] = lambda _: None) -> Iterator[ServerEvent]:
        """Yield the events of a job until it ends, with rows after epoch `after`; reconnect after a lost connection.

        `lost` is called with the reason once per lost connection.
        """
        last, tries = "", 0
        while True:
            try:
                for name, data, event_id in self._stream(f"/jobs/{_id(job)}/events?after={after}", last):
                    # The connection works again, and resumes after the last id.
                    last, tries = event_id or last, 0
                    yield ServerEvent(name, data)
                    if name == "end":
                        return
                why = "the server ended it"
            except httpx.TransportError as error:
                why = _reason(error)
            except httpx.DecodingError as error:
                raise self._foreign() from error
            except ServiceError as error:
                # A retry would not help: the job was deleted, or the token is wrong.
                if error.status not in OVERLOADED:
                    raise
                why = str(error)
            if tries == 0:
                lost(why)
            time.sleep(WAITS_S[min(tries, len(WAITS_S) - 1)])
            tries += 1

    def _stream(self, path: str, last: str) -> Iterator[tuple[str, Any, str]]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        with self._http.stream("GET", path, headers=headers, timeout=httpx.Timeout(SILENCE_S, connect=5.0)) as answer:
            self._check(answer, "text/event-stream")
            yield from parsed(answer.iter_lines(), self._read)

    def _job(self, method: str, path: str, tries: int = 4, **options: Any) -> JobJson:
        """Return the job in the response to a request."""
        return dict(self._read("job", self.call(method, path, tries, **options).content))

    def call(self, method: str, path: str, tries: int = 4, **options: Any) -> httpx.Response:
        """Return the response to a request, with at most `tries` attempts while the server cannot be reached."""
        waits = iter(WAITS_S[: tries - 1])
        while True:
            try:
                with self._connection_errors():
                    answer = self._http.request(method, path, **options)
                self._check(answer)
                return answer
            except ServiceError as error:
                wait = next(waits, None)
                if wait is None or error.status not in (0, 502, 503, 504):
                    raise
                time.sleep(wait)

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        """Convert connection errors within the context to ServiceErrors."""
        try:
            yield
        except httpx.DecodingError as error:
            raise self._foreign() from error
        except httpx.TransportError as error:
            raise ServiceError(
                f"Cannot reach the server at {self.server} ({_reason(error)}): check that `difflogic serve` is running."
            ) from error

    def _read(self, form: str, text: str | bytes) -> Any:
        """Return the JSON data of a response or event. Raises ServiceError if the validator named `form` rejects it."""
        try:
            _form(form).validate_json(text, strict=True)
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._foreign() from error

    def _check(self, answer: httpx.Response, media_type: str = "") -> None:
        """Raise ServiceError for an error response, with the server's message, or for an unexpected media type."""
        if answer.is_success:
            if media_type and answer.headers.get("content-type", "").partition(";")[0].strip() != media_type:
                raise self._foreign()
            return
        answer.read()
        try:
            message = str(_form("error").validate_json(answer.content, strict=True).error.message)
        except ValueError:  # not from our server, perhaps from a proxy
            message = f"The server responded with {answer.status_code} {answer.reason_phrase}."
        raise ServiceError(message, answer.status_code)

    def _foreign(self) -> ServiceError:
        return ServiceError(
            f"The response from {self.server} is not from a difflogic server of this version: check {SERVER}, and that "
            "no proxy or login page responds instead."
        )


@cache
def _form(name: str) -> TypeAdapter[Any]:
    """Return the validator for the response or event `name`; for unknown names, it requires only an object."""
    from pydantic import TypeAdapter

    from difflogic.serve.api import replies
    from difflogic.serve.api.words import JobReply

    rows = list[replies.MetricRow | replies.AgentRow]
    forms = {"job": JobReply, "jobs": replies.JobList, "log": replies.LogReply, "error": replies.ErrorBody}
    return TypeAdapter(rows if name == "rows" else forms.get(name, dict[str, Any]))


def parsed(
    lines: Iterator[str], read: Callable[[str, str], Any] = lambda _, text: json.loads(text)
) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, data, id) of each event in the lines of a stream; `read(name, text)` parses an event's data."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            name = fields.get("event", "message")
            yield name, read(name, fields["data"]), fields.get("id", "")
            fields = {}


def _reason(error: Exception) -> str:
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error).strip()).rstrip(".") or type(error).__name__


def _id(job: str) -> str:
    """Return `job` if it is a valid id. Raises UsageError otherwise, since other text could change the request path."""
    if not ID.fullmatch(job):
        raise UsageError(f"Expected a job id, got {job!r}: `difflogic jobs` lists all ids.")
    return job


# archives ---------------------------------------------------------------------------------------------


def check_new(folder: Path) -> None:
    """Raise UsageError unless `folder` is empty or does not exist."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"Expected an empty or new folder, got {folder}: choose another one.")


def unpack(file: BinaryIO, job: str, folder: Path) -> list[str]:
    """Extract the archive of `job` into a new folder, completely or not at all, and return the names of the files.

    Raises ServiceError for an archive with unexpected files, UsageError for a folder that is not empty, or OSError.
    """
    check_new(folder)
    folder = folder.resolve()  # a link to an empty folder is kept, and its target replaced
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        # The temporary folder is on the same disk, so that the rename is atomic: no partial run remains.
        with zipfile.ZipFile(file) as archive, TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as new:
            for entry in archive.infolist():
                # The server sends plain files without compression.
                top, _, name = entry.filename.partition("/")
                if top != job or not NAME.fullmatch(name) or entry.compress_type != zipfile.ZIP_STORED:
                    raise ServiceError(
                        f"The archive contains an unexpected file, {entry.filename[:80]!r}: nothing was unpacked."
                    )
            archive.extractall(new)  # links become plain files
            files = Path(new) / job
            files.mkdir(exist_ok=True)  # a job may have no files
            if folder.exists():
                folder.rmdir()
            files.rename(folder)
    except (zipfile.BadZipFile, RuntimeError, ValueError, ArithmeticError, EOFError, struct.error) as error:
        raise ServiceError("The archive is damaged, and nothing was unpacked: download it again.") from error
    return sorted(path.name for path in folder.iterdir())
