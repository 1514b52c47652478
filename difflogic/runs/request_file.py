"""Reader and writer of `request.json`, the options of a run, which also apply when the run is resumed.

    {"format": 1, "config": {...}, "stop_when_solved": 1}

The file contains the fields of `TrainRequest` that differ from their defaults, except paths. Runs of version 0.1.0
have no such file.
"""

import json
from pathlib import Path

from difflogic.config.fields import build
from difflogic.config.policy import any_config
from difflogic.config.request import TrainRequest
from difflogic.errors import RunFolderError, UsageError

NAME = "request.json"
FORMAT = 1


def encode(request: TrainRequest) -> bytes:
    """Return the contents of request.json for a request with a configuration."""
    return json.dumps({"format": FORMAT, **request.resumable.to_dict()}, indent=2).encode() + b"\n"


def read(folder: Path) -> TrainRequest | None:
    """Return the request in a run folder's request.json, or None without this file. Raises RunFolderError."""
    path = folder / NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            raise UsageError("it was written by another version of difflogic")
        request: TrainRequest = build(TrainRequest, data | {"config": any_config(data["config"])})
        return request.resumable
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise RunFolderError(f"{path} cannot be used: {str(error).rstrip('.')}. Restore it from a backup.") from error
