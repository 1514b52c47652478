"""The OpenAPI document as a page, which needs no script and no network."""

from __future__ import annotations

from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup, escape

router = APIRouter(include_in_schema=False)

METHODS = ("get", "post", "put", "patch", "delete")


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Every address, with what it takes and answers."""
    from jinja2 import Environment

    folder = resources.files("difflogic.serve.api.docs")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(words=in_words, coded=_coded)
    template = environment.from_string((folder / "docs.html").read_text(encoding="utf-8"))
    document = request.app.openapi()
    return HTMLResponse(template.render(document=document, groups=_grouped(document)))


@router.get("/docs.css")
def style() -> Response:
    """The page's looks."""
    text = (resources.files("difflogic.serve.api.docs") / "docs.css").read_text(encoding="utf-8")
    return Response(text, media_type="text/css")


def _grouped(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Operations by their first tag."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method in METHODS:
            if (operation := operations.get(method)) is not None:
                groups.setdefault(operation["tags"][0], []).append({"method": method, "path": path, **operation})
    return groups


def in_words(schema: dict[str, Any]) -> str:
    """The values that a schema takes."""
    # A reference to a schema with a name, such as JobRecord, is shown by that name.
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join("null" if value is None else str(value) for value in schema["enum"])
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return " or ".join(in_words(each) for each in schema[name])
    if "const" in schema:
        return str(schema["const"])
    return _NAMES.get(schema.get("format", ""), _NAMES.get(schema.get("type", ""), "any JSON")) + _limits(schema)


_NAMES = {
    "binary": "file",
    "string": "text",
    "array": "list",
    "object": "object",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}


def _limits(schema: dict[str, Any]) -> str:
    """What narrows a type, after its name."""
    parts = []
    if isinstance(inside := schema.get("items", schema.get("additionalProperties")), dict):
        parts.append(f" of {in_words(inside)}")
    # One word each for the limits of numbers, lists and texts, which JSON schema calls by different names.
    least = schema.get("minimum", schema.get("minItems", schema.get("minLength")))
    most = schema.get("maximum", schema.get("exclusiveMaximum", schema.get("maxItems", schema.get("maxLength"))))
    unit = " characters" if schema.get("type") == "string" else ""
    if least is not None and most is not None:
        parts.append(f", {least} to {most}{unit}")
    elif least is not None:
        parts.append(f", at least {least}{unit}")
    elif most is not None:
        parts.append(f", at most {most}{unit}")
    if "pattern" in schema:
        parts.append(f" like {schema['pattern']}")
    return "".join(parts)


def _coded(text: str) -> Markup:
    """Text in which backticks mark code."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if odd % 2 else part for odd, part in enumerate(parts)
    )
