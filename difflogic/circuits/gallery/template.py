"""The gallery's templates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import difflogic

if TYPE_CHECKING:
    from jinja2 import Environment


def page(file: str, **values: Any) -> str:
    """The text of a page; every value that its template names must be given."""
    return _environment().get_template(file).render(version=difflogic.__version__, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("difflogic.circuits.gallery", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
