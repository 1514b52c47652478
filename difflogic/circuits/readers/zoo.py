"""Circuits that come with difflogic: each file `NAME.json` is a proof.json, or a controller.json with a result `text`.

`learned` is the command that trained the circuit, with its number of two-input gates before and after `simplify`.
"""

import json
from pathlib import Path
from typing import Any

from difflogic.config.fields import hint
from difflogic.errors import NotFoundError

FOLDER = Path(__file__).parents[2] / "zoo"


def names() -> list[str]:
    """Return the names of all circuits, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def entry(name: str) -> dict[str, Any]:
    """Return the data of a circuit: its proof, and `learned`. Raises NotFoundError for an unknown name."""
    if name not in names():
        raise NotFoundError(
            f"There is no circuit {name!r} in the zoo{hint(name, names())}: `difflogic zoo` lists their names."
        )
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data


def path(given: Path) -> Path:
    """Return the file of a circuit if `given` is a name of the zoo and no existing path, else `given`."""
    return FOLDER / f"{given}.json" if not given.exists() and str(given) in names() else given
