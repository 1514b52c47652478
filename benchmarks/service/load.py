"""Load test of a server with a long queue, many listeners and many requests, while its worker trains.

Training is timed in four periods: without load, twice under load, and without load. The load comes from this process
on the same machine, so the processor time of this process and of the server are measured separately. Then a flood of
requests is sent over ten connections, without pauses, and the server's memory is measured ten times.

The line reports the limits of `PROMISES` that were exceeded.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.service.jobs import PATIENCE_S
from benchmarks.service.servers import TOKEN, Served
from benchmarks.store import Line
from difflogic.config import presets

API = "/api/v1"
PROMISES = {"submit_p99_ms": 50.0, "slowed": 0.15, "flood_growth": 0.02}
"""Limits: milliseconds of a submission with a thousand queued jobs, share of the training speed that the load takes,
and relative growth of memory in the second half of the flood."""
SAMPLES = 10
"""Number of memory measurements in a flood."""
CONNECTIONS = 10
SETTLE_S = 3.0
"""Seconds before a period is timed, in which listeners connect and the last poll ends."""


@dataclass
class Load:
    """Durations, errors and events of all requests."""

    milliseconds: list[float] = field(default_factory=list)
    """Duration of each read request."""
    errors: list[str] = field(default_factory=list)
    events: int = 0
    frames: int = 0


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


class Connection:
    """Minimal HTTP client, since the load generator must not use more processor time than the server."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._address = (str(parts.hostname), int(parts.port or 80))
        self.lock = asyncio.Lock()
        """Held by the caller during a request on a shared connection."""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request over a persistent connection; return the status and the body."""
        reader, writer = await self._open()
        writer.write(_head(method, path, b"" if body is None else json.dumps(body).encode()))
        status, headers = await _status(reader)
        # Archives and streams have no Content-Length.
        if headers.get("transfer-encoding") == "chunked":
            data = b"".join([chunk async for chunk in _chunks(reader)])
        else:
            data = await reader.readexactly(int(headers.get("content-length", "0")))
        return status, data

    async def events(self, path: str) -> Any:
        """Yield the name and data of each server-sent event, without end."""
        reader, writer = await self._open()
        writer.write(_head("GET", path, b""))
        status, _ = await _status(reader)
        if status != 200:
            raise ConnectionError(f"{path}: {status}")
        rest = b""
        async for chunk in _chunks(reader):
            *whole, rest = (rest + chunk).split(b"\n\n")
            for each in whole:
                lines = dict(line.partition(b": ")[::2] for line in each.split(b"\n"))
                if b"data" in lines:
                    yield lines[b"event"], lines[b"data"]

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=1 << 24)
        return self._streams


def _head(method: str, path: str, body: bytes) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {TOKEN}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "Content-Type: application/json", "", ""]).encode() + body


async def _status(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers


async def _chunks(reader: asyncio.StreamReader) -> Any:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()


def measure(
    folder: Path,
    seconds: float = 60.0,
    jobs: int = 1000,
    clients: int = 100,
    rate: float = 20.0,
    compared: bool = True,
    flood: int = 50_000,
) -> Line:
    """Measure `seconds` of load with `jobs` in the queue, `clients` that listen, and `rate` requests per second.

    If not `compared`, only a period under load is measured. `flood` is the number of requests in the flood.
    """
    with Served(folder).running() as service:
        time.sleep(SETTLE_S)
        idle = _resident_mb(service.process.pid)
        found = asyncio.run(_measured(service, seconds, jobs, clients, rate, compared))
        found["loaded_mb"] = _resident_mb(service.process.pid)
        if flood:
            found |= asyncio.run(_flooded(service, flood))
    broken = [name for name, most in PROMISES.items() if (found.get(name) or 0.0) > most]
    return {"case": "load", "ready_s": round(service.ready_s, 2), "idle_mb": idle, **found, "broken": broken}


async def _measured(
    service: Served, seconds: float, jobs: int, clients: int, rate: float, compared: bool
) -> dict[str, Any]:
    load = Load()
    control = Connection(service.address)
    running = await _submit(control, _training(), priority=10)
    await _until_trains(control, running)
    waiting, submissions = [], []
    for number in range(jobs):
        begun = time.perf_counter()
        waiting.append(await _submit(control, {"preset": "lizard", "name": f"waits {number}"}))
        submissions.append(1000 * (time.perf_counter() - begun))
    quiet: list[float] = []
    loaded: list[float] = []
    server, own = 0.0, 0.0
    # This order of periods compensates for a machine that becomes slower over time.
    turns = (False, True, True, False) if compared else (True,)
    stretch = seconds / turns.count(True)
    for is_loaded in turns:
        work = _work(service.address, running, waiting, clients, rate, load) if is_loaded else asyncio.sleep(0)
        tasks = asyncio.ensure_future(work)
        await asyncio.sleep(SETTLE_S)
        before = cpu_s(service.process.pid), time.process_time()
        speed = await _speed(control, running, stretch)
        if is_loaded:
            # The unit is the mean number of busy cores.
            server += (cpu_s(service.process.pid) - before[0]) / seconds
            own += (time.process_time() - before[1]) / seconds
        (loaded if is_loaded else quiet).append(speed)
        tasks.cancel()
        await asyncio.gather(tasks, return_exceptions=True)
    control.close()
    return {
        "seconds": seconds,
        "jobs": jobs,
        "clients": clients,
        "requests_per_s": rate,
        **{f"submit_p{round(100 * share)}_ms": percentile(submissions, share) for share in (0.5, 0.99)},
        "submit_max_ms": round(max(submissions), 1),
        "reads": len(load.milliseconds),
        "errors": len(load.errors),
        "error": load.errors[0] if load.errors else None,
        "p50_ms": percentile(load.milliseconds, 0.5),
        "p99_ms": percentile(load.milliseconds, 0.99),
        "max_ms": round(max(load.milliseconds), 1),
        "events": load.events,
        "frames": load.frames,
        "epochs_per_s_quiet": [round(each, 1) for each in quiet],
        "epochs_per_s_loaded": [round(each, 1) for each in loaded],
        "slowed": round(1 - sum(loaded) / sum(quiet), 3) if quiet else None,
        "server_cores": round(server, 3),
        "load_cores": round(own, 3),
    }


async def _flooded(service: Served, requests: int) -> dict[str, Any]:
    """Send requests without pauses over all connections, and measure the server's memory."""
    control = Connection(service.address)
    status, body = await control.ask("GET", f"{API}/jobs?limit=1")
    assert status == 200, body
    paths = list(reads_of(str(json.loads(body)["jobs"][0]["id"])).values())
    control.close()
    begun, memory = time.perf_counter(), []
    for _ in range(SAMPLES):
        share = requests // SAMPLES // CONNECTIONS
        await asyncio.gather(*(_stream(service.address, paths, share) for _ in range(CONNECTIONS)))
        memory.append(_resident_mb(service.process.pid))
    half = memory[SAMPLES // 2 - 1]
    return {
        "flood": requests,
        "flood_s": round(time.perf_counter() - begun, 1),
        "flood_mb": memory,
        "flood_growth": round((memory[-1] - half) / half, 4),
    }


async def _stream(address: str, paths: list[str], count: int) -> None:
    connection = Connection(address)
    for number in range(count):
        await connection.ask("GET", API + paths[number % len(paths)])
    connection.close()


def _training() -> dict[str, Any]:
    """Return a training request that outlasts any load."""
    return {"config": presets.checkerboard().with_(train={"epochs": 1_000_000}).to_dict(), "engine": "cpu"}


async def _submit(connection: Connection, request: dict[str, Any], priority: int = 0) -> str:
    status, body = await connection.ask("POST", f"{API}/jobs", {**request, "priority": priority})
    if status != 201:
        raise ConnectionError(body.decode())
    return str(json.loads(body)["id"])


async def _epoch(connection: Connection, job: str) -> int:
    return int(json.loads((await connection.ask("GET", f"{API}/jobs/{job}"))[1])["progress"])


async def _until_trains(connection: Connection, job: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while await _epoch(connection, job) < 20:
        if time.monotonic() > deadline:
            raise TimeoutError("The job does not train.")
        await asyncio.sleep(0.1)


async def _speed(connection: Connection, job: str, seconds: float) -> float:
    """Return epochs per second between two changes of the reported epoch, at least `seconds` apart."""
    first, begun = await _changed(connection, job)
    connection.close()  # the server would close it before its next use
    await asyncio.sleep(seconds)
    last, ended = await _changed(connection, job)
    return (last - first) / (ended - begun)


async def _changed(connection: Connection, job: str) -> tuple[int, float]:
    before = now = await _epoch(connection, job)
    deadline = time.monotonic() + PATIENCE_S
    while now == before:
        if time.monotonic() > deadline:
            raise TimeoutError("The job does not go on.")
        await asyncio.sleep(0.02)
        now = await _epoch(connection, job)
    return now, time.perf_counter()


async def _work(address: str, running: str, waiting: list[str], clients: int, rate: float, load: Load) -> None:
    """Generate load until cancelled; half of the listeners follow the running job, the other half all jobs."""
    paths = [f"{API}/jobs/{running}/events?after={1 << 40}", f"{API}/events"]
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(listen(address, paths[number % 2], load))
        group.create_task(_request(address, running, waiting, rate, load))


async def listen(address: str, path: str, load: Load) -> None:
    connection = Connection(address)
    try:
        async for name, _data in connection.events(path):
            load.events += 1
            load.frames += name == b"frame"
        load.errors.append(f"{path}: the stream ended")
    except (OSError, ValueError, EOFError, asyncio.IncompleteReadError) as error:
        load.errors.append(f"{path}: {error!r}")
    finally:
        connection.close()


async def _request(address: str, running: str, waiting: list[str], rate: float, load: Load) -> None:
    """Send `rate` requests per second over ten connections; one of twenty requests is a write."""
    connections = [Connection(address) for _ in range(CONNECTIONS)]
    reads = list(reads_of(running).values())
    await asyncio.sleep(SETTLE_S)
    begun = time.perf_counter()
    number = 0
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                connection = connections[number % len(connections)]
                # Writes wait for each other and wake every listener. One in twenty is more than users send.
                if number % 20 == 19:
                    job = waiting[number % len(waiting)] if waiting else running
                    call = _timed(connection, "PATCH", f"/jobs/{job}", {"priority": number % 10}, load)
                else:
                    call = _timed(connection, "GET", reads[number % 20 % len(reads)], None, load)
                group.create_task(call)
                number += 1
                # Requests are sent at fixed times, not after the last response: otherwise a slow server would slow
                # the load down, and its latency would look better than it is.
                await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
    finally:
        for connection in connections:
            connection.close()


def reads_of(running: str) -> dict[str, str]:
    """Return the paths that are read one after the other, by name."""
    return {
        "jobs": "/jobs?limit=50",
        "job": f"/jobs/{running}",
        "metrics": f"/jobs/{running}/metrics?after=10&limit=200",
        "queued": "/jobs?status=queued",
        "gates": f"/jobs/{running}/gates",
        "log": f"/jobs/{running}/log",
        "compare": f"/compare?ids={running}",
        "files": f"/jobs/{running}/files",
        "presets": "/presets",
        "devices": "/devices",
    }


async def _timed(connection: Connection, method: str, path: str, body: Any, load: Load) -> None:
    """Send a request and record its duration, including the wait for its connection."""
    start = time.perf_counter()
    try:
        async with connection.lock:
            status, answer = await connection.ask(method, API + path, body)
    except (OSError, ValueError, EOFError, asyncio.IncompleteReadError) as error:
        load.errors.append(f"{path}: {error!r}")
        return
    if method == "GET":
        load.milliseconds.append(1000 * (time.perf_counter() - start))
    if status != 200:
        load.errors.append(f"{path}: {status} {answer[:200]!r}")


def cpu_s(pid: int) -> float:
    """Return the processor seconds of a process, without those of its child processes, which train."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    return round(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
