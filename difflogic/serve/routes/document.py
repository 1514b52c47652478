"""The OpenAPI document as a page, which needs no script and no network."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)

METHODS = ("get", "post", "patch", "delete")


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Every address, with what it takes and answers."""
    from jinja2 import Environment

    folder = resources.files("difflogic.serve.docs")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["schema"] = _words
    template = environment.from_string((folder / "docs.html").read_text(encoding="utf-8"))
    document = request.app.openapi()
    return HTMLResponse(template.render(document=document, groups=_grouped(document)))


@router.get("/docs.css")
def style() -> Response:
    """The page's looks."""
    text = (resources.files("difflogic.serve.docs") / "docs.css").read_text(encoding="utf-8")
    return Response(text, media_type="text/css")


def _grouped(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by their first tag."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is not None:
                groups.setdefault(operation["tags"][0], []).append({"method": method, "path": path, **operation})
    return groups


def _words(schema: dict[str, Any]) -> str:
    """A schema in a line, or as JSON where it has more to say."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if set(schema) <= {"type", "title", "format"}:
        return " ".join(str(schema[name]) for name in ("type", "format") if name in schema) or "any JSON"
    return json.dumps({key: value for key, value in schema.items() if key != "title"}, indent=1)
