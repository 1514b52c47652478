"""The circuits that come with difflogic, by name: each a proof.json, of what it does and that this is proved.

Of a controller it is a controller.json, with `text`: that it is equal to the trained one, and what it reaches. Beside
that `learned` says how it came about: the command, and the two-input gates before and after `simplify`.
"""

import json
from pathlib import Path
from typing import Any

from difflogic.config.fields import hint
from difflogic.errors import NotFoundError

FOLDER = Path(__file__).parents[2] / "zoo"


def names() -> list[str]:
    """All names, in the order of the alphabet."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def entry(name: str) -> dict[str, Any]:
    """What is known of a circuit: its proof, and `learned`. Raises NotFoundError for a name that is not there."""
    if name not in names():
        raise NotFoundError(
            f"There is no circuit {name!r} in the zoo{hint(name, names())}: `difflogic zoo` lists their names."
        )
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data


def path(given: Path) -> Path:
    """What is given; or, where there is nothing and it is a name of the zoo, the file of that circuit."""
    return FOLDER / f"{given}.json" if not given.exists() and str(given) in names() else given
