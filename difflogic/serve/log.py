"""Write the server's log to standard error, one JSON object per line, without tokens, cookies, bodies or queries.

So that a flood of requests cannot fill the disk, each event is limited to a number of lines in ten seconds, followed by
one line with the number of omitted lines.
"""

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

LOGGER = logging.getLogger("difflogic.serve")
WINDOW_S = 10.0
MOST_LINES = 200
"""Maximum number of lines per event within WINDOW_S."""
MOST_TRACES = 10
"""Maximum number of lines with tracebacks per event within WINDOW_S."""


class JsonFormatter(logging.Formatter):
    """Formatter of records as JSON objects, with the entries of `extra={"fields": {...}}` and a traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line with `event` and its `fields` to the log."""
    LOGGER.log(level, event, extra={"fields": fields})


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Handler that limits the number of lines per event within WINDOW_S, and logs the number of omitted lines."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self.setFormatter(JsonFormatter())
        self._clock = clock
        self._ends = 0.0
        self._lines: Counter[tuple[str, Any]] = Counter()
        self._left_out: Counter[tuple[str, Any]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        if self._clock() >= self._ends:
            self._say_left_out()
            self._lines.clear()
            self._ends = self._clock() + WINDOW_S
        # Lines are counted by event and status, so that a flood of refused requests does not displace answered ones.
        # `msg` has no values yet, except in asyncio's messages, which contain them only after the first line.
        event = str(record.msg).partition("\n")[0], getattr(record, "fields", {}).get("status")
        self._lines[event] += 1
        if self._lines[event] <= (MOST_TRACES if record.exc_info else MOST_LINES):
            super().emit(record)
        else:
            self._left_out[event] += 1

    def close(self) -> None:
        self._say_left_out()
        super().close()

    def _say_left_out(self) -> None:
        for (event, status), count in self._left_out.items():
            record = LOGGER.makeRecord(LOGGER.name, logging.WARNING, "", 0, "lines left out", (), None)
            record.fields = {"of": event, "lines": count} | ({} if status is None else {"status": status})
            super().emit(record)
        self._left_out.clear()


def set_up(stream: TextIO | None = None) -> None:
    """Write the log of the server and of its libraries to `stream`, by default standard error."""
    handler = BoundedHandler(stream or sys.stderr)
    for name in ("difflogic.serve", "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        # uvicorn.error passes its records on to uvicorn, which has the handler; otherwise lines would be written twice.
        logger.handlers, logger.propagate = [handler] if name != "uvicorn.error" else [], name == "uvicorn.error"
        logger.setLevel(logging.INFO if name == "difflogic.serve" else logging.WARNING)


@contextmanager
def redirected(path: Path) -> Iterator[None]:
    """Append standard error of this process and its children to the file `path` within the context.

    Raises:
        OSError: The file cannot be written.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)
