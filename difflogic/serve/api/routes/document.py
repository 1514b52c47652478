"""The OpenAPI document as a page, which needs no script and no network: what a program reads, folded by address."""

from __future__ import annotations

import json
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Every address, with what it takes and answers."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("difflogic.serve.api", "routes"), autoescape=True, trim_blocks=True)
    environment.filters["json"] = partial(json.dumps, indent=1, ensure_ascii=False)
    return HTMLResponse(environment.get_template("document.html").render(document=request.app.openapi()))
