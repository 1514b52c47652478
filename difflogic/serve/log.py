"""The server's log: a JSON object a line on standard error, without tokens, cookies, bodies and queries."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = logging.getLogger("difflogic.serve")


class JsonFormatter(logging.Formatter):
    """One object per record: what `extra={"fields": {...}}` names, and a traceback where there is one."""

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
    """One line of the log."""
    LOGGER.log(level, event, extra={"fields": fields})


def set_up(stream: TextIO | None = None) -> None:
    """Send the server's log, and uvicorn's, to a stream."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("difflogic.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        # uvicorn.error passes its records on to uvicorn, which has the handler: else each line would come twice.
        logger.handlers, logger.propagate = [handler] if name != "uvicorn.error" else [], name == "uvicorn.error"
        logger.setLevel(logging.INFO if name == "difflogic.serve" else logging.WARNING)
