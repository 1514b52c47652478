"""Circuits included in difflogic: each file is a proof.json, circuit.json or controller.json with two more keys.

`text` states the result, `learned` the command that made the circuit and gate counts before and after `simplify`.
"""

import json
from pathlib import Path
from typing import Any

from difflogic.config.fields import hint
from difflogic.errors import NotFoundError

FOLDER = Path(__file__).parents[2] / "zoo"


def names() -> list[str]:
    """Return the sorted names of all circuits in the zoo."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def entry(name: str) -> dict[str, Any]:
    """Return the contents of a zoo circuit's file as parsed JSON. Raises NotFoundError for an unknown name."""
    if name not in names():
        raise NotFoundError(f"Unknown zoo circuit {name!r}{hint(name, names())}: `difflogic zoo` lists all names.")
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data


def path(given: Path) -> Path:
    """Return the file of the zoo circuit named `given`; return `given` if it is an existing path or no such name."""
    return FOLDER / f"{given}.json" if not given.exists() and str(given) in names() else given
